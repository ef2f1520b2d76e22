from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from row_strategies import DTYPES, FORMS, Case, cases, in_form

import oracle
from oracle import Unit
from validation import properties as laws
from validation.mutants import random_model
from validation.properties import Finding, Implementation, LawBroken, deviation, size_of

ORACLE = Implementation()
quick = settings(max_examples=60, deadline=None)
slower = settings(max_examples=20, deadline=None)


@quick
@given(cases())
def test_rows_sum_to_one(case: Case) -> None:
    laws.rows_sum_to_one(ORACLE, case.attention, case.visible).require()


@quick
@given(cases())
def test_share_in_range(case: Case) -> None:
    laws.share_in_range(ORACLE, *case).require()
    laws.share_in_range(ORACLE, case.attention, case.sink_mask, None, case.visible).require()


@quick
@given(cases())
def test_all_keys_sink_is_share_one(case: Case) -> None:
    everything = np.ones_like(case.sink_mask)
    share = ORACLE.sink_share(case.attention, everything, None, case.visible)
    assert ((share == 1) | np.isnan(share)).all()


@quick
@given(cases())
def test_share_by_definition(case: Case) -> None:
    laws.share_by_definition(ORACLE, *case).require()
    laws.share_by_definition(ORACLE, case.attention, case.sink_mask, None, case.visible).require()


@quick
@given(cases())
def test_share_of_weights(case: Case) -> None:
    laws.share_of_weights(ORACLE, *case).require()


@quick
@given(cases())
def test_odds_law(case: Case) -> None:
    laws.odds_law(ORACLE, *case).require()


@quick
@given(cases())
def test_ratio_decides_direction(case: Case) -> None:
    laws.ratio_decides_direction(ORACLE, *case).require()


@quick
@given(cases(), st.floats(1e-3, 1e3))
def test_norm_scale_is_free(case: Case, factor: float) -> None:
    laws.norm_scale_is_free(ORACLE, *case[:3], factor, case.visible).require()


@quick
@given(cases())
def test_unit_norms_are_attention(case: Case) -> None:
    laws.unit_norms_are_attention(ORACLE, case.attention, case.sink_mask, case.visible).require()


@quick
@given(cases(), st.randoms(use_true_random=False))
def test_key_order_is_free(case: Case, random: Any) -> None:
    order = list(range(len(case.sink_mask)))
    random.shuffle(order)
    laws.key_order_is_free(ORACLE, *case[:3], np.array(order, dtype=np.int64), case.visible).require()


@quick
@given(cases(), st.integers(0, 5), st.booleans(), st.sampled_from([0.0, 0.25, 3.0, float("nan")]))
def test_padding_is_free(case: Case, padding: int, left: bool, garbage: float) -> None:
    rows = ORACLE.weighted_rows(case.attention, None, case.visible)
    rows = np.where(np.isnan(rows), 0, rows)
    laws.padding_is_free(ORACLE, rows, case.sink_mask, case.norm, padding, left, garbage).require()


@quick
@given(cases())
def test_ratio_by_definition(case: Case) -> None:
    seen = None if case.visible is None or case.visible.ndim > 1 else case.visible
    laws.ratio_by_definition(ORACLE, case.norm, case.sink_mask, seen).require()


def test_ratio_without_any_key() -> None:
    for visible in (None, np.zeros(0, bool), np.zeros((3, 0), bool)):
        assert ORACLE.value_norm_ratio(np.zeros((2, 0)), np.zeros(0, bool), visible).shape == (2, 0)


@quick
@given(cases())
def test_results_are_float64_or_wider(case: Case) -> None:
    for function, arguments in (
        (ORACLE.sink_share, case[:3]),
        (ORACLE.norm_odds_ratio, case[:3]),
        (ORACLE.weighted_rows, (case.attention, case.norm)),
        (ORACLE.value_norm_ratio, (case.norm, case.sink_mask)),
    ):
        if case.visible is None:
            laws.result_dtype(function, *arguments).require()


@quick
@given(cases())
def test_arguments_stay_as_they_are(case: Case) -> None:
    bound = ORACLE.rounding(case.attention.shape[-1], case.attention)
    if case.visible is None:
        laws.arguments_stay(ORACLE.sink_share, bound, *case[:3]).require()
        laws.arguments_stay(ORACLE.weighted_rows, bound, case.attention, case.norm).require()
        laws.arguments_stay(ORACLE.value_norm_ratio, bound, case.norm, case.sink_mask).require()


class Heads(NamedTuple):
    attention: np.ndarray
    values: np.ndarray
    output_weight: np.ndarray


