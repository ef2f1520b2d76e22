from __future__ import annotations

import sys

import numpy as np
import pytest

import oracle
from oracle._checks import Unavailable
from oracle.attention import transformed_vectors
from validation import peers
from validation.bench.case import FLOAT32_PEER, quantities
from validation.bench.inputs import draw_pairs, draw_rows
from validation.bench.limits import bare_products, read_only
from validation.compare import compare

SHAPE = (2, 3, 5, 7)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason='the peers need pip install "sinkscope[reference]"')


def agree(expected, found):
    expected, found = quantities(expected), quantities(found)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        bound = FLOAT32_PEER[name.split(" ")[0]]
        seen = compare(value, found[name], absolute=bound.absolute, relative=bound.relative)
        assert seen.within, f"{name}: {seen.message}"


@pytest.mark.parametrize("entropies", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [("numpy_rows", {}), ("numpy_product", {}), ("torch_rows", {}), ("torch_rows", {"clever": True})],
)
def test_peers_from_rows_give_the_oracles_numbers(name, options, entropies, request):
    if name.startswith("torch"):
        request.getfixturevalue("torch")
    rows = draw_rows(SHAPE)
    before = rows.attention.copy()
    agree(
        oracle.row_measures(*rows, entropies=entropies),
        getattr(peers, name)(*rows, entropies=entropies, **options),
    )
    assert (rows.attention == before).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", ["torch_stored_rows", "torch_sdpa"])
def test_peers_from_queries_and_keys_give_the_oracles_shares(name, causal, torch):
    query, key, norm, sinks = draw_pairs(3, 11, 4, first_only=causal)
    expected = oracle.sink_share_from_query_key(query, key, norm, sinks, causal=causal)
    found = getattr(peers, name)(query, key, norm, sinks, causal)
    agree(expected, found)
    assert not np.allclose(found, getattr(peers, name)(query, key, norm, sinks, not causal), atol=1e-3)


def test_the_einsum_gives_the_oracles_transformed_norm_shares(torch):
    attention, sinks, _ = draw_rows((3, 5, 5))
    rng = np.random.default_rng(0)
    vectors = transformed_vectors(
        rng.standard_normal((3, 5, 2), dtype=np.float32), rng.standard_normal((6, 7), dtype=np.float32)
    )
    expected = oracle.sink_share(attention, sinks, np.linalg.norm(vectors.astype(np.float64), axis=-1))
    agree(expected, peers.torch_einsum(attention, vectors, sinks))


def test_a_certain_part_has_no_entropy():
    attention = np.array([[[0.25, 0.75, 0.0]]], dtype=np.float32)
    split = peers.numpy_rows(attention, np.array([True, False, False]), {}, entropies=True).entropy
    assert split.content == 0
    assert split.total == split.binary == pytest.approx(-0.25 * np.log(0.25) - 0.75 * np.log(0.75))


def test_without_torch_its_peers_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "Install it: pip install" in peers.torch_missing()
    with pytest.raises(Unavailable, match="The PyTorch peers need torch"):
        peers.torch_rows(*draw_rows(SHAPE))
    with peers.torch_threads(1):
        pass


def test_threads_of_torch_are_set_back(torch):
    before = torch.get_num_threads()
    with peers.torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    assert peers.torch_missing() is None


# --- limits ---------------------------------------------------------------------------------------------


def test_the_read_only_loop_reads_every_weight():
    rows = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    assert np.allclose(read_only(rows), rows.sum(-1), rtol=1e-6)
    assert read_only(rows).dtype == np.float32


@pytest.mark.parametrize("block", [3, 4, 100])
def test_bare_products_multiply_what_is_needed_and_no_more(block):
    rng = np.random.default_rng(0)
    query, key = rng.random((2, 10, 4), dtype=np.float32), rng.random((2, 10, 4), dtype=np.float32)
    expected = query[-1] @ key[-1].T
    start = (9 // block) * block
    assert np.allclose(bare_products(query, key, block=block), expected[start:])
    assert np.allclose(bare_products(query, key, causal=True, block=block), expected[start:])
    short = bare_products(query[:, :5], key[:, :5], causal=True, block=3)
    assert short.shape == (2, 5)


# --- inputs ---------------------------------------------------------------------------------------------


def test_drawn_rows_are_rows_with_a_sink():
    attention, sinks, norms = draw_rows((2, 3, 50, 50))
    assert attention.dtype == np.float32
    assert np.allclose(attention.sum(-1), 1, atol=1e-6)
    assert sinks.sum() == 2
    share = oracle.sink_share(attention, sinks)
    assert 0.2 < np.median(share) < 0.98
    assert {norm.shape for norm in norms.values()} == {(2, 3, 50)}
    assert (draw_rows((2, 3, 50, 50)).attention == attention).all()


def test_drawn_queries_lean_to_the_sink():
    query, key, norm, sinks = draw_pairs(2, 50, 16, first_only=True)
    assert sinks.tolist() == [True] + [False] * 49
    share = oracle.sink_share_from_query_key(query, key, None, sinks)
    assert 0.05 < np.median(share) < 0.98
    assert norm.shape == (2, 50)


def test_divergences_and_flips_of_the_peers_are_the_oracles():
    pytest.importorskip("scipy", reason='the peers need pip install "sinkscope[clustering]"')
    rows, sinks, _ = draw_rows((4, 5, 7))
    rows = rows.astype(np.float64)
    rows /= rows.sum(axis=-1, keepdims=True)
    parts = np.concatenate([rows[..., ~sinks], rows[..., sinks].sum(-1, keepdims=True)], axis=-1)
    wanted = oracle.distance_sums(rows, sinks, "jsd", "keep").sums["jsd", "keep"][0]
    np.testing.assert_allclose(peers.numpy_divergences(parts), wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(peers.scipy_divergences(parts), wanted, rtol=1e-12, atol=1e-14)
    first, second = np.random.default_rng(2).random((2, 9, 9))
    wanted = oracle.verdict_flips(first, second).per_anchor
    np.testing.assert_allclose(peers.scipy_flips(first, second), wanted, rtol=1e-12)
