"""rail: a reproduction of Recoverability-aware Rollout Intervention Learning (arXiv 2608.05080)."""

__version__ = "0.1.0"