@st.composite
def several_heads(draw: st.DrawFn) -> Heads:
    """Rows with mass, values and an output projection of one layer; heads may cancel each other."""
    heads, queries, keys, d_head = (draw(st.integers(1, 4)) for _ in range(4))
    d_model, dtype = draw(st.integers(1, 6)), draw(st.sampled_from(DTYPES[1:]))
    counts = draw(arrays(np.int64, (heads, queries, keys), elements=st.integers(1, 9)))
    attention = (counts / counts.sum(axis=-1, keepdims=True)).astype(dtype)
    eighths = st.integers(-16, 16).map(lambda n: n / 8)
    values = draw(arrays(np.float64, (heads, keys, d_head), elements=eighths)).astype(dtype)
    weight = draw(arrays(np.float64, (heads * d_head, d_model), elements=eighths)).astype(dtype)
    form = draw(st.sampled_from(FORMS))
    return Heads(in_form(attention, form), in_form(values, form), in_form(weight, form))


@quick
@given(several_heads())
def test_norm_commutes_with_weight(heads: Heads) -> None:
    laws.norm_commutes_with_weight(ORACLE, *heads).require()


@quick
@given(several_heads())
def test_head_sum_by_definition(heads: Heads) -> None:
    laws.head_sum_by_definition(ORACLE, *heads).require()


def test_head_sum_of_cancelling_heads() -> None:
    rows = np.full((2, 3, 3), 1 / 3)
    values = np.array([[[1.0], [2.0], [3.0]]] * 2)
    finding = laws.head_sum_by_definition(ORACLE, rows, values, np.array([[1.0, 2.0], [-1.0, -2.0]]))
    assert finding.ok
    assert finding.error == 0


