"""The one policy update that all methods share."""
