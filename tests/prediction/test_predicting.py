"""`predict` on a small random model, every figure of it computed once more from its rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle_models import letter_tokenizer, random_model

import oracle
from validation.prediction.frozen import Metric, Predictor, load_predictor
from validation.prediction.predicting import Predicted, predict

TEXTS = ("the quick brown fox", "jumps over", "a lazy old dog sleeps", "vexed nymphs")
HALVES = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]  # of four texts there are no more
LAYERS = (1, 2)
METRICS = ("cosine", "jsd", "root_jsd", "hellinger", "l1", "entropy", "aitchison")
CONVENTIONS = ("keep", "drop")


class Text(NamedTuple):
    """Rows of content queries, (layer and head, query, key), and where the sinks stand, (key,)."""

    rows: np.ndarray
    sinks: np.ndarray


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    found = []
    for text in TEXTS:
        trace = oracle.forward(small(), text, sink="special")
        sinks = np.array([token in ("[CLS]", "[SEP]") for token in trace.tokens])
        assert sinks.sum() == 2
        rows = trace.attention[list(LAYERS)][:, :, ~sinks]
        found.append(Text(rows.reshape(-1, *rows.shape[2:]), sinks))
    assert len({len(text.sinks) for text in found}) == 4
    return found


def small() -> Any:
    return random_model(5, n_layers=3, n_heads=4, spread=0.6, tokenizer=letter_tokenizer())


def mean_distances(texts: list[Text], metric: str, convention: str) -> np.ndarray:
    """Mean row distance of every pair of heads over the rows of all `texts`, (head, head)."""
    found = [
        oracle.row_distances(text.rows[:, None], text.rows[None], text.sinks, metric, convention)
        for text in texts
    ]
    return np.concatenate(found, axis=-1).mean(axis=-1)


def floors_of(texts: list[Text], metric: str) -> list[list[float]]:
    """Flip rates between the halves under keep and under drop, (convention, split)."""
    return [
        [
            oracle.verdict_flips(
                *(mean_distances([texts[one] for one in half], metric, convention) for half in split)
            ).rate
            for split in HALVES
        ]
        for convention in CONVENTIONS
    ]


def stated(rates: dict[str, float], tolerance: float = 0.01) -> Predictor:
    """A predictor that gives every metric its rate whatever the statistics are, none of which is outside."""
    frozen = load_predictor()
    metrics = {
        name: Metric((float(np.log(rate / (1 - rate))), 0.0, 0.0, 0.0, 0.0), tolerance, 0.0, 1.0, True)
        for name, rate in rates.items()
    }
    ranges = {name: (-np.inf, np.inf) for name in frozen.ranges}
    return Predictor(frozen.frozen, metrics, ranges, frozen.data)


def predicted(predictor: Predictor | None = None) -> Predicted:
    return predict(small(), TEXTS, layers=LAYERS, engine="oracle", predictor=predictor)


@pytest.mark.parametrize("engine", ["oracle", "fastpath"])
def test_every_metric_is_observed_at_its_own_distances(texts: list[Text], engine: str) -> None:
    found = predict(small(), TEXTS, layers=LAYERS, engine=engine)
    assert tuple(one.metric for one in found.judged) == METRICS
    for one in found.judged:
        keep, drop = (mean_distances(texts, one.metric, convention) for convention in CONVENTIONS)
        seen = oracle.verdict_flips(keep, drop)
        assert one.observed == pytest.approx(seen.rate, abs=1e-12), one.metric
        assert one.triples == seen.triples == 8 * 7 * 6 // 2
        law = np.mean([np.arccos(np.corrcoef(*rows)[0, 1]) / np.pi for rows in others(keep, drop)])
        assert one.law == pytest.approx(law, rel=1e-9), one.metric
        assert one.law != one.observed
        for floor, wanted in zip(one.floors, floors_of(texts, one.metric), strict=True):
            assert floor.rates.tolist() == pytest.approx(wanted, abs=1e-12), one.metric
    assert len({one.law for one in found.judged}) == len(METRICS)


def others(keep: np.ndarray, drop: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of every anchor, its distances to the other heads under both conventions."""
    return [(np.delete(keep[anchor], anchor), np.delete(drop[anchor], anchor)) for anchor in range(len(keep))]


def test_the_statistics_are_of_content_keys_under_keep_alone(texts: list[Text]) -> None:
    found = predicted().statistics
    shares = [text.rows[..., text.sinks].sum(axis=-1) for text in texts]
    by_head = np.concatenate(shares, axis=-1).mean(axis=-1)
    assert found.sink_share == pytest.approx(by_head.mean(), rel=1e-12)
    assert found.sink_spread == pytest.approx(by_head.std(), rel=1e-12)
    entropies = []
    for text in texts:
        content = text.rows[..., ~text.sinks]
        closed = content / content.sum(axis=-1, keepdims=True)
        entropies.append(-(closed * np.log(closed)).sum(axis=-1))
    counts = np.array([len(text.replace(" ", "")) for text in TEXTS])  # a token for every letter
    log_keys = (counts * np.log(counts)).sum() / counts.sum()  # as many rows as keys in each text
    assert found.content_keys == pytest.approx(np.exp(log_keys), rel=1e-12)
    entropy = np.concatenate(entropies, axis=-1).mean()
    assert found.content_entropy == pytest.approx(entropy / log_keys, rel=1e-12)


def test_a_prediction_is_held_against_the_floor_under_keep(texts: list[Text]) -> None:
    floors = {metric: floors_of(texts, metric) for metric in METRICS}
    highs = {metric: [max(rates) for rates in pair] for metric, pair in floors.items()}
    between = {metric: float(np.mean(pair)) for metric, pair in highs.items() if pair[0] != pair[1]}
    told = set()
    for one in predicted(stated(between)).judged:
        keep, drop = highs[one.metric]
        assert max(map(np.median, floors[one.metric])) < 0.25
        expected = "not above the floor" if keep > drop else ""
        assert one.prediction.rate == pytest.approx(between[one.metric], rel=1e-12)
        assert one.prediction.why_not == expected, one.metric
        if expected:
            assert one.verdict == "abstained"
        else:
            near = abs(one.observed - one.prediction.rate) <= 0.01
            assert one.verdict == ("confirmed" if near else "failed")
        told.add(expected)
    assert told == {"", "not above the floor"}
