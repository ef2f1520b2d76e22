from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from row_strategies import DTYPES, FORMS, in_form

import oracle
from oracle import CONVENTIONS, METRICS
from validation import distance_definitions as definitions
from validation import properties as laws
from validation.mutants.distance_subjects import head_texts, matrices, row_pair
from validation.properties import Implementation

ORACLE = Implementation()
quick = settings(max_examples=25, deadline=None)
BOUNDED = ("cosine", "jsd", "root_jsd", "hellinger", "l1", "entropy")
ALL = [(m, c) for m in METRICS for c in CONVENTIONS if (m, c) != ("aitchison_sink", "drop")]
METRIC_SPACES = [(m, c) for m, c in ALL if m not in ("cosine", "jsd")]
distances = st.sampled_from(ALL)


class Rows(NamedTuple):
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    sink_mask: np.ndarray
    visible: np.ndarray | None


@st.composite
def rows(draw: st.DrawFn, least: int = 1) -> Rows:
    """Three heads' rows of every float dtype and memory form; with `least` 0 some parts and rows are zero."""
    keys = draw(st.integers(1, 9))
    shape = (*draw(array_shapes(min_dims=1, max_dims=2, max_side=3)), keys)
    visible = draw(st.none() | arrays(np.bool_, (keys,)))
    dtype, form = draw(st.sampled_from(DTYPES)), draw(st.sampled_from(FORMS))
    found = []
    for _ in range(3):
        counts = draw(arrays(np.int64, shape, elements=st.integers(least, 20))).astype(np.float64)
        seen = np.where(True if visible is None else visible, counts, 0).sum(axis=-1, keepdims=True)
        found.append(
            in_form(np.divide(counts, seen, out=np.zeros(shape), where=seen > 0).astype(dtype), form)
        )
    return Rows(*found, draw(arrays(np.bool_, (keys,))), visible)


@st.composite
def scores(draw: st.DrawFn) -> Rows:
    """Three heads' scores, with minus infinity where nothing is visible."""
    keys = draw(st.integers(1, 9))
    shape = (*draw(array_shapes(min_dims=1, max_dims=2, max_side=3)), keys)
    visible = draw(st.none() | arrays(np.bool_, (keys,)))
    eighths = st.integers(-80, 80).map(lambda n: n / 8)
    masked = np.ones(keys, bool) if visible is None else visible
    found = [np.where(masked, draw(arrays(np.float64, shape, elements=eighths)), -np.inf) for _ in range(3)]
    return Rows(*found, draw(arrays(np.bool_, (keys,))), visible)


def wide_rows(seed: int) -> Rows:
    """Rows of 8 parts and more, sharp enough for weights of 1e-9 beside weights near one."""
    rng = np.random.default_rng(seed)
    keys = int(rng.integers(9, 40))
    found = []
    for _ in range(3):
        weights = np.exp(rng.normal(0, 4, (5, keys)))
        found.append(weights / weights.sum(axis=-1, keepdims=True))
    return Rows(*found, np.arange(keys) < rng.integers(0, 3), None)


@quick
@given(rows())
def test_clr_by_definition(case: Rows) -> None:
    laws.centred_log_ratios(ORACLE, case.x, case.visible).require()


@quick
@given(rows())
def test_splits_of_a_distance(case: Rows) -> None:
    given_rows = case.x, case.y, case.sink_mask, case.visible
    laws.split_is_orthogonal(ORACLE, *given_rows).require()
    laws.split_by_definition(ORACLE, *given_rows).require()


@pytest.mark.parametrize("seed", range(20))
def test_split_of_many_parts_is_orthogonal_to_the_last_digits(seed: int) -> None:
    case = wide_rows(seed)
    finding = laws.split_is_orthogonal(ORACLE, case.x, case.y, case.sink_mask)
    finding.require()
    norms = definitions.squared_norm(case.x, case.sink_mask)
    assert (norms > 8).all()  # so that the bound is relative to the norms themselves


@quick
@given(scores())
def test_splits_from_scores(case: Rows) -> None:
    laws.aitchison_from_scores(ORACLE, case.x, case.y, case.sink_mask, case.visible).require()
    laws.entropy_from_scores(ORACLE, case.x, case.sink_mask, case.visible).require()


