"""What a kept result belongs to: the code, the libraries, the command, the processor where that matters."""

from __future__ import annotations

import hashlib
import json
import platform
import tomllib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from validation.provenance import processor
from validation.reproduction.runs import Run

__all__ = ["ROOT", "code_digest", "results_digest", "stamp_of"]

ROOT = Path(__file__).parents[2]
"""The folder that holds the three packages: a checkout, or where packages are installed."""

_PACKAGES = ("oracle", "fastpath", "validation")
_KINDS = (".py", ".json", ".toml", ".txt")
# what is made from results, and so changes none; of claims.toml that is so of all but its figures
_LATER = ("validation/reproduction/", "validation/results/", "validation/ledger/", "validation/claims.toml")
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
    """SHA-256 over the code and the data of the packages, without what is only made from results.

    Studies print published figures, so that these are in it; the wording of a rule is not.
    """
    found = hashlib.sha256()
    found.update(json.dumps(_figures(root)).encode())
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in _KINDS and not name.startswith(_LATER):
                found.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _figures(root: Path) -> list[str]:
    """The published figures as claims.toml has them, whatever their order and their claims."""
    place = root / "validation" / "claims.toml"
    if not place.is_file():
        return []
    data = place.read_bytes()
    try:
        claims = tomllib.loads(data.decode()).get("claim", [])
        return sorted(json.dumps(one, sort_keys=True) for claim in claims for one in claim.get("figures", []))
    except (ValueError, TypeError, AttributeError):  # no list of claims: `read_claims` says what is wrong
        return [hashlib.sha256(data).hexdigest()]


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
        **({"processor": processor()} if run.elsewhere else {}),
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
