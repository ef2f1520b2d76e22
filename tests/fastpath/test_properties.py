"""The laws of validation.properties, held against the fast path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_strategies import Case, cases

import fastpath
import oracle
from validation import properties as laws
from validation.properties import Implementation, LawBroken

quick = settings(max_examples=60, deadline=None)
compiled = cases(dtypes=(np.float16, np.float32, np.float64))


def fast(attention: np.ndarray, **changes: Any) -> Implementation:
    """The fast path's measures, with the rounding unit of the width that its kernels run in."""
    width = np.float64 if attention.dtype == np.float64 else np.float32
    names = ("sink_share", "weight_share", "norm_odds_ratio")
    functions = {name: getattr(fastpath, name) for name in names}
    return Implementation(**{**functions, "epsilon": float(np.finfo(width).eps), **changes})


@quick
@given(compiled)
def test_share_in_range(case: Case) -> None:
    laws.share_in_range(fast(case.attention), *case).require()
    laws.share_in_range(fast(case.attention), case.attention, case.sink_mask, None, case.visible).require()


@quick
@given(compiled)
def test_all_keys_sink_is_share_one(case: Case) -> None:
    share = fastpath.sink_share(case.attention, np.ones_like(case.sink_mask), None, case.visible)
    assert ((share == 1) | np.isnan(share)).all()


@quick
@given(compiled)
def test_share_by_definition(case: Case) -> None:
    laws.share_by_definition(fast(case.attention), *case).require()
    laws.share_by_definition(
        fast(case.attention), case.attention, case.sink_mask, None, case.visible
    ).require()


@quick
@given(compiled)
def test_share_of_weights(case: Case) -> None:
    laws.share_of_weights(fast(case.attention), *case).require()


@quick
@given(compiled)
def test_odds_law(case: Case) -> None:
    laws.odds_law(fast(case.attention), *case).require()


@quick
@given(compiled)
def test_ratio_decides_direction(case: Case) -> None:
    laws.ratio_decides_direction(fast(case.attention), *case).require()


@quick
@given(compiled, st.floats(1e-3, 1e3))
def test_norm_scale_is_free(case: Case, factor: float) -> None:
    laws.norm_scale_is_free(fast(case.attention), *case[:3], factor, case.visible).require()


@quick
@given(compiled)
def test_unit_norms_are_attention(case: Case) -> None:
    laws.unit_norms_are_attention(
        fast(case.attention), case.attention, case.sink_mask, case.visible
    ).require()


@quick
@given(compiled, st.randoms(use_true_random=False))
def test_key_order_is_free(case: Case, random: Any) -> None:
    order = list(range(len(case.sink_mask)))
    random.shuffle(order)
    laws.key_order_is_free(
        fast(case.attention), *case[:3], np.array(order, dtype=np.int64), case.visible
    ).require()


@quick
@given(compiled, st.integers(0, 5), st.booleans(), st.sampled_from([0.0, 0.25, 3.0, float("nan")]))
def test_padding_is_free(case: Case, padding: int, left: bool, garbage: float) -> None:
    implementation = fast(case.attention)
    rows = implementation.weighted_rows(case.attention, None, case.visible)
    rows = np.where(np.isnan(rows), 0, rows)
    laws.padding_is_free(implementation, rows, case.sink_mask, case.norm, padding, left, garbage).require()


@quick
@given(cases(smallest=1, dtypes=(np.float64,)), st.integers(1, 4))
def test_channels_of_a_change(case: Case, steps: int) -> None:
    """Of the fast path and of the oracle alike, between rows and those of other heads or key orders."""
    rows, seen = case.attention, case.visible
    axis = -1 if seen is None else 0
    other = np.roll(rows, steps, axis) if seen is None or rows.ndim > 2 else rows
    for layer in (fastpath, oracle):
        names = ("entropy_change", "entropy_split")
        implementation = Implementation(**{name: getattr(layer, name) for name in names})
        laws.channels_add_up(implementation, rows, other, case.sink_mask, seen).require()
        laws.channels_by_definition(implementation, rows, other, case.sink_mask, seen).require()


@quick
@given(compiled)
def test_arguments_stay_as_they_are(case: Case) -> None:
    bound = fast(case.attention).rounding(case.attention.shape[-1])
    if case.visible is None:
        laws.arguments_stay(fastpath.sink_share, bound, *case[:3]).require()
        laws.arguments_stay(fastpath.norm_odds_ratio, bound, *case[:3]).require()


@quick
@given(compiled)
def test_results_are_float64(case: Case) -> None:
    for function in (fastpath.sink_share, fastpath.norm_odds_ratio) if case.visible is None else ():
        laws.result_dtype(function, *case[:3]).require()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_by_hand(dtype: Any) -> None:
    def narrow(name: str) -> Any:
        return lambda attention, *others: getattr(fastpath, name)(attention.astype(dtype), *others)

    names = ("sink_share", "norm_odds_ratio")
    epsilon = {np.float16: 2.0**-10}.get(dtype, float(np.finfo(dtype).eps))  # that of the rows themselves
    given_dtype = Implementation(**{name: narrow(name) for name in names}, epsilon=epsilon)
    laws.row_examples(given_dtype).require()


@pytest.mark.parametrize(
    "spoil",
    [lambda share: share + 1e-4, lambda share: 1 - share, lambda share: np.nan_to_num(share, nan=0.5)],
)
def test_a_wrong_fast_path_breaks_a_law(spoil: Any) -> None:
    attention = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 0.0]], np.float32)
    wrong = fast(attention, sink_share=lambda *given: spoil(fastpath.sink_share(*given)))
    with pytest.raises(LawBroken):
        laws.share_by_definition(wrong, attention, np.arange(3) == 0, np.array([1.0, 2.0, 3.0])).require()
