"""Where results that are kept between runs stand."""

from __future__ import annotations

from pathlib import Path

__all__ = ["results_folder"]


def results_folder(kind: str) -> Path:
    """The folder of one kind of results in the user's cache, which need not exist.

    It stands beside the fetched models. Unavailable where there is no cache.
    """
    from oracle.loading._cache import cache_folder

    return cache_folder() / kind
