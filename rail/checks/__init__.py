"""Difficulty bands and headroom: what must be known before any method is compared (protocol 2)."""

from rail.checks.bands import bands
from rail.checks.headroom import headroom

__all__ = ["bands", "headroom"]
