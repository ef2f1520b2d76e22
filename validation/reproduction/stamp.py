"""What a kept result belongs to: the code, the libraries and the command that made it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from validation.reproduction.runs import Run

__all__ = ["ROOT", "code_digest", "results_digest", "stamp_of"]

ROOT = Path(__file__).parents[2]
"""The folder that holds the three packages: a checkout, or where packages are installed."""

_PACKAGES = ("oracle", "fastpath", "validation")
_KINDS = (".py", ".json", ".toml", ".txt")
# what is made from results, and so changes none
_LATER = ("validation/reproduction/", "validation/results/", "validation/ledger/", "validation/claims")
_LIBRARIES = (
    "gguf",
    "numba",
    "numpy",
    "safetensors",
    "scikit-learn",
    "scipy",
    "tokenizers",
    "torch",
    "transformers",
)


def code_digest(root: Path = ROOT) -> str:
    """SHA-256 over the code and the data of the packages, without what is only made from results."""
    found = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in _KINDS and not name.startswith(_LATER):
                found.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def results_digest(name: str, root: Path = ROOT) -> str:
    """SHA-256 over what a run of that name makes its result from: rules, and the results of the others."""
    found = hashlib.sha256()
    for path in sorted((root / "validation").rglob("*")):
        place = path.relative_to(root).as_posix()
        own = place == f"validation/results/{name}.json"
        if path.suffix in _KINDS and place.startswith(_LATER) and not own:
            found.update(place.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def stamp_of(run: Run) -> Mapping[str, Any]:
    """What a result of `run` made here and now would carry; another stamp is another result."""
    return {
        "command": list(run.command),
        "leave_out": list(run.leave_out),
        "code": code_digest(),
        **({"results": results_digest(run.name)} if run.reads_results else {}),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "absent"
    return found
