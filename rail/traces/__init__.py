"""Declared schemas and atomic storage of everything a run writes."""
