"""The registry drives these: every measure, every case, the fast path against the oracle."""

from __future__ import annotations

import functools
import warnings

import numba
import numpy as np
import pytest

import fastpath
import oracle
from oracle import (
    DistanceSums,
    EntropyChange,
    EntropySplit,
    InputError,
    InputTypeError,
    KeyRange,
    RowMeasures,
    VerdictFlips,
)
from validation.cases import Case
from validation.distance_bounds import distance_bound
from validation.registry import (
    LAYERS,
    REASONS,
    REGISTRY,
    MissingImplementation,
    bound_for,
    compare_layers,
    parts_of,
)

GOOD = [(name, case) for name, measure in REGISTRY.items() for case in measure.cases()]
REFUSED = [(name, case) for name, measure in REGISTRY.items() for case in measure.refused()]


def named(value):
    return value.name if isinstance(value, Case) else value


def frozen(value):
    """A copy of an argument, arrays as bytes: what must be the same after a call."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {name: frozen(part) for name, part in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, (KeyRange, list)) else value


@pytest.mark.parametrize(("name", "case"), GOOD, ids=named)
def test_the_fast_path_against_the_oracle(name, case):
    if numba.config.DISABLE_JIT and case.name.startswith("long"):
        pytest.skip("minutes without the JIT; tests/fastpath/test_streaming.py runs the same lines")
    before = frozen(case.arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = compare_layers(REGISTRY[name], case)
    assert frozen(case.arguments) == before
    assert compared
    for part, result in compared.items():
        assert result.within, f"{part}: {result.message}"


@pytest.mark.parametrize(("name", "case"), REFUSED, ids=named)
def test_both_refuse_in_the_same_words(name, case):
    said = []
    for layer in LAYERS:
        with pytest.raises((InputError, InputTypeError)) as caught:
            REGISTRY[name].implementation(layer)(**case.arguments)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


@pytest.mark.parametrize("name", REGISTRY)
def test_results_are_float64(name):
    for case in REGISTRY[name].cases():
        found = REGISTRY[name].implementation("oracle")(**case.arguments)
        dtypes = {kind: array.dtype.name for (kind, _), array in parts_of(found, "share").items()}
        assert dtypes.pop("count", "int64") == "int64"
        assert set(dtypes.values()) == {"float64"}


def test_the_registry_has_every_function_of_the_fast_path():
    public = {name for name in fastpath.__all__ if callable(getattr(fastpath, name))}
    assert public == set(REGISTRY)


def test_every_measure_has_a_reason_for_its_bound():
    for measure in REGISTRY.values():
        assert any(reason.startswith(measure.reason) for reason in REASONS)


@pytest.mark.parametrize("name", REGISTRY)
def test_the_cases_are_the_same_each_time_and_have_names_of_their_own(name):
    first, second = (list(REGISTRY[name].cases()) for _ in range(2))
    assert [case.name for case in first] == [case.name for case in second]
    assert len({case.name for case in first}) == len(first) >= 30
    assert [frozen(dict(case.arguments)) for case in first] == [
        frozen(dict(case.arguments)) for case in second
    ]


def test_longdouble_is_the_oracles_alone():
    rows = np.full((1, 3, 4), 0.25, np.longdouble)
    with pytest.raises(InputTypeError, match=r"longdouble|float128"):
        fastpath.sink_share_from_query_key(rows, rows, None, np.arange(3) == 0)
    with pytest.raises(InputTypeError, match=r"longdouble|float128"):
        fastpath.verdict_flips(rows[0, :, :3], rows[0, :, :3])
    for name in sorted(set(REGISTRY) - {"sink_share_from_query_key", "verdict_flips"}):
        norm = {"norm": np.ones(4)} if name == "norm_odds_ratio" else {}
        given = [rows, rows] if name == "entropy_change" else [rows]
        with pytest.raises(InputTypeError, match=r"longdouble|float128"):
            getattr(fastpath, name)(*given, np.arange(4) == 0, **norm)


# --- the registry is checked too ----------------------------------------------------------------------


def good_case(name):
    return next(iter(REGISTRY[name].cases()))


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_missing_implementation_fails(name, layer, monkeypatch):
    monkeypatch.delattr(oracle if layer == "oracle" else fastpath, name)
    with pytest.raises(MissingImplementation, match=f"{layer} has no {name}"):
        compare_layers(REGISTRY[name], good_case(name))


def spoiled(result, change):
    if isinstance(result, RowMeasures):
        return result._replace(shares={key: change(array) for key, array in result.shares.items()})
    if isinstance(result, EntropySplit):
        return EntropySplit(*map(change, result))
    if isinstance(result, EntropyChange):
        return EntropyChange(*map(change, result))
    if isinstance(result, DistanceSums):
        return result._replace(sums={pair: change(array) for pair, array in result.sums.items()})
    if isinstance(result, VerdictFlips):
        return result._replace(per_anchor=change(result.per_anchor))
    return change(result)


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda array: array + 2e-5 * (1 + np.abs(array)), "outside its bound"),
        (lambda array: array.astype(np.float32), "dtype"),
        (lambda array: array[..., :-1], "shape"),
        (lambda array: np.where(np.arange(array.shape[-1]) == 0, np.nan, array), "NaN"),
    ],
)
def test_a_wrong_result_is_noticed(name, change, words, monkeypatch):
    if name == "norm_odds_ratio" and words == "outside its bound":
        change = functools.partial(np.multiply, 1.00002)
    if name == "entropy_change" and words == "outside its bound":  # of two entropies
        change = functools.partial(np.add, 4e-5)
    case = next(
        case
        for case in REGISTRY[name].cases()
        if "one sink, float32" in case.name
        or ("causal, float32" in case.name and "query" in case.arguments)
        or case.name == "random, no groups, margin 0.0, float64"
    )
    right = getattr(oracle, name)
    monkeypatch.setattr(fastpath, name, lambda **given: spoiled(right(**given), change))
    failed = [result.message for result in compare_layers(REGISTRY[name], case).values() if not result.within]
    assert failed
    assert all(words in message for message in failed)


def test_a_part_that_one_side_lacks_is_noticed(monkeypatch):
    case = next(case for case in REGISTRY["row_measures"].cases() if case.arguments["norms"])
    monkeypatch.setattr(
        fastpath, "row_measures", lambda **given: oracle.row_measures(**{**given, "norms": {}})
    )
    compared = compare_layers(REGISTRY["row_measures"], case)
    assert not compared["share", "value_norm"].within


def test_a_count_that_is_off_by_one_is_noticed(monkeypatch):
    for name in ("distance_sums", "verdict_flips"):
        right = getattr(oracle, name)

        def wrong(right=right, **given):
            found = right(**given)
            if isinstance(found, VerdictFlips):
                return found._replace(flipped=found.flipped + 1)
            return found._replace(counts={pair: array + 1 for pair, array in found.counts.items()})

        monkeypatch.setattr(fastpath, name, wrong)
        compared = compare_layers(REGISTRY[name], good_case(name))
        failed = {part for part, result in compared.items() if not result.within}
        assert failed
        assert {kind for kind, _ in failed} == {"count"}


def test_bounds_of_distances_are_small_and_grow_with_rows_keys_and_logarithms():
    rows = np.full((2, 5, 8), 0.125)
    one = distance_bound("jsd", {"rows": rows}, summed=False)
    five = distance_bound("jsd", {"rows": rows}, summed=True)
    assert one[0] < 1e-13
    assert one[1] < 1e-13
    assert five[0] == pytest.approx(5 * one[0])
    assert distance_bound("jsd", {"rows": rows.repeat(2, axis=-1) / 2}, summed=False)[0] > one[0]
    assert distance_bound("root_jsd", {"rows": rows}, summed=False)[0] == pytest.approx(4 * one[0])
    for metric in ("entropy", "aitchison"):
        given = {"rows": rows, "zeros": "replace", "delta": 1e-30}
        assert distance_bound(metric, given, False)[0] > 5 * distance_bound(metric, {"rows": rows}, False)[0]
    scores = distance_bound("aitchison", {"rows": rows, "scores": 500 + rows}, False)
    assert scores[0] > 5 * distance_bound("aitchison", {"rows": rows}, False)[0]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("visible", [np.arange(8) < 7, KeyRange(np.zeros(5, int), np.full(5, 7))])
def test_bounds_of_distances_are_widened_by_parts_alone(visible, several):
    """Neither by what stands at keys that are not visible nor by one of several sinks."""
    rows = np.full((2, 5, 8), 0.125)
    odd = rows.copy()
    odd[..., 7], odd[0, :, 1] = 1e-300, 1e-290
    given = {"sink_mask": np.arange(8) < 2, "visible": visible}
    for metric in ("entropy", "aitchison"):
        plain, spoiled = (
            {"rows": [part, rows], **{name: [mask] * 2 for name, mask in given.items()}}
            if several
            else {"rows": part, **given}
            for part in (rows, odd)
        )
        assert distance_bound(metric, spoiled, False) == distance_bound(metric, plain, False)
        seen = {"rows": spoiled["rows"], "sink_mask": spoiled["sink_mask"]}
        assert distance_bound(metric, seen, False)[0] > 100 * distance_bound(metric, plain, False)[0]
    hidden = np.where(np.arange(8) < 7, 3.0, 1e9)
    scores = {"rows": rows, **given, "scores": np.broadcast_to(hidden, rows.shape)}
    assert distance_bound("aitchison", scores, False)[0] < 1e-11


def test_bounds_grow_with_length_logarithm_and_score_and_shrink_with_precision():
    assert bound_for("share", "float32", 500).absolute == bound_for("share", "float16", 5).absolute == 1e-6
    assert bound_for("share", "float64", 512).absolute < 5e-13
    assert bound_for("share", "float64", 512).absolute > bound_for("share", "float64", 64).absolute
    assert bound_for("entropy", "float32", 512).absolute == 1e-5
    assert bound_for("entropy", "float64", 9, logarithm=40.0).absolute == pytest.approx(
        40 * bound_for("entropy", "float64", 9).absolute
    )
    eps = float(np.finfo(np.float32).eps)
    assert bound_for("share", "float32", 9, score=50.0).absolute == pytest.approx(1e-6 + 100 * eps)
    assert bound_for("ratio", "float64", 9).absolute == 0
