from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distance_strategies import ALL, RowCase, matrix_pairs, row_cases, score_cases, texts_of_heads
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from oracle import CONVENTIONS, METRICS
from validation import distance_definitions as definitions
from validation import properties as laws
from validation.mutants.distance_subjects import head_texts, matrices, row_pair
from validation.properties import Implementation

ORACLE = Implementation()
quick = settings(max_examples=25, deadline=None)
BOUNDED = ("cosine", "jsd", "root_jsd", "hellinger", "l1", "entropy")
METRIC_SPACES = [(m, c) for m, c in ALL if m not in ("cosine", "jsd")]
distances = st.sampled_from(ALL)


def wide_rows(seed: int) -> RowCase:
    """Rows of 8 parts and more, sharp enough for weights of 1e-9 beside weights near one."""
    rng = np.random.default_rng(seed)
    keys = int(rng.integers(9, 40))
    found = []
    for _ in range(3):
        weights = np.exp(rng.normal(0, 4, (5, keys)))
        found.append(weights / weights.sum(axis=-1, keepdims=True))
    return RowCase(*found, np.arange(keys) < rng.integers(0, 3), None)


@quick
@given(row_cases())
def test_clr_by_definition(case: RowCase) -> None:
    laws.centred_log_ratios(ORACLE, case.x, case.visible).require()


@quick
@given(row_cases())
def test_splits_of_a_distance(case: RowCase) -> None:
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
@given(score_cases())
def test_splits_from_scores(case: RowCase) -> None:
    laws.aitchison_from_scores(ORACLE, case.x, case.y, case.sink_mask, case.visible).require()
    laws.entropy_from_scores(ORACLE, case.x, case.sink_mask, case.visible).require()
    laws.channels_from_scores(ORACLE, case.x, case.y, case.sink_mask, case.visible).require()


@quick
@given(row_cases(least=0))
def test_splits_of_an_entropy(case: RowCase) -> None:
    laws.entropy_chain_rule(ORACLE, case.x, case.sink_mask, case.visible).require()
    laws.entropy_by_definition(ORACLE, case.x, case.sink_mask, case.visible).require()


@quick
@given(row_cases(least=0))
def test_channels_of_an_entropy_difference(case: RowCase) -> None:
    given_rows = case.x, case.y, case.sink_mask, case.visible
    laws.channels_add_up(ORACLE, *given_rows).require()
    laws.channels_by_definition(ORACLE, *given_rows).require()


@quick
@given(row_cases(least=0), st.sampled_from([1e-3, 1e-6]))
def test_zeros_replaced_by_definition(case: RowCase, delta: float) -> None:
    laws.replaced_zeros_keep_ratios(ORACLE, case.x, case.sink_mask, delta, case.visible).require()


@quick
@given(row_cases(), distances)
def test_distances_by_definition(case: RowCase, names: tuple[str, str]) -> None:
    laws.distance_by_definition(ORACLE, case.x, case.y, case.sink_mask, *names, case.visible).require()


@quick
@given(row_cases(least=0), st.sampled_from(BOUNDED), st.sampled_from(CONVENTIONS))
def test_distances_of_rows_with_zeros_by_definition(case: RowCase, metric: str, convention: str) -> None:
    laws.distance_by_definition(
        ORACLE, case.x, case.y, case.sink_mask, metric, convention, case.visible
    ).require()


@quick
@given(row_cases(), distances)
def test_distances_are_symmetric(case: RowCase, names: tuple[str, str]) -> None:
    laws.distance_is_symmetric(ORACLE, case.x, case.y, case.sink_mask, *names, case.visible).require()


@quick
@given(row_cases(), st.sampled_from(METRIC_SPACES))
def test_triangle_inequality(case: RowCase, names: tuple[str, str]) -> None:
    laws.triangle_inequality(ORACLE, *case[:4], *names, case.visible).require()


def test_cosine_and_jsd_are_no_metrics() -> None:
    pair = row_pair(2).between()
    for metric in ("cosine", "jsd"):
        assert not laws.triangle_inequality(
            ORACLE, *pair.rows, pair.sink_mask, metric, "drop", pair.visible
        ).ok


@quick
@given(row_cases(), st.sampled_from(BOUNDED[1:]), st.integers(1, 7))
def test_equal_shares_scale_keep(case: RowCase, metric: str, eighths: int) -> None:
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
@given(row_cases(), st.sampled_from(METRICS[:-1]))
def test_keep_is_drop_without_a_sink(case: RowCase, metric: str) -> None:
    laws.keep_is_drop_without_sink(ORACLE, case.x, case.y, case.sink_mask, metric, case.visible).require()


@quick
@given(row_cases(), distances, st.randoms(use_true_random=False))
def test_key_order_is_free(case: RowCase, names: tuple[str, str], random: Any) -> None:
    order = list(range(len(case.sink_mask)))
    random.shuffle(order)
    laws.key_order_changes_no_distance(
        ORACLE, case.x, case.y, case.sink_mask, *names, np.array(order), case.visible
    ).require()


@quick
@given(row_cases(), distances, st.integers(0, 4), st.booleans(), st.sampled_from([0.0, 0.25, float("nan")]))
def test_padding_is_free(
    case: RowCase, names: tuple[str, str], padding: int, left: bool, garbage: float
) -> None:
    seen = np.ones_like(case.sink_mask) if case.visible is None else case.visible
    pair = [array[..., seen] for array in (case.x, case.y)]
    if seen.any():
        laws.padding_changes_no_distance(
            ORACLE, *pair, case.sink_mask[seen], *names, padding, left, garbage
        ).require()


@pytest.mark.parametrize("names", ALL)
def test_heads_by_loops(names: tuple[str, str]) -> None:
    rows, sinks, visible, queries = texts_of_heads(names[0])
    laws.heads_are_means_of_rows(ORACLE, rows, sinks, *names, visible, queries).require()
    laws.text_order_changes_no_sum(ORACLE, rows, sinks, *names, visible, queries, (1, 2, 0)).require()
    laws.chosen_texts_by_loops(ORACLE, rows, sinks, *names, visible, queries, (1, 2)).require()


def test_preset_by_definition() -> None:
    texts = head_texts(6)
    laws.preset_by_definition(ORACLE, texts.rows, texts.visible, texts.queries).require()


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
