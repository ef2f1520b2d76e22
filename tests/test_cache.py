"""Results stand in the cache beside the models, wherever that is."""

from pathlib import Path

import platformdirs
import pytest

from oracle import Unavailable
from oracle.loading import _cache
from validation.cache import results_folder
from validation.reproduction import working
from validation.studies.collapse import embedded, store


def test_every_kind_of_result_stands_beside_the_models(tmp_path, monkeypatch):
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path))
    assert results_folder("a") == tmp_path / "a"
    assert _cache.models_folder() == tmp_path / "models"
    assert embedded.default_folder() == tmp_path / "series"
    assert store.default_place("k" * 64) == tmp_path / "collapse" / f"{'k' * 32}.jsonl"
    assert working.default_folder() == tmp_path / "reproduction"
    assert list(tmp_path.iterdir()) == []


def test_the_users_cache_is_taken_without_the_variable_and_its_lack_is_said(monkeypatch):
    monkeypatch.delenv("SINKSCOPE_CACHE", raising=False)
    assert results_folder("a") == Path(platformdirs.user_cache_dir("sinkscope", appauthor=False)) / "a"
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **named: "~/nowhere")
    with pytest.raises(Unavailable, match="No home folder is known"):
        results_folder("a")
