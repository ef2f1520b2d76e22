"""Write tests/composition_goldens.json: every compositional measure of fixed rows, to 50 digits, with mpmath.

Run it to write the file anew. The rows are doubles, and what is computed is the measure of exactly these
doubles by its definition: closed, sinks summed into one part under "keep", left out under "drop". Nothing of
the package is used. Rows that are multiples of a power of two sum to exactly one, so that closing them rounds
nothing and even the smallest distance has a meaning to its last digit; these cases are marked "exact".
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mpmath
from mpmath import mp, mpf

__all__ = ["FILE", "cases", "measures", "score_measures"]

FILE = Path(__file__).with_name("composition_goldens.json")
DIGITS = 50


def _closed(parts: Sequence[Any]) -> list[Any]:
    whole = mpmath.fsum(parts)
    return [part / whole for part in parts]


def _entropy(parts: Sequence[Any]) -> Any:
    return -mpmath.fsum(part * mpmath.log(part) for part in parts if part)


def _clr(parts: Sequence[Any]) -> list[Any]:
    logs = [mpmath.log(part) for part in parts]
    mean = mpmath.fsum(logs) / len(logs)
    return [value - mean for value in logs]


def _square(x: Sequence[Any], y: Sequence[Any]) -> Any:
    return mpmath.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def _jsd(x: Sequence[Any], y: Sequence[Any]) -> Any:
    terms = [
        part * mpmath.log(2 * part / (a + b)) for a, b in zip(x, y, strict=True) for part in (a, b) if part
    ]
    return mpmath.fsum(terms) / 2


def _cosine(x: Sequence[Any], y: Sequence[Any]) -> Any:
    product = mpmath.fsum(a * b for a, b in zip(x, y, strict=True))
    return 1 - product / mpmath.sqrt(_square(x, [0] * len(x)) * _square(y, [0] * len(y)))


def _distances(x: Sequence[Any], y: Sequence[Any]) -> dict[str, Any]:
    """The metrics that a convention does not name, of closed parts."""
    divergence = _jsd(x, y)
    return {
        "cosine": _cosine(x, y),
        "jsd": divergence,
        "root_jsd": mpmath.sqrt(divergence),
        "hellinger": mpmath.sqrt(_square([mpmath.sqrt(a) for a in x], [mpmath.sqrt(b) for b in y]) / 2),
        "l1": mpmath.fsum(abs(a - b) for a, b in zip(x, y, strict=True)),
        "entropy": abs(_entropy(x) - _entropy(y)),
    }


def _aitchison(x: Sequence[Any], y: Sequence[Any], has_sink: bool) -> dict[str, Any]:
    """Squared distances of positive parts, the sink first where there is one."""
    total = _square(_clr(x), _clr(y))
    content = _square(_clr(x[has_sink:]), _clr(y[has_sink:]))
    sink = mpf(0)
    if has_sink:
        n = len(x) - 1
        gap = [mpmath.log(row[0]) - mpmath.fsum(mpmath.log(part) for part in row[1:]) / n for row in (x, y)]
        sink = mpf(n) / (n + 1) * (gap[0] - gap[1]) ** 2
    return {"aitchison/keep": total, "aitchison_sink/keep": sink, "aitchison/drop": content}


def _keep(row: Sequence[float], sinks: Sequence[int], visible: Sequence[int]) -> list[Any]:
    """Closed parts: the sink set, if any of it is visible, then the visible content keys."""
    seen = [(mpf(weight), sink) for weight, sink, see in zip(row, sinks, visible, strict=True) if see]
    sink = [mpmath.fsum(weight for weight, s in seen if s)] if any(s for _, s in seen) else []
    return _closed([*sink, *(weight for weight, s in seen if not s)])


@mp.workdps(DIGITS + 400)
def measures(
    x: Sequence[float], y: Sequence[float], sinks: Sequence[int], visible: Sequence[int], delta: float | None
) -> dict[str, Any]:
    """Every measure of two rows by its definition; with `delta`, zeros are replaced for Aitchison's."""
    has_sink = any(sink and see for sink, see in zip(sinks, visible, strict=True))
    keep = [_keep(row, sinks, visible) for row in (x, y)]
    drop = [_closed(row[has_sink:]) for row in keep]
    found = {f"{name}/keep": value for name, value in _distances(*keep).items()}
    found |= {f"{name}/drop": value for name, value in _distances(*drop).items()}
    if delta is not None:
        counts = [sum(not part for part in row) for row in keep]
        keep = [
            [part * (1 - count * mpf(delta)) if part else mpf(delta) for part in row]
            for row, count in zip(keep, counts, strict=True)
        ]
    if all(part for row in keep for part in row):
        found |= _aitchison(*keep, has_sink)
        found["clr"] = _clr(keep[0])
    shares = [row[0] if has_sink else mpf(0) for row in keep] if delta is None else []
    if shares:
        binaries = [_entropy([share, 1 - share]) for share in shares]
        contents = [_entropy(row) for row in drop]
        found |= {
            "entropy_split": [_entropy(keep[0]), binaries[0], contents[0]],
            "entropy_change": [
                _entropy(keep[1]) - _entropy(keep[0]),
                binaries[1] - binaries[0] - (shares[1] - shares[0]) * (contents[0] + contents[1]) / 2,
                (1 - (shares[0] + shares[1]) / 2) * (contents[1] - contents[0]),
            ],
        }
    return found


