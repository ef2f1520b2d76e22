"""Some rows of a bulk result, drawn at random and computed again by the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oracle
from oracle._checks import reject
from validation.compare import compare
from validation.registry import bound_for, parts_of
from validation.report.document import Check, Note
from validation.table import RowTable, visible_in

__all__ = ["Verification", "check_draw", "verify"]

Array = NDArray[Any]


class _Drawn(NamedTuple):
    """One row as it was drawn: the smallest lots win. What deviates most in it, and by how much."""

    lot: float
    place: str
    deviation: float
    used: float  # the deviation over its bound
    within: bool
    message: str


def check_draw(engine: str, count: int | None, seed: int | None) -> None:
    """Refuse a verification of the oracle by itself, and a seed of a draw that nobody asked for."""
    if count is not None and engine == "oracle":
        reject(
            "verify",
            expected="the engine fastpath",
            found="the oracle, which would only be compared with itself",
            todo="Leave out verify, or choose the engine fastpath.",
        )
    if count is None and seed is not None:
        reject("verify_seed", expected="verify beside it", found="none", todo="Say how many to draw.")


@dataclass
class Verification:
    """Gathers `rows` rows of all tables it is shown, each row with the same chance, without a second pass.

    Every row gets a random number and those with the smallest stay, so that the draw depends on the seed and
    on the order of the texts alone; without a seed it is another one each time. InputError for fewer rows
    than one.
    """

    rows: int
    seed: int | None = None
    _drawn: list[_Drawn] = field(default_factory=list, repr=False)
    _seen: int = 0

    def __post_init__(self) -> None:
        """Refuse a draw of nothing, which would hold whatever the result."""
        if self.rows < 1:
            reject("verify", expected="at least one row", found=f"{self.rows}", todo="Leave it out for none.")
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._random = np.random.default_rng(self.seed)

    def add(
        self,
        table: RowTable,
        attention: Array,
        sink_mask: NDArray[np.bool_],
        visible: NDArray[np.bool_],
        norms: Mapping[str, Array],
    ) -> None:
        """Draw from the rows of one text; the arrays are those that `tabulate` made the table from."""
        self._seen += len(table)
        lots = self._random.random(len(table))
        for row in np.argsort(lots)[: self.rows]:
            if len(self._drawn) == self.rows and lots[row] > self._drawn[-1].lot:
                break
            self._drawn.append(
                self._again(float(lots[row]), table, int(row), attention, sink_mask, visible, norms)
            )
            self._drawn = sorted(self._drawn)[: self.rows]

    def part(self) -> Check | Note:
        """The largest deviation of the rows drawn, as a Check; a Note where there was no row to draw from."""
        if not self._drawn:
            return Note("verify", "Nothing was verified: there is no row.")
        worst = max(self._drawn, key=lambda drawn: (not drawn.within, drawn.used))
        wrong = sum(not drawn.within for drawn in self._drawn)
        found = f"largest deviation {worst.deviation:.1e}, {worst.used:.1%} of its bound, at {worst.place}"
        if wrong:
            found = f"{wrong} rows outside their bound; {worst.place}: {worst.message}"
        drawn = f"{len(self._drawn):,} of {self._seen:,} rows, drawn with seed {self.seed}"
        return Check("verify", f"{drawn}, as the oracle computes them again", found, not wrong)

    def _again(
        self,
        lot: float,
        table: RowTable,
        row: int,
        attention: Array,
        sink_mask: NDArray[np.bool_],
        visible: NDArray[np.bool_],
        norms: Mapping[str, Array],
    ) -> _Drawn:
        text, layer, head, query = (
            int(getattr(table, name)[row]) for name in ("text", "layer", "head", "query")
        )
        weights, seen = attention[layer, head, query][None], visible_in(visible, layer)[query]
        again = oracle.row_measures(
            weights, sink_mask, {name: norm[layer, head] for name, norm in norms.items()}, seen
        )
        listed = {"share": table.shares, "ratio": table.ratios}
        results = []
        for (kind, name), expected in parts_of(again, "share").items():
            bound = bound_for(kind, attention.dtype, weights.shape[-1])
            found = listed[kind][name][row : row + 1]
            result = compare(expected, found, absolute=bound.absolute, relative=bound.relative)
            what = f"{'r' if kind == 'ratio' else 'share'} of {name}"
            place = f"text {text}, layer {layer}, head {head}, query {query}, {what}"
            results.append(
                _Drawn(lot, place, result.max_absolute, result.used, result.within, result.message)
            )
        return max(results, key=lambda drawn: (not drawn.within, drawn.used))


def verify(
    table: RowTable,
    attention: Array,
    sink_mask: NDArray[np.bool_],
    visible: NDArray[np.bool_],
    norms: Mapping[str, Array],
    rows: int,
    seed: int | None = None,
) -> Check | Note:
    """Check `rows` random rows of one text's table against the oracle, within the registry's bounds.

    `attention` (layer, head, query, key), `sink_mask` (key,), `visible` (query, key) and `norms` (layer,
    head, key) are what the table was made from; `seed` decides which rows, None at random. The Check fails
    where a share or an r leaves its bound, or is NaN on one side only.
    """
    drawn = Verification(rows, seed)
    drawn.add(table, attention, sink_mask, visible, norms)
    return drawn.part()
