"""Named runs whose results are kept and shipped, and the pages that are written from them."""

from validation.reproduction.kept import load_result
from validation.reproduction.runs import Run, choose_runs
from validation.reproduction.working import Outcome, run_named

__all__ = ["Outcome", "Run", "choose_runs", "load_result", "run_named"]
