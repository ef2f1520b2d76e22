"""How large the pruning study is, with no import: the command line says it before anything is loaded."""

from __future__ import annotations

__all__ = ["BUDGETS", "DRAWS", "TOKENS"]

BUDGETS = (0.05, 0.1, 0.2)  # shares of all heads
DRAWS = 10
TOKENS = 512  # of every text; fewer where a model has fewer positions
