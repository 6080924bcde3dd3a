"""One file per method: `Settings` and `build(settings, ...) -> Method`."""
