"""The compiled kernel: sources, build, and what calls them: decoding, draws, trees."""