@quick
@given(rows(least=0))
def test_splits_of_an_entropy(case: Rows) -> None:
    laws.entropy_chain_rule(ORACLE, case.x, case.sink_mask, case.visible).require()
    laws.entropy_by_definition(ORACLE, case.x, case.sink_mask, case.visible).require()


@quick
@given(rows(least=0))
def test_channels_of_an_entropy_difference(case: Rows) -> None:
    given_rows = case.x, case.y, case.sink_mask, case.visible
    laws.channels_add_up(ORACLE, *given_rows).require()
    laws.channels_by_definition(ORACLE, *given_rows).require()


@quick
@given(rows(least=0), st.sampled_from([1e-3, 1e-6]))
def test_zeros_replaced_by_definition(case: Rows, delta: float) -> None:
    laws.replaced_zeros_keep_ratios(ORACLE, case.x, case.sink_mask, delta, case.visible).require()


@quick
@given(rows(), distances)
def test_distances_by_definition(case: Rows, names: tuple[str, str]) -> None:
    laws.distance_by_definition(ORACLE, case.x, case.y, case.sink_mask, *names, case.visible).require()


@quick
@given(rows(least=0), st.sampled_from(BOUNDED), st.sampled_from(CONVENTIONS))
def test_distances_of_rows_with_zeros_by_definition(case: Rows, metric: str, convention: str) -> None:
    laws.distance_by_definition(
        ORACLE, case.x, case.y, case.sink_mask, metric, convention, case.visible
    ).require()


@quick
@given(rows(), distances)
def test_distances_are_symmetric(case: Rows, names: tuple[str, str]) -> None:
    laws.distance_is_symmetric(ORACLE, case.x, case.y, case.sink_mask, *names, case.visible).require()


@quick
@given(rows(), st.sampled_from(METRIC_SPACES))
def test_triangle_inequality(case: Rows, names: tuple[str, str]) -> None:
    laws.triangle_inequality(ORACLE, *case[:4], *names, case.visible).require()


def test_cosine_and_jsd_are_no_metrics() -> None:
    pair = row_pair(2).between()
    for metric in ("cosine", "jsd"):
        assert not laws.triangle_inequality(
            ORACLE, *pair.rows, pair.sink_mask, metric, "drop", pair.visible
        ).ok


@quick
@given(rows(), st.sampled_from(BOUNDED[1:]), st.integers(1, 7))
def test_equal_shares_scale_keep(case: Rows, metric: str, eighths: int) -> None:
    seen = np.ones_like(case.sink_mask) if case.visible is None else case.visible
    parts = [seen & case.sink_mask, seen & ~case.sink_mask]
    share = eighths / 8 if parts[0].any() and parts[1].any() else float(parts[0].any())
    pair = []
    for row in (case.x.astype(np.float64), case.y.astype(np.float64)):
        masses = [np.where(part, row, 0).sum(axis=-1, keepdims=True) for part in parts]
        sink, content = (
            np.where(p, row, 0) / np.where(m > 0, m, 1) for p, m in zip(parts, masses, strict=True)
        )
        pair.append(share * sink + (1 - share) * content)
    laws.equal_shares_scale_keep(ORACLE, *pair, case.sink_mask, metric, case.visible).require()


@quick
@given(rows(), st.sampled_from(METRICS[:-1]))
def test_keep_is_drop_without_a_sink(case: Rows, metric: str) -> None:
    laws.keep_is_drop_without_sink(ORACLE, case.x, case.y, case.sink_mask, metric, case.visible).require()


@quick
@given(rows(), distances, st.randoms(use_true_random=False))
def test_key_order_is_free(case: Rows, names: tuple[str, str], random: Any) -> None:
    order = list(range(len(case.sink_mask)))
    random.shuffle(order)
    laws.key_order_changes_no_distance(
        ORACLE, case.x, case.y, case.sink_mask, *names, np.array(order), case.visible
    ).require()


@quick
@given(rows(), distances, st.integers(0, 4), st.booleans(), st.sampled_from([0.0, 0.25, float("nan")]))
def test_padding_is_free(
    case: Rows, names: tuple[str, str], padding: int, left: bool, garbage: float
) -> None:
    seen = np.ones_like(case.sink_mask) if case.visible is None else case.visible
    pair = [array[..., seen] for array in (case.x, case.y)]
    if seen.any():
        laws.padding_changes_no_distance(
            ORACLE, *pair, case.sink_mask[seen], *names, padding, left, garbage
        ).require()


