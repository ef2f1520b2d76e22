"""The user's cache: where it is, copies put there whole, copies known to be whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from oracle._checks import Unavailable
from oracle.loading._files import one_line, sha256_of

__all__ = [
    "CACHE_VARIABLE",
    "cache_folder",
    "files_of",
    "install",
    "manifest_of",
    "models_folder",
    "remove",
    "workshop",
    "write_manifest",
]

CACHE_VARIABLE = "SINKSCOPE_CACHE"
_MANIFEST = "manifest.json"
_WORKSHOP = ".making-"
_ABANDONED = 24 * 3600.0  # seconds: no fetch takes a day, so a workshop this old has lost its process


def cache_folder() -> Path:
    """The program's cache, which need not exist: SINKSCOPE_CACHE, else a folder in the user's cache.

    Unavailable where neither can be had.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_cache_dir("sinkscope", appauthor=False)
        if not os.path.isabs(chosen):  # what is left of ~ when there is no home folder
            raise Unavailable(
                f"No home folder is known, so there is no place for fetched models. Set {CACHE_VARIABLE} to "
                "a folder that can be written."
            )
    try:
        return Path(os.path.abspath(os.path.expanduser(chosen)))
    except OSError as error:  # a relative path, and the current folder has been deleted
        raise Unavailable(
            f"{CACHE_VARIABLE}={chosen} is relative to a folder that cannot be found ({one_line(error)}). "
            "Name a whole path."
        ) from error


def models_folder() -> Path:
    """The folder of cached models, which need not exist; errors as `cache_folder`."""
    return cache_folder() / "models"


@contextmanager
def workshop() -> Iterator[Path]:
    """A temporary folder inside the cache, so that what is made there can be moved into place in one step."""
    folder = models_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        made = Path(tempfile.mkdtemp(prefix=_WORKSHOP, dir=folder))
    except OSError as error:
        _unwritable(folder, error)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def write_manifest(folder: Path, about: dict[str, Any]) -> None:
    """Record size, time stamp and SHA-256 of every file in `folder`, with `about`."""
    files = {}
    for path in sorted(folder.iterdir()):
        status = path.stat()
        files[path.name] = {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256_of(path)}
    (folder / _MANIFEST).write_text(json.dumps({**about, "files": files}, indent=1))


def manifest_of(folder: Path) -> dict[str, Any]:
    """What `write_manifest` wrote in `folder`; an empty one where it cannot be read."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def files_of(folder: Path, about: dict[str, Any]) -> dict[str, str] | None:
    """SHA-256 by file name of a copy that is whole and was made from `about`; None for any other.

    Sizes are compared always, contents only where a time stamp differs from the recorded one.
    """
    try:
        manifest = manifest_of(folder)
        if any(manifest[key] != value for key, value in about.items()):
            return None
        for name, recorded in manifest["files"].items():
            status = (folder / name).stat()
            if status.st_size != recorded["size"]:
                return None
            if status.st_mtime_ns != recorded["mtime_ns"] and sha256_of(folder / name) != recorded["sha256"]:
                return None
        return {name: str(recorded["sha256"]) for name, recorded in manifest["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def install(made: Path, final: Path) -> None:
    """Move the finished folder `made` to `final` in one step, whatever other processes do meanwhile.

    Where `final` exists already (another process was first, or it is damaged), its files are replaced one by
    one, each in one step and the manifest last. Every process brings the same bytes, so at no moment does
    `final` hold less than it did.
    """
    try:
        if final.is_symlink() or final.is_file():
            final.unlink()
        if not final.exists():
            with suppress(OSError):  # another process was first, or what follows says why
                made.rename(final)
                return
        final.mkdir(exist_ok=True)
        for path in sorted(made.iterdir(), key=lambda path: path.name == _MANIFEST):
            if (final / path.name).is_dir():
                shutil.rmtree(final / path.name)
            path.replace(final / path.name)
    except OSError as error:
        _unwritable(final, error)


def remove(final: Path) -> bool:
    """Delete a copy, out of everybody's sight first; False where there was none."""
    if not os.path.lexists(final):
        return False
    with workshop() as place:
        try:
            final.rename(place / "removed")
        except FileNotFoundError:  # another process was first
            return False
        except OSError as error:
            _unwritable(final, error)
    return True


def _sweep(folder: Path) -> None:
    """Delete what killed processes left behind."""
    for left in folder.glob(f"{_WORKSHOP}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> NoReturn:
    raise Unavailable(
        f"The cache cannot be written at {folder} ({one_line(error)}). Make room there, or set "
        f"{CACHE_VARIABLE} to a folder that can be written."
    ) from error
