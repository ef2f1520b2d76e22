"""Provenance: enough to repeat a measurement, nothing about whose machine it was."""

from __future__ import annotations

import getpass
import hashlib
import os
import platform
import re
import subprocess
import sys
import types
from importlib import metadata

import numpy as np
import pytest

from oracle.model import Embeddings, Model, ModelConfig, Norm
from validation import provenance
from validation.provenance import describe_model, describe_texts, machine, program_version, versions

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def test_versions_are_those_of_what_runs():
    found = versions()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == np.__version__
    assert list(found)[:3] == ["sinkscope", "python", "numpy"]


def test_libraries_are_named_only_when_they_are_loaded():
    code = "from validation.provenance import versions; print(*versions())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.split() == ["sinkscope", "python", "numpy"]


def test_a_loaded_library_states_its_own_version(monkeypatch):
    fake = types.SimpleNamespace(__version__="9.9", get_num_threads=lambda: 3)
    monkeypatch.setitem(sys.modules, "torch", fake)
    assert versions()["torch"] == "9.9"
    assert machine()["torch_threads"] == 3


def test_a_library_without_a_word_on_its_version_is_looked_up(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace())
    monkeypatch.setattr(metadata, "version", lambda name: f"recorded {name}")
    assert versions()["numba"] == "recorded numba"
    assert program_version() == "recorded sinkscope"


def test_a_missing_record_is_said(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace())
    assert versions()["numba"] == "unknown"
    assert program_version() == "not installed"


def test_the_machine_is_described_without_paths_or_names(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    found = machine()
    assert found["OMP_NUM_THREADS"] == "2"
    assert 1 <= found["cpus"] <= os.cpu_count()
    text = str(found)
    assert "/" not in text
    assert platform.node() not in text.split("'")
    assert getpass.getuser() not in text.split("'")


def test_cpus_are_counted_where_affinity_is_unknown(monkeypatch):
    monkeypatch.delattr(provenance.os, "sched_getaffinity", raising=False)
    assert machine()["cpus"] == os.cpu_count()


def test_a_model_is_named_with_its_hash_and_sizes():
    config = ModelConfig("bert", 2, 3, 6, 2, 8, 5, 7, "gelu", 1e-12)
    ones = np.ones(6, np.float32)
    table = np.ones((5, 6), np.float32)
    model = Model(config, Embeddings(table, table, table, Norm(ones, ones)), (), name="tiny", sha256="ab12")
    assert describe_model(model) == {
        "model": "tiny",
        "model_sha256": "ab12",
        "model_sizes": {"family": "bert", "layers": 2, "heads": 3, "d_model": 6, "dtype": "float32"},
    }


@pytest.mark.parametrize("other", [["ab", ""], ["", "ab"], ["ab"], ["a", "b", ""], ["b", "a"]])
def test_the_hash_of_texts_tells_where_they_begin_and_end(other):
    first, second = describe_texts("x", ["a", "b"]), describe_texts("x", other)
    assert first["texts"] == "2 from x"
    assert re.fullmatch("[0-9a-f]{64}", first["texts_sha256"])
    assert first["texts_sha256"] == hashlib.sha256(b"a\0b\0").hexdigest()
    assert first["texts_sha256"] != second["texts_sha256"]
