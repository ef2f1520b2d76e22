"""The pruning study: heads cut by sink share and entropy, against random heads of the same layers."""
