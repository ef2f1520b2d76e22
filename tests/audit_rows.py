"""Attention rows of which it is known, by construction, what an audit of them must say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LAYERS, HEADS, TOKENS = 2, 8, 7  # 16 heads: 1,680 triples, 168 of them in each layer
TEXTS = 6


def with_sink(share, content) -> NDArray[np.float64]:
    """Rows whose key 0 gets `share` (...,) and whose other keys get the rest, in proportion to `content`."""
    closed = content / content.sum(axis=-1, keepdims=True)
    share = np.broadcast_to(np.asarray(share)[..., None], (*closed.shape[:-1], 1))
    return np.concatenate([share, (1 - share) * closed], axis=-1)


def shape(texts=TEXTS, *last):
    return (texts, LAYERS, HEADS, TOKENS, *last)


def only_the_sink_differs(seed=0, texts=TEXTS):
    """All heads have the same content rows; the sink share is each head's own."""
    rng = np.random.default_rng(seed)
    content = rng.dirichlet(np.ones(TOKENS - 1), (texts, 1, 1, TOKENS))
    share = rng.uniform(0.05, 0.95, (1, LAYERS, HEADS, 1))
    return with_sink(np.broadcast_to(share, shape(texts)), np.broadcast_to(content, shape(texts, TOKENS - 1)))


def one_sink_share(seed=0, texts=TEXTS, share=0.4):
    """Every row of every head gives the sink the same share; the content is each head's own."""
    rng = np.random.default_rng(seed)
    profile = rng.dirichlet(np.ones(TOKENS - 1), (1, LAYERS, HEADS, 1))
    noise = rng.dirichlet(np.ones(TOKENS - 1), shape(texts))
    return with_sink(np.full(shape(texts), share), 0.7 * profile + 0.3 * noise)


def pure_noise(seed=0, texts=TEXTS):
    """No head differs from another but by chance, in its sink share and in its content."""
    rng = np.random.default_rng(seed)
    return with_sink(rng.beta(2, 3, shape(texts)), rng.dirichlet(np.ones(TOKENS - 1), shape(texts)))


def sink_and_content_apart(seed=0, texts=TEXTS):
    """Heads differ in their content and, independently of it and by more, in their sink share."""
    rng = np.random.default_rng(seed)
    profile = rng.dirichlet(np.ones(TOKENS - 1), (1, LAYERS, HEADS, 1))
    noise = rng.dirichlet(np.ones(TOKENS - 1), shape(texts))
    share = rng.uniform(0.05, 0.95, (1, LAYERS, HEADS, 1)) + rng.uniform(-0.02, 0.02, shape(texts))
    return with_sink(share, 0.95 * profile + 0.05 * noise)
