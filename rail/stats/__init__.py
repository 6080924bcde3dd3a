"""Paired intervals, tests and verdicts; no torch."""
