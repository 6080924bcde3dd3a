"""One theme and one function per kind of panel."""
