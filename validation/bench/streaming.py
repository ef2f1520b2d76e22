"""The cases that start from queries and keys, where no row is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastpath
import oracle
from validation import peers
from validation.bench.case import FLOAT32_PEER, Case, Contender
from validation.bench.inputs import draw_pairs
from validation.bench.limits import bare_products
from validation.registry import bound_for, largest_score

__all__ = ["streaming_case"]

Array = NDArray[Any]


def streaming_case(
    sizes: tuple[int, int, int], causal: bool, missing: str | None, judged: bool = True
) -> Case:
    """Value-norm shares of `sizes` (head, token, d_head); the error allowed grows with the largest score."""
    query, key, norm, sinks = draw_pairs(*sizes, first_only=causal)
    largest = largest_score(query, key)
    ours = {"share": bound_for("share", query.dtype, key.shape[-2], score=largest)}

    def by_oracle() -> Array:
        return np.concatenate(
            [
                oracle.sink_share_from_query_key(query[one], key[one], norm[one], sinks, causal=causal)
                for one in (slice(head, head + 1) for head in range(sizes[0]))
            ]
        )

    which = "causal" if causal else "streaming"
    return Case(
        which,
        f"From queries and keys {sizes}{', causal' if causal else ''}: value-norm shares, no row stored",
        by_oracle,
        (
            Contender(
                "fastpath",
                lambda: fastpath.sink_share_from_query_key(query, key, norm, sinks, causal=causal),
                ours,
            ),
            Contender("matrix product alone", lambda: bare_products(query, key, causal)),
            Contender(
                "torch, SDPA",
                lambda: peers.torch_sdpa(query, key, norm, sinks, causal),
                FLOAT32_PEER,
                missing,
            ),
            Contender(
                "torch, rows stored",
                lambda: peers.torch_stored_rows(query, key, norm, sinks, causal),
                FLOAT32_PEER,
                missing,
            ),
            Contender("oracle, float64", by_oracle, slow=True),
        ),
        (
            "SDPA: the forward pass; two of its value columns are the sums of the share; "
            f"goal: {1 / 1.5:.2g} is 1.5 times its time",
            f"largest abs(score) {largest:.1f}; matrix product alone: the same blocks, then thrown away",
        ),
        judged,
    )
