"""The rules of the ledger as functions of a claim and the results of its runs, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType

from validation.claims import Claim
from validation.ledger.finding import Finding
from validation.ledger.judges import conventions, models, norms, proofs, shares, trained
from validation.ledger.result import Results

__all__ = ["JUDGES", "Judge"]

Judge = Callable[[Claim, Results], Finding]


def _judges_of(module: ModuleType) -> Mapping[str, Judge]:
    return {name: getattr(module, name) for name in module.__all__}


JUDGES: Mapping[str, Judge] = {
    name: judge
    for module in (conventions, models, norms, proofs, shares, trained)
    for name, judge in _judges_of(module).items()
}
"""Every judge by the name that claims.toml calls it."""