@mp.workdps(DIGITS + 400)
def score_measures(
    x: Sequence[float], y: Sequence[float], sinks: Sequence[int], visible: Sequence[int]
) -> dict[str, Any]:
    """What is computed from scores: the Aitchison split of two softmax rows, entropies and their change."""
    rows = [[mpmath.exp(mpf(score)) for score in row] for row in (x, y)]
    found = measures(*rows, sinks, visible, None)
    return {name: found[name] for name in found if name.startswith(("aitchison", "entropy_"))}


def _exact_row(rng: random.Random, count: int) -> list[int]:
    """Positive integers that sum to 2^20."""
    cuts = sorted(rng.sample(range(1, 2**20), count - 1))
    return [high - low for low, high in zip([0, *cuts], [*cuts, 2**20], strict=True)]


def cases() -> list[dict[str, Any]]:
    """The fixed inputs, each with a name, two rows (or rows of scores), masks and, maybe, a delta."""
    rng = random.Random(20)
    found: list[dict[str, Any]] = []

    def add(name: str, x: Sequence[float], y: Sequence[float], sinks: Sequence[int], **more: Any) -> None:
        found.append({"name": name, "x": list(x), "y": list(y), "sinks": list(sinks), **more})

    add("worked example, A and B", [0.9, 0.08, 0.02], [0.9, 0.02, 0.08], [1, 0, 0])
    add("worked example, A and C", [0.9, 0.08, 0.02], [0.5, 0.4, 0.1], [1, 0, 0])
    for count, n_sinks in ((8, 1), (11, 2), (13, 0), (29, 1), (61, 3)):
        sinks = [int(key < n_sinks) for key in range(count)]
        rng.shuffle(sinks)
        x, y = ([rng.gauss(0, 3) for _ in range(count)] for _ in range(2))
        add(f"scores, {count} keys, {n_sinks} sinks", x, y, sinks, scores=True)
        add(f"close scores, {count} keys", x, [a + rng.gauss(0, 1e-3) for a in x], sinks, scores=True)
        rows = [[2.0**-20 * part for part in _exact_row(rng, count)] for _ in range(2)]
        add(f"{count} keys, {n_sinks} sinks", *rows, sinks, exact=True)
        for power in (30, 40, 52):
            step = [rng.choice((-1, 1)) * 2.0**-power for _ in range(count)]
            step[rows[0].index(max(rows[0]))] -= sum(step)
            close = [a + b for a, b in zip(rows[0], step, strict=True)]
            add(f"{count} keys, 2^-{power} apart", rows[0], close, sinks, exact=True)
        hidden = [int(key % 3 != 1) for key in range(count)]
        add(f"{count} keys, some not visible", *map(_reclosed(hidden), rows), sinks, visible=hidden)
    add("zeros", [0.5, 0.375, 0.125, 0.0], [0.5, 0.25, 0.125, 0.125], [1, 0, 0, 0], exact=True)
    add("nothing in common", [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.25, 0.75], [0, 0, 0, 0], exact=True)
    add("zeros replaced", [0.5, 0.4, 0.1, 0.0], [0.5, 0.39, 0.1, 0.01], [1, 0, 0, 0], delta=1e-6)
    add("sink replaced", [0.0, 0.25, 0.75, 0.0], [0.0, 0.5, 0.25, 0.25], [1, 0, 0, 0], delta=2.0**-10)
    tiny = 2.0**-200
    add("nearly all on the sink", [1.0, tiny, 3 * tiny], [1.0, 2 * tiny, tiny], [1, 0, 0])
    add("nearly no sink", [tiny, 0.25, 0.75], [3 * tiny, 0.5, 0.5], [1, 0, 0])
    return found


def _reclosed(visible: Sequence[int]) -> Any:
    """A function that closes the visible keys of a row and puts nonsense on the others."""

    def close(row: Sequence[float]) -> list[float]:
        whole = sum(weight for weight, see in zip(row, visible, strict=True) if see)
        return [weight / whole if see else 7.0 for weight, see in zip(row, visible, strict=True)]

    return close


def _digits(value: Any) -> Any:
    return [_digits(part) for part in value] if isinstance(value, list) else mpmath.nstr(value, DIGITS)


def main() -> None:
    """Compute and write the file."""
    lines = []
    for case in cases():
        visible = case.get("visible", [1] * len(case["x"]))
        masks = case["sinks"], visible
        if case.get("scores"):
            values = score_measures(case["x"], case["y"], *masks)
        else:
            values = measures(case["x"], case["y"], *masks, case.get("delta"))
        values = {name: _digits(value) for name, value in values.items()}
        hexes = {side: [weight.hex() for weight in case[side]] for side in "xy"}
        lines.append(json.dumps({**case, **hexes, "values": values}))
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
