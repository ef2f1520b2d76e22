"""The moved rows: what a variant changes is changed, and nothing else is."""

import numpy as np
import pytest

import oracle
from oracle.ops import softmax
from validation.studies.predictor_subjects import VARIANTS, Variant, move_rows

SINKS = np.array([True, False, False, False, False, True])
SEEN = np.ones((6, 6), dtype=bool)
SCORES = np.random.default_rng(5).normal(0, 2, (2, 3, 6, 6))
ROWS = softmax(SCORES)


def odds(rows, sinks, visible=SEEN):
    share = oracle.sink_share(rows, sinks, visible=visible)
    return np.log(share / (1 - share))


def content(rows, sinks):
    kept = rows[..., ~sinks]
    return kept / kept.sum(axis=-1, keepdims=True)


def test_the_first_variant_changes_nothing():
    assert VARIANTS[0] == Variant("as it is")
    moved = move_rows(VARIANTS[0], SCORES, SINKS, SEEN)
    np.testing.assert_allclose(moved.attention, ROWS, rtol=1e-13)


@pytest.mark.parametrize("shift", [-2.0, 3.0])
def test_a_shift_moves_the_odds_of_the_sink_alone(shift):
    moved = move_rows(Variant("", shift=shift), SCORES, SINKS, SEEN)
    np.testing.assert_allclose(odds(moved.attention, SINKS) - odds(ROWS, SINKS), shift, rtol=1e-12)
    np.testing.assert_allclose(content(moved.attention, SINKS), content(ROWS, SINKS), rtol=1e-12)
    np.testing.assert_allclose(moved.attention, softmax(moved.scores), rtol=1e-15)


def test_a_spread_moves_every_row_of_a_head_alike_and_heads_apart():
    moved = move_rows(Variant("", spread=2.0), SCORES, SINKS, SEEN)
    by_head = odds(moved.attention, SINKS) - odds(ROWS, SINKS)
    np.testing.assert_allclose(by_head, np.broadcast_to(by_head[..., :1], by_head.shape), rtol=1e-10)
    assert len(np.unique(by_head[..., 0].round(6))) == 6
    again = move_rows(Variant("", spread=2.0), SCORES, SINKS, SEEN)
    np.testing.assert_array_equal(moved.attention, again.attention)


def test_sharpening_leaves_the_share_and_squares_the_content():
    moved = move_rows(Variant("", sharpen=2.0), SCORES, SINKS, SEEN)
    np.testing.assert_allclose(odds(moved.attention, SINKS), odds(ROWS, SINKS), rtol=1e-9, atol=1e-12)
    squared = content(ROWS, SINKS) ** 2
    np.testing.assert_allclose(
        content(moved.attention, SINKS), squared / squared.sum(axis=-1, keepdims=True), rtol=1e-12
    )


def test_the_causal_variant_hides_later_keys_and_the_last_token():
    moved = move_rows(Variant("", shift=1.0, causal=True), SCORES, SINKS, SEEN)
    assert moved.sink_mask.tolist() == [True, False, False, False, False]
    np.testing.assert_array_equal(moved.visible, np.tri(5, dtype=bool))
    assert (moved.attention[..., ~moved.visible] == 0).all()
    masked = softmax(np.where(moved.visible, SCORES[..., :-1, :-1], -np.inf))
    found, expected = (
        odds(rows[..., 1:, :], moved.sink_mask, moved.visible[1:]) for rows in (moved.attention, masked)
    )
    np.testing.assert_allclose(found - expected, 1.0, rtol=1e-10)
    np.testing.assert_allclose(moved.attention[..., 0, 0], 1.0)  # the first query sees the sink alone