@pytest.mark.parametrize("names", ALL)
def test_heads_by_loops(names: tuple[str, str]) -> None:
    texts = head_texts(5)
    if names[0].startswith("aitchison"):  # the row without content mass has a zero, which is refused there
        texts.queries[0][4] = texts.queries[1][4] = texts.queries[2][4] = False
        for attention, seen in zip(texts.rows, texts.visible, strict=True):
            attention[1, 2, 4] = seen[4] / seen[4].sum()
    laws.heads_are_means_of_rows(
        ORACLE, texts.rows, texts.sink_mask, *names, texts.visible, texts.queries
    ).require()
    laws.text_order_changes_no_sum(
        ORACLE, texts.rows, texts.sink_mask, *names, texts.visible, texts.queries, (1, 2, 0)
    ).require()
    laws.chosen_texts_by_loops(
        ORACLE, texts.rows, texts.sink_mask, *names, texts.visible, texts.queries, (1, 2)
    ).require()


def test_preset_by_definition() -> None:
    texts = head_texts(6)
    laws.preset_by_definition(ORACLE, texts.rows, texts.visible, texts.queries).require()


@st.composite
def matrix_pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Any, float]:
    """Two matrices (head, head) of few whole numbers, some NaN; groups and a margin."""
    heads = draw(st.integers(0, 7))
    entries = st.one_of(st.integers(0, 4).map(float), st.just(float("nan")))
    pair = [draw(arrays(np.float64, (heads, heads), elements=entries)) for _ in range(2)]
    for matrix in pair:
        matrix[np.diag_indices(heads)] = 0
    groups = draw(st.none() | arrays(np.int64, (heads,), elements=st.integers(0, 2)))
    return pair[0], pair[1], groups, draw(st.sampled_from([0.0, 0.1, 0.5]))


@quick
@given(matrix_pairs())
def test_flips_by_brute_force(case: tuple[Any, ...]) -> None:
    laws.flips_by_brute_force(ORACLE, *case).require()
    laws.flips_are_symmetric(ORACLE, *case[:3]).require()
    laws.no_flips_with_itself(ORACLE, case[0], case[2]).require()


@pytest.mark.parametrize("seed", range(5))
def test_flips_of_real_numbers(seed: int) -> None:
    first, second = matrices(seed, 8, tied=False)
    laws.flips_by_brute_force(ORACLE, first, second).require()
    laws.monotone_changes_no_verdict(ORACLE, first, second).require()
    laws.flips_of_a_reversal(ORACLE, first).require()
    laws.arccos_by_definition(ORACLE, first, second).require()


# The laws are tried too: each has to refuse something that is wrong; the mutants do that for most of them.


def test_a_distance_of_the_wrong_shape_is_refused() -> None:
    pair = row_pair(0)
    flat = replace(ORACLE, row_distances=lambda *given: oracle.row_distances(*given)[..., 0])
    assert not laws.distance_by_definition(
        flat, *pair.rows[:2], pair.sink_mask, "jsd", "keep", pair.visible
    ).ok


def test_a_negative_distance_is_refused() -> None:
    pair = row_pair(0)
    below = replace(ORACLE, row_distances=lambda *given: -1e-20 * oracle.row_distances(*given))
    assert not laws.distance_is_symmetric(
        below, *pair.rows[:2], pair.sink_mask, "jsd", "keep", pair.visible
    ).ok


def test_a_flip_too_many_is_refused() -> None:
    first, second = matrices(0)

    def wrong(*given: Any) -> Any:
        true = oracle.verdict_flips(*given)
        return true._replace(flipped=true.flipped + 1)

    assert not laws.flips_by_brute_force(replace(ORACLE, verdict_flips=wrong), first, second).ok
    assert not laws.no_flips_with_itself(replace(ORACLE, verdict_flips=wrong), first).ok


def test_a_count_that_is_off_is_refused_however_small_the_sum() -> None:
    texts = head_texts(5)

    def wrong(*given: Any, **named: Any) -> Any:
        true = oracle.distance_sums(*given, **named)
        return true._replace(counts={key: count + 1 for key, count in true.counts.items()})

    assert not laws.heads_are_means_of_rows(
        replace(ORACLE, distance_sums=wrong), *texts[:2], "jsd", "keep", *texts[2:]
    ).ok
