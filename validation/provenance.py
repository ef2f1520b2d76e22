"""With what a number was made: versions, machine, model, texts. No paths, no names of people or hosts."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from oracle.model import Model

__all__ = [
    "describe_model",
    "describe_texts",
    "file_sha256",
    "machine",
    "processor",
    "program_version",
    "usable_cpus",
    "versions",
]

_ALWAYS = ("numpy",)
_WHEN_LOADED = ("numba", "tokenizers", "safetensors", "torch", "transformers")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def program_version() -> str:
    """The installed version of sinkscope, or "not installed" in a bare checkout."""
    try:
        return metadata.version("sinkscope")
    except metadata.PackageNotFoundError:
        return "not installed"


def usable_cpus() -> int:
    """How many CPUs this process may use; at least one."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Versions of sinkscope, Python, NumPy, and of those other libraries that this process has loaded."""
    found = {"sinkscope": program_version(), "python": platform.python_version()}
    for name in (*_ALWAYS, *(name for name in _WHEN_LOADED if name in sys.modules)):
        found[name] = _version(name)
    return found


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return (names or [platform.processor() or platform.machine()])[0]


def machine() -> dict[str, Any]:
    """System, processor kind, CPUs that this process may use, and threads where they are set or known."""
    found: dict[str, Any] = {
        "system": platform.system(),
        "processor": platform.machine(),
        "cpus": usable_cpus(),
    }
    found |= {name: os.environ[name] for name in _THREADS if os.environ.get(name)}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        found["torch_threads"] = torch.get_num_threads()
    return found


def describe_model(model: Model) -> dict[str, Any]:
    """Name, SHA-256 of the weights, dtype and sizes of a model."""
    config = model.config
    return {
        "model": model.name,
        "model_sha256": model.sha256,
        "model_sizes": {
            "family": config.family,
            "layers": config.n_layers,
            "heads": config.n_heads,
            "d_model": config.d_model,
            "dtype": str(model.dtype),
        },
    }


def describe_texts(source: str, texts: Sequence[str]) -> dict[str, Any]:
    """Where texts come from (in words, without a path), how many they are, and the SHA-256 of their UTF-8.

    The hash is over every text followed by a zero byte, so that it also fixes where texts begin and end.
    """
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return {"texts": f"{len(texts)} from {source}", "texts_sha256": digest.hexdigest()}


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _version(name: str) -> str:
    """A library's own word for its version first: it is what runs, whatever the installer recorded."""
    loaded = getattr(sys.modules.get(name), "__version__", None)
    if loaded is not None:
        return str(loaded)
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
