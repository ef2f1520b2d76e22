"""Statistics of heads, by definition and from both layers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pruning_models import tiny_llama
from wording import refused

import fastpath
import oracle
from oracle import Trace, forward
from validation.studies.pruning.criteria import CRITERIA, KEPT, content_contribution, head_statistics

TEXT = "Two boats went by, one after the other."


def traced(**choices: Any) -> tuple[oracle.Model, Trace]:
    model = tiny_llama(**choices).astype("float64")
    return model, forward(model, TEXT, sink="first", keep=KEPT)


def entropy(parts: np.ndarray) -> float:
    return -sum(part * math.log(part) for part in parts if part > 0)


def by_definition(model: oracle.Model, trace: Trace, layer: int, head: int) -> dict[str, float]:
    """Every criterion of one head, row by row and key by key."""
    rows, norms = trace.attention[layer, head], trace.value_norm[layer, head]
    slices = model.layers[layer].output.weight[6 * head : 6 * head + 6]
    window = (model.config.windows or (None,) * 5)[layer] or 10**6
    found: dict[str, list[float]] = {name: [] for name in CRITERIA}
    entering = []
    for query in range(1, len(rows)):
        content = [key for key in range(1, query + 1) if query - key < window]
        if len(content) < 8:
            continue
        row, sink = rows[query], rows[query, 0]
        weighted = row * norms
        found["sink_share"].append(sink / row.sum())
        found["norm_sink_share"].append(weighted[0] / weighted.sum())
        found["content_entropy"].append(entropy(row[content] / row[content].sum()))
        found["entropy"].append(entropy(np.array([sink, *row[content]])))
        brought = sum(row[key] * (trace.values[layer, head, key] @ slices) for key in content)
        found["content_contribution"].append(float(np.sqrt((brought**2).sum())))
        entering.append(float(np.sqrt((trace.hidden_states[layer, query] ** 2).sum())))
    means = {name: sum(rows) / len(rows) for name, rows in found.items()}
    means["content_contribution"] /= (
        sorted(entering)[len(entering) // 2]
        if len(entering) % 2
        else float(np.mean(sorted(entering)[len(entering) // 2 - 1 : len(entering) // 2 + 1]))
    )
    return means


@pytest.mark.parametrize("windows", [(), (None, 11, None, 9, None)], ids=["whole", "windows"])
@pytest.mark.parametrize("engine", [oracle, fastpath], ids=["oracle", "fastpath"])
def test_statistics_by_definition(engine: Any, windows: tuple[int | None, ...]) -> None:
    model, trace = traced(windows=windows)
    found, check = head_statistics(model, trace, engine)
    assert check.ok
    assert "20 rows" in check.expected
    assert tuple(found.values) == tuple(CRITERIA)
    assert len(found.rows) == 5
    assert found.rows[0] == 39 - 8
    for layer, head in np.ndindex(5, 4):
        expected = by_definition(model, trace, layer, head)
        for name, values in found.values.items():
            assert values[layer, head] == pytest.approx(expected[name], abs=1e-12, rel=1e-12), name
    spread = [float(np.ptp(values)) for values in found.values.values()]
    assert min(spread) > 0.01


def test_contribution_of_one_row_by_hand() -> None:
    attention = np.array([[[0.5, 0.2, 0.3]]])
    values = np.array([[[9.0, 9.0], [1.0, 0.0], [0.0, 2.0]]])
    weight = np.array([[1.0, 0.0, 0.0], [0.0, 3.0, 4.0]])
    content, entering = np.array([False, True, True]), np.array([[0.0, 5.0, 0.0]])
    # 0.2 (1, 0, 0) + 0.3 (0, 6, 8)
    expected = math.sqrt(0.2**2 + 1.8**2 + 2.4**2) / 5
    found = content_contribution(attention, values, weight, content, entering)
    np.testing.assert_allclose(found, [expected], rtol=1e-15)
    narrow = content_contribution(
        *(part.astype(np.float32) for part in (attention, values, weight)), content, entering
    )
    assert narrow.dtype == np.float64


def test_rows_without_content_mass_count_for_no_content_entropy() -> None:
    model, trace = traced()
    rows = trace.attention
    rows[0, 0, 10] = rows[0, 0, 12] = np.eye(1, 39)[0]
    rows[1, 2, :] = np.eye(1, 39)[0]
    found, check = head_statistics(model, trace, oracle)
    assert check.ok
    split = oracle.entropy_split(rows[0, 0], trace.sink_mask, trace.visible)
    counted = np.r_[8:39]
    assert np.isnan(split.content[counted]).sum() == 2
    assert found.values["content_entropy"][0, 0] == pytest.approx(np.nanmean(split.content[counted]))
    assert found.values["entropy"][0, 0] == pytest.approx(split.total[counted].mean())
    assert np.isnan(found.values["content_entropy"][1, 2])
    assert found.values["sink_share"][1, 2] == 1
    assert found.values["content_contribution"][1, 2] == 0


def test_an_engine_that_is_off_fails_the_check() -> None:
    model, trace = traced()

    def row_measures(*arguments: Any, **named: Any) -> Any:
        found = oracle.row_measures(*arguments, **named)
        return found._replace(entropy=found.entropy._replace(total=found.entropy.total + 1e-9))

    _, check = head_statistics(model, trace, SimpleNamespace(row_measures=row_measures))  # type: ignore[arg-type]  # no module
    assert not check.ok
    assert check.found.startswith("20 outside")
    assert "total" in check.found


def test_a_text_without_rows_is_refused() -> None:
    model = tiny_llama(max_positions=8)
    trace = forward(model, np.arange(8), sink="first", keep=KEPT)
    with refused("text", "8 content keys", "8 tokens"):
        head_statistics(model, trace, oracle)
