"""The compiled forward pass: source, build, and the decoder that calls it."""
