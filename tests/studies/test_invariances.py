from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from text_models import by_key, small_model, width

import oracle
from oracle import InputError, Model
from validation.properties import Implementation
from validation.report.document import Check, Document, Table
from validation.studies import invariance_cells
from validation.studies.expected_invariances import CHANGES, EXPECTATIONS, SINKS, expectation
from validation.studies.invariance_cells import DISTANCES, FACTOR, Cell, measure_cells
from validation.studies.invariances import invariance_table
from validation.texts import SENTENCES

TEXTS = ("the doctor saw the nurse .", "she walk , a donkey !")
ORACLE = Implementation()


@pytest.fixture(scope="module")
def small() -> Model:
    return small_model(seed=3)


def cell(cells: list[Cell], *key: str) -> Cell:
    (found,) = (each for each in cells if each[:4] == key)
    return found


def test_every_cell_has_one_expectation() -> None:
    used = set()
    for change in CHANGES:
        for sinks in SINKS:
            used |= {expectation(change, sinks, *distance).name for distance in DISTANCES}
    assert used == {law.name for law in EXPECTATIONS}
    assert all(law.reason for law in EXPECTATIONS)


def test_table_of_the_bundled_model(minilm: Model) -> None:
    steps: list[tuple[int, int]] = []
    parts = invariance_table(minilm, SENTENCES[:3], lambda what, done, total: steps.append((done, total)))
    assert Document("audit", parts=parts).failed == ()
    assert steps == [(done, 10) for done in range(11)]
    found = by_key(parts)
    grid = {(row["metric"], row["convention"]): row for row in found["invariances"].records()}
    assert len(grid) == len(DISTANCES) == 15
    assert {row["constant"] for row in grid.values()} == {"stays"}
    assert {row["permutation"] for row in grid.values()} == {"stays"}
    for (metric, convention), row in grid.items():
        assert row["sink_score"] == ("stays" if convention == "drop" else "changes")
        if metric in ("Aitchison", "Aitchison sink"):
            one = "" if convention == "drop" else ", one key"
            assert row["temperature"] == f"t^2{one}"
            assert row["offset"] == ("one key" if one else "stays")
        else:
            assert (row["offset"], row["temperature"]) == ("changes", "changes")
    assert len(found["invariance_cells"].rows) == 150
    assert not found["invariance_cells"].shown


def test_counterexamples_hold_when_they_are_made_again(minilm: Model) -> None:
    """The distance before is that of the rows of the model itself, at the place that the table names."""
    parts = invariance_table(minilm, SENTENCES[:2])
    rows = by_key(parts)["invariance_counterexamples"].records()
    assert len(rows) == 36
    plain = [row for row in rows if row["metric"] == "JSD" and row["sinks"] == "one"]
    assert {row["change"] for row in plain} == {"sink score", "offset", "temperature"}
    for row in plain:
        trace = oracle.forward(minilm, SENTENCES[row["text"] - 1], sink="first", keep=("scores",))
        places = [tuple(map(int, head.split("."))) for head in row["heads"].split()]
        scores = [trace.scores[place][row["query"]][None].astype(np.float64) for place in places]
        pair = [np.exp(score) / np.exp(score).sum() for score in scores]
        again = oracle.row_distances(*pair, trace.sink_mask, "jsd", row["convention"])
        assert again[0] == pytest.approx(row["before"], rel=1e-12)
        assert row["after"] != pytest.approx(row["before"], rel=1e-6)


def test_tables_fit_a_terminal(small: Model) -> None:
    for part in invariance_table(small, TEXTS):
        if isinstance(part, Table) and part.shown and part.key != "invariance_laws":
            assert width(part) <= 80


def test_the_seed_decides_the_changes(small: Model) -> None:
    first, again, other = (measure_cells(small, TEXTS, seed=seed) for seed in (0, 0, 1))
    assert first == again
    key = "one", "sink score", "jsd", "keep"
    assert cell(first, *key).after != cell(other, *key).after


def test_temperature_shows_the_power(small: Model) -> None:
    cells = measure_cells(small, TEXTS)
    found = cell(cells, "one", "temperature", "aitchison", "drop")
    assert found.after == pytest.approx(FACTOR**2 * found.before, rel=1e-12)
    assert found.power == 2
    curved = cell(cells, "one", "temperature", "jsd", "drop")
    assert 0 < curved.power < 2
    assert curved.found == "fails"


def test_several_sinks_without_special_tokens_are_the_first_two(small: Model) -> None:
    nameless = replace(small, config=replace(small.config, sink_ids=()), tokenizer=None)
    ids = [[4, 5, 6, 7, 8, 9, 10], [11, 12, 4, 5, 6]]
    assert Document("audit", parts=invariance_table(nameless, ids)).failed == ()


def without(name: str, change: Any) -> Implementation:
    true = getattr(ORACLE, name)
    return replace(ORACLE, **{name: lambda *given: change(true, *given)})


@pytest.mark.parametrize(
    ("wrong", "key", "words"),
    [
        (
            # rows that are not closed when the sink is dropped know of its score
            without("row_distances", lambda true, x, y, s, m, c, v: true(x, y, s, m, "keep", v)),
            "invariance_sink_score",
            "drop",
        ),
        (
            # a sink part that is the mean of the sink scores has the offset law with several sinks too
            without(
                "aitchison_split_from_scores",
                lambda true, x, y, s, v: true(x, y, s & (np.arange(len(s)) == np.argmax(s)), v),
            ),
            "invariance_offset",
            "several",
        ),
        (
            without(
                "aitchison_split_from_scores",
                lambda true, x, y, s, v: true(x, y, s, v)._replace(content=abs(x - y)[..., 1:].sum(axis=-1)),
            ),
            "invariance_constant",
            "Aitchison, drop",
        ),
        (
            without(
                "row_distances", lambda true, x, y, s, m, c, v: true(x, y, np.arange(len(s)) == 0, m, c, v)
            ),
            "invariance_permutation",
            "cosine, drop, one",
        ),
        (
            without(
                "aitchison_split_from_scores",
                lambda true, *given: true(*given)._replace(content=np.sqrt(true(*given).content)),
            ),
            "invariance_temperature",
            "Aitchison, drop",
        ),
    ],
)
def test_a_wrong_distance_fails_the_check_of_its_change(
    small: Model, wrong: Implementation, key: str, words: str
) -> None:
    parts = invariance_table(small, TEXTS, implementation=wrong)
    check = by_key(parts)[key]
    assert isinstance(check, Check)
    assert not check.ok
    assert words in check.found
    grid = str(by_key(parts)["invariances"].rows)
    assert "(not as expected)" in grid


def test_a_change_between_rounding_and_a_counterexample_is_unclear(
    small: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invariance_cells, "_bound", lambda samples: 1e-2)
    cells = measure_cells(small, TEXTS)
    found = cell(cells, "one", "offset", "jsd", "keep")
    assert found.found == "unclear"
    assert not found.ok


def test_what_cannot_be_compared_is_refused(small: Model) -> None:
    with pytest.raises(InputError, match="a text with two content tokens"):
        invariance_table(small, ["nurse"])
    one = replace(small, config=replace(small.config, n_layers=1, n_heads=1))
    with pytest.raises(InputError, match="two heads"):
        invariance_table(one, TEXTS)
