"""What people would use instead: plain NumPy, clever NumPy, PyTorch, SciPy; arrays in, arrays out.

Each computes what its twin in `fastpath` does, as somebody would write it who has well-formed rows: nothing
is checked. The peers on torch and on scipy raise Unavailable without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle._checks import Unavailable
from oracle._results import EntropySplit, RowMeasures

__all__ = [
    "numpy_divergences",
    "numpy_product",
    "numpy_rows",
    "scipy_divergences",
    "scipy_flips",
    "scipy_missing",
    "torch_einsum",
    "torch_missing",
    "torch_rows",
    "torch_sdpa",
    "torch_stored_rows",
    "torch_threads",
]

Array = NDArray[Any]


def numpy_rows(
    attention: Array, sink_mask: Array, norms: Mapping[str, Array], entropies: bool = False
) -> RowMeasures:
    """One line for each weighting: the weighted array is built, then summed twice.

    `attention` is (..., query, key), `sink_mask` (key,), each norm (..., key).
    """
    shares = {"attention": attention[..., sink_mask].sum(-1) / attention.sum(-1)}
    for name, norm in norms.items():
        weighted = attention * norm.astype(attention.dtype)[..., None, :]
        shares[name] = weighted[..., sink_mask].sum(-1) / weighted.sum(-1)
    return _with_ratios(shares, _numpy_entropies(attention, sink_mask) if entropies else None)


def numpy_product(
    attention: Array, sink_mask: Array, norms: Mapping[str, Array], entropies: bool = False
) -> RowMeasures:
    """One matrix product of the rows with a few columns: ones, the norms, and each times the sink mask.

    The rows are read once and nothing of their size is built; entropies are taken apart, as in `numpy_rows`.
    """
    weights = [np.ones_like(attention, shape=(*attention.shape[:-2], attention.shape[-1])), *norms.values()]
    columns = [column for norm in weights for column in (norm, norm * sink_mask)]
    sums = attention @ np.stack(columns, axis=-1).astype(attention.dtype)  # (..., query, column)
    names = ("attention", *norms)
    shares = {name: sums[..., 2 * i + 1] / sums[..., 2 * i] for i, name in enumerate(names)}
    return _with_ratios(shares, _numpy_entropies(attention, sink_mask) if entropies else None)


def numpy_divergences(parts: Array) -> Array:
    """Jensen-Shannon divergences of all pairs of heads, summed over queries: (head, head), in nats.

    The published recipe (Clark et al. 2019): a loop over heads, each against all at once, with broadcast
    logarithms; its smoothing is left out. `parts` is (head, query, part), closed and without zeros.
    """
    sums = np.empty((len(parts), len(parts)), parts.dtype)
    for head, rows in enumerate(parts):
        middle = (rows + parts) / 2
        divergence = rows * np.log(rows / middle) + parts * np.log(parts / middle)
        sums[head] = divergence.sum((-1, -2)) / 2
    return sums


def scipy_divergences(parts: Array) -> Array:
    """The same from scipy's jensenshannon, a pair of heads at a time and each pair once."""
    distance = _scipy().spatial.distance
    sums = np.zeros((len(parts), len(parts)))
    for head, rows in enumerate(parts):
        for other in range(head + 1, len(parts)):
            roots = distance.jensenshannon(rows, parts[other], axis=-1)
            sums[head, other] = sums[other, head] = (roots * roots).sum()
    return sums


def scipy_flips(first: Array, second: Array) -> Array:
    """Flip rates (head,) of distances without ties or gaps: (1 - Kendall's tau) / 2 of each row."""
    tau = _scipy().stats.kendalltau
    others = ~np.eye(len(first), dtype=bool)
    return np.array(
        [(1 - tau(x[o], y[o]).statistic) / 2 for x, y, o in zip(first, second, others, strict=True)]
    )


def torch_rows(
    attention: Array,
    sink_mask: Array,
    norms: Mapping[str, Array],
    entropies: bool = False,
    clever: bool = False,
) -> RowMeasures:
    """PyTorch, eager: the weighted product and its sums on the materialised array.

    With `entropies` those of all parts, of sink against content, and of the content alone, each from its
    definition; `clever` takes the logarithms of the array once and gets the content from the chain rule.
    """
    torch = _torch()
    with torch.inference_mode():
        rows, sinks = torch.from_numpy(attention), torch.from_numpy(sink_mask)
        shares = {"attention": rows[..., sinks].sum(-1) / rows.sum(-1)}
        for name, norm in norms.items():
            weighted = rows * torch.from_numpy(norm.astype(attention.dtype))[..., None, :]
            shares[name] = weighted[..., sinks].sum(-1) / weighted.sum(-1)
        split = None
        if entropies:
            entropy, share = torch.special.entr, shares["attention"]
            binary = entropy(share) + entropy(1 - share)
            if clever:
                every = entropy(rows)
                of_content = every.sum(-1) - every[..., sinks].sum(-1)
                total = of_content + entropy(share)
                content = (total - binary) / (1 - share)
            else:
                parts = rows[..., ~sinks]
                total = entropy(parts).sum(-1) + entropy(share)
                content = entropy(parts / (1 - share)[..., None]).sum(-1)
            split = EntropySplit(total.numpy(), binary.numpy(), content.numpy())
        return _with_ratios({name: share.numpy() for name, share in shares.items()}, split)


