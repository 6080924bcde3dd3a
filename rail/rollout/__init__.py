"""Trees of trajectories, the one sampling primitive, anchors and the budget ledger."""
