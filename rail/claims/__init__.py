"""The claims ledger: what is claimed, what the tables say, and from which files.

A claim is one entry of `config/claims.yaml`; its `kind` names a comparison of
`rail.stats.comparisons`. Nothing is written by hand: statistic, verdict and provenance are
computed.
"""

from rail.claims.entries import Claim, load_claims
from rail.claims.ledger import compute, write_ledger

__all__ = ["Claim", "compute", "load_claims", "write_ledger"]
