"""What the distances refuse, and how they say it."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_models import random_rows
from wording import refused

from oracle import (
    InputTypeError,
    KeyRange,
    clark2019_distances,
    distance_sums,
    head_distances,
    mean_distances,
    row_distances,
)

SINK = np.array([True, False, False])


@pytest.fixture
def rng():
    return np.random.default_rng(31)


def test_wrong_rows_are_refused_with_their_place(rng):
    rows = random_rows(rng, 2, 3, 4, 4)
    wrong = rows.copy()
    wrong[1, 2, 3, 1] = np.nan
    sinks = np.arange(4) == 0
    with refused("attention", "nan at layer 1, head 2, query 3, key 1 (1 in all)"):
        head_distances(wrong, sinks)
    with refused("rows[1]", "nan at layer 1, head 2, query 3, key 1 (1 in all)"):
        head_distances([rows, wrong], sinks)
    with refused("rows[0]", "a sum of 2 at layer", "eval mode"):
        clark2019_distances([2 * rows, rows])
    with refused("x", "a sum of 2", "eval mode"):
        row_distances(2 * rows, rows, sinks)
    with refused("scores[1]", "nan at layer 1, head 2, query 3, key 1"):
        distance_sums([rows, rows], sinks, "aitchison", scores=[rows, wrong])
    with refused("scores", "nan at layer 1, head 2, query 3, key 1"):
        distance_sums(rows, sinks, "aitchison", scores=wrong)
    with refused("attention", "dtype", error=InputTypeError):
        head_distances("rows", sinks)


def test_wrong_calls_are_refused(rng):
    rows = random_rows(rng, 2, 3, 4, 4)
    sinks = np.arange(4) == 0
    for call in (row_distances, head_distances):
        first = (rows, rows, sinks) if call is row_distances else (rows, sinks)
        with refused("metric", "cosine, jsd", "'euclid'"):
            call(*first, "euclid")
        with refused("convention", "keep, drop", "'both'"):
            call(*first, "jsd", "both")
        with refused("convention", "keep with the metric aitchison_sink"):
            call(*first, "aitchison_sink", "drop")
        with refused("zeros", "'none'"):
            call(*first, "aitchison", zeros="none")
        with refused("delta", "None"):
            call(*first, "aitchison", zeros="replace")
    with refused("attention", "(layer, head, query, key)", "shape (1, 2, 3, 4, 4)", "list"):
        head_distances(rows[None], sinks)
    with refused("attention", "shape (4, 4)"):
        head_distances(rows[0, 0], sinks)
    with refused("rows", "at least one text"):
        head_distances([], sinks)
    with refused("rows[1]", "the heads of the first text, (2, 3)", "(2, 2)"):
        head_distances([rows, rows[:, :2]], sinks)
    with refused("sink_mask", "(4, 4)", "shape (3,)"):
        head_distances(rows, SINK)
    with refused("sink_mask", "one for each of 2 texts", "a list of 3"):
        head_distances([rows, rows], [sinks] * 3)
    with refused("visible", "one for each of 2 texts", "a list of 1"):
        head_distances([rows, rows], sinks, visible=[np.ones((4, 4), bool)])
    with refused("visible", "(4, 4)", "shape (2, 3, 4, 4)"):
        head_distances(rows, sinks, visible=np.ones((2, 3, 4, 4), bool))
    with refused("visible.start", "4 queries"):
        head_distances(rows, sinks, visible=KeyRange.causal(3))
    with refused("scores", "the shape of attention, (2, 3, 4, 4)", "(3, 4, 4)"):
        distance_sums(rows, sinks, scores=rows[0])
    for queries in ([0, 1, 3, 2], [True] * 3, 1.5):
        with refused("queries", "4 queries", "not positions"):
            head_distances(rows, sinks, queries=queries)


def test_wrong_choices_of_means_are_refused(rng):
    found = distance_sums([random_rows(rng, 2, 3, 3)] * 3, SINK, "jsd")
    with refused("metric", "jsd/keep, jsd/drop", "cosine/keep"):
        mean_distances(found, "cosine")
    for texts in ([0, 3], [-1], [True, False], [[0]], [0.5], 1):
        with refused("texts", "indices from 0 to 2", "3 texts"):
            mean_distances(found, "jsd", texts=texts)