def torch_einsum(attention: Array, vectors: Array, sink_mask: Array) -> Array:
    """Sink shares from ‖a f‖ as it was published: the transformed vector of every query-key pair is built.

    `attention` is (head, query, key), `vectors` (head, key, d_model), the f_j of each head. Head by head: a
    layer at once needs head times as much, (head, query, key, d_model). Returns (head, query).
    """
    torch = _torch()
    shares = []
    with torch.inference_mode():
        for rows, transformed in zip(torch.from_numpy(attention), torch.from_numpy(vectors), strict=True):
            lengths = torch.einsum("qk,kd->qkd", rows, transformed).norm(dim=-1)
            shares.append(lengths[:, torch.from_numpy(sink_mask)].sum(-1) / lengths.sum(-1))
        return torch.stack(shares).numpy()


def torch_stored_rows(query: Array, key: Array, norm: Array, sink_mask: Array, causal: bool = False) -> Array:
    """PyTorch, eager, from queries and keys (head, token, d_head): all rows are stored, then weighed.

    `norm` is (head, key). Returns sink shares (head, query).
    """
    torch = _torch()
    with torch.inference_mode():
        q, k, n = (torch.from_numpy(array) for array in (query, key, norm.astype(query.dtype)))
        scores = q @ k.transpose(-1, -2) / query.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        weighted = scores.softmax(-1) * n[:, None, :]
        return (weighted[..., torch.from_numpy(sink_mask)].sum(-1) / weighted.sum(-1)).numpy()


def torch_sdpa(query: Array, key: Array, norm: Array, sink_mask: Array, causal: bool = False) -> Array:
    """PyTorch's scaled_dot_product_attention forward, which stores no row; arguments as `torch_stored_rows`.

    Its values are as wide as its queries, as in a model. Two of their columns hold the norm and the norm over
    the sink, so that the outputs are the two sums of the share. Returns (head, query).
    """
    torch = _torch()
    values = np.ones_like(key)
    values[..., 0], values[..., 1] = norm, norm * sink_mask
    with torch.inference_mode():
        q, k, v = (torch.from_numpy(array)[None] for array in (query, key, values))
        sums = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)[0]
        return (sums[..., 1] / sums[..., 0]).numpy()


def torch_missing() -> str | None:
    """Why the peers on torch cannot be run, in words; None where they can."""
    try:
        _torch()
    except Unavailable as error:
        return str(error)
    return None


def scipy_missing() -> str | None:
    """Why the peers on scipy cannot be run, in words; None where they can."""
    try:
        _scipy()
    except Unavailable as error:
        return str(error)
    return None


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch, where it is installed, use `count` threads, and set back what was there before."""
    if torch_missing():
        yield
        return
    torch = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise Unavailable(
            'The PyTorch peers need torch. Install it: pip install "sinkscope[reference]"'
        ) from None
    return torch


def _scipy() -> Any:
    try:
        import scipy
        import scipy.spatial
        import scipy.stats
    except ImportError:
        raise Unavailable(
            'The SciPy peers need scipy. Install it: pip install "sinkscope[clustering]"'
        ) from None
    return scipy


def _numpy_entropies(attention: Array, sink_mask: Array) -> EntropySplit:
    share, parts = attention[..., sink_mask].sum(-1), attention[..., ~sink_mask]
    binary = _entropy(share) + _entropy(1 - share)
    total = _entropy(parts).sum(-1) + _entropy(share)
    content = _entropy(parts / (1 - share)[..., None]).sum(-1)
    return EntropySplit(total, binary, content)


def _entropy(parts: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(parts > 0, -parts * np.log(parts), 0)


def _with_ratios(shares: dict[str, Array], entropy: EntropySplit | None) -> RowMeasures:
    """Adds r of the odds law, which costs a few operations a row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = {name: share / (1 - share) for name, share in shares.items()}
        ratios = {name: odds[name] / odds["attention"] for name in shares if name != "attention"}
    return RowMeasures(shares, ratios, entropy)