@st.composite
def pieces_of_words(draw: st.DrawFn) -> tuple[np.ndarray, list[Unit], np.ndarray]:
    """Whole-number weights of a text, its units with one sink at least, and norms."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    kinds = [draw(st.sampled_from(("word", "word", "punctuation"))) for _ in sizes]
    ends = np.cumsum([1, *sizes]).tolist()
    units = [Unit("[CLS]", "sink", (0,))]
    for number, (start, end, kind) in enumerate(zip(ends, ends[1:], kinds, strict=False)):
        units.append(Unit(f"{kind} {number}", kind, tuple(range(start, end))))
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 3)), ends[-1], ends[-1])
    counts = draw(arrays(np.int64, shape, elements=st.integers(0, 9))).astype(np.float64)
    norm = draw(arrays(np.int64, (*shape[:2], ends[-1]), elements=st.integers(1, 5))).astype(np.float64)
    return counts, units, norm


@quick
@given(pieces_of_words(), st.sampled_from(DTYPES))
def test_words_by_definition(text: tuple[np.ndarray, list[Unit], np.ndarray], dtype: Any) -> None:
    counts, units, _ = text
    laws.words_by_definition(ORACLE, counts.astype(dtype), [unit.tokens for unit in units]).require()


@quick
@given(pieces_of_words())
def test_rows_opened_by_definition(text: tuple[np.ndarray, list[Unit], np.ndarray]) -> None:
    counts, units, norm = text
    weights = {"attention": counts + 1, "value_norm": (counts + 1) * norm[..., None, :]}
    laws.rows_opened_by_definition(ORACLE, weights, units).require()


def test_examples_by_hand() -> None:
    laws.row_examples(ORACLE).require()
    laws.word_example(ORACLE).require()


models = st.builds(
    lambda seed, dtype: random_model(seed).astype(dtype),
    st.integers(0, 50),
    st.sampled_from(("float32", "float64", "longdouble")),
)


@slower
@given(models, st.data())
def test_forward_laws(model: oracle.Model, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 11))
    ids = data.draw(st.lists(st.integers(0, model.config.vocab_size - 1), min_size=count, max_size=count))
    mask = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    laws.rows_of_a_trace(ORACLE, model, ids, mask).require()
    laws.padded_run_is_plain_run(
        ORACLE, model, ids, data.draw(st.integers(0, 4)), data.draw(st.booleans())
    ).require()
    laws.value_norm_by_definition(ORACLE, model, ids).require()
    laws.transformed_norm_by_definition(ORACLE, model, ids).require()


# The checkers are checked: each has to refuse something that is wrong.


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (np.zeros(2), np.zeros(3)),
        (np.zeros((2, 1)), np.zeros(2)),
        (np.array([np.nan, 1]), np.array([0.0, 1])),
        (np.array([0.0, 1]), np.array([np.nan, 1])),
        (np.array([np.inf]), np.array([1.0])),
        (np.array([np.inf]), np.array([-np.inf])),
    ],
)
def test_what_cannot_be_measured_is_infinitely_wrong(found: np.ndarray, wanted: np.ndarray) -> None:
    assert deviation(found, wanted)[0] == np.inf


def test_deviation_finds_the_worst_place() -> None:
    error, place = deviation([[1.0, 2.0], [3.0, np.nan]], [[1.0, 2.5], [3.25, np.nan]])
    assert error == 0.5
    assert "(0, 1): 2.0 instead of 2.5" in place
    assert deviation([4.0], [2.0], 4.0)[0] == 0.5
    assert deviation(np.zeros((0, 3)), np.zeros((0, 3))) == (0.0, "")
    assert size_of([np.nan, -3.0, np.inf]) == 3
    assert size_of([]) == 1
    assert size_of([0.0]) == 1


def test_a_broken_law_says_what_where_and_how_much() -> None:
    Finding("law", 1.0, 1.0).require()
    with pytest.raises(LawBroken, match=r"law: off by 0.5 at index 3, allowed 0.1"):
        Finding("law", 0.5, 0.1, "index 3").require()
    with pytest.raises(LawBroken):
        Finding("law", float("nan"), 1.0).require()


def test_rounding_grows_with_the_row_and_follows_the_dtype() -> None:
    wide = np.finfo(np.longdouble).eps / np.finfo(np.float64).eps
    assert ORACLE.rounding(9) == pytest.approx(52 * np.finfo(np.float64).eps)
    assert ORACLE.rounding(9, np.longdouble([1])) == pytest.approx(ORACLE.rounding(9) * float(wide))
    assert replace(ORACLE, epsilon=1e-7).rounding(9) == pytest.approx(52e-7)


def test_a_narrow_result_is_refused() -> None:
    finding = laws.result_dtype(lambda x: x.astype(np.float32), np.ones(3))
    assert not finding.ok
    assert not laws.result_dtype(lambda x: x > 0, np.ones(3)).ok


def test_a_function_that_writes_into_its_argument_is_refused() -> None:
    def careless(x: np.ndarray) -> np.ndarray:
        if x.flags.writeable:
            x += 1
        return np.zeros(3)

    assert not laws.arguments_stay(careless, 1e-12, np.ones(3)).ok


def test_a_function_that_depends_on_memory_order_is_refused() -> None:
    finding = laws.arguments_stay(lambda x: x.ravel(order="K"), 1e-12, np.arange(6.0).reshape(2, 3))
    assert not finding.ok


def test_a_weight_at_an_invisible_key_is_refused() -> None:
    rows = np.array([[0.5, 0.5]])
    leaky = replace(ORACLE, weighted_rows=lambda attention, norm=None, visible=None: rows)
    assert not laws.rows_sum_to_one(leaky, np.array([[1.0, 0.0]]), np.array([True, False])).ok


def test_a_padding_query_with_a_row_is_refused() -> None:
    unmasked = replace(ORACLE, forward=lambda model, ids, mask=None: oracle.forward(model, ids))
    assert not laws.rows_of_a_trace(unmasked, random_model(0), [1, 5, 2], [True, True, False]).ok


def test_a_wrong_head_or_link_is_refused() -> None:
    rng = np.random.default_rng(0)
    units = [Unit("[CLS]", "sink", (0,)), *(Unit(f"w{i}", "word", (i,)) for i in range(1, 5))]
    weights = {"attention": rng.random((1, 3, 5, 5)), "value_norm": rng.random((1, 3, 5, 5))}

    def with_change(**change: Any) -> Implementation:
        return replace(ORACLE, open_rows=lambda *a: oracle.open_rows(*a)._replace(**change))

    true = oracle.open_rows(weights, units, [0])
    assert laws.rows_opened_by_definition(ORACLE, weights, units).ok
    wrong_heads = {**true.heads, "value_norm": true.heads["value_norm"][::-1] + 1}
    assert not laws.rows_opened_by_definition(with_change(heads=wrong_heads), weights, units).ok
    assert not laws.rows_opened_by_definition(with_change(links=true.links[::-1]), weights, units).ok
    no_shares = {name: share + 0.1 for name, share in true.shares.items()}
    assert not laws.rows_opened_by_definition(with_change(shares=no_shares), weights, units).ok


def test_a_head_sum_of_the_wrong_shape_is_refused() -> None:
    lazy = replace(ORACLE, head_summed_norm=lambda attention, gram: np.zeros(3))
    rows = np.full((2, 3, 3), 1 / 3)
    assert not laws.head_sum_by_definition(lazy, rows, np.ones((2, 3, 1)), np.ones((2, 4))).ok
