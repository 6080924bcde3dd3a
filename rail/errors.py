"""Errors named after the boundary they cross.

What the *policy* does (a bad command, running out of turns) is an outcome with a reward. What *we*
do wrong (a database that cannot open, a truncated file) is one of these, and is never reward 0.
Each also is a standard error type, so callers that know nothing of rail can catch it.
"""


class RailError(Exception):
    """Base of every error that rail raises on purpose."""


class ConfigError(RailError, ValueError):
    """A configuration that cannot be used: unknown key, unknown name, value out of range."""


class EnvError(RailError, RuntimeError):
    """An environment that failed by no doing of the policy; the rollout has no verdict."""


class DataError(RailError, ValueError):
    """A task file or table whose content is not what its format promises."""


class PolicyError(RailError, RuntimeError):
    """A policy that cannot be loaded, or whose sampler disagrees with its own forward pass."""


class BudgetError(RailError, RuntimeError):
    """A method asked for more rollouts than its budget allows."""


class TraceError(RailError, ValueError):
    """A table that does not match its declared schema, or a parquet file that cannot be read."""


class CheckpointError(RailError, RuntimeError):
    """A checkpoint that is corrupt, or that belongs to other code or another configuration."""


class LockError(RailError, RuntimeError):
    """A state folder that another process is using."""


class StorageError(RailError, OSError):
    """A file that the operating system refuses to write: disk full, no permission, not a folder."""
