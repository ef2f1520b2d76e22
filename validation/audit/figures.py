"""The figures of an audit as files: the map of the heads for each metric, and the flip chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from oracle._checks import reject
from validation.audit.clustering import Clustering
from validation.audit.drawing import Subject
from validation.audit.flip_chart import FlipBar, flip_chart
from validation.audit.head_map import head_map
from validation.report.files import note_written

__all__ = ["save_figures", "write_figures"]

Array = NDArray[Any]


def save_figures(
    folder: str | PathLike[str],
    clusterings: Sequence[Clustering],
    flips: Sequence[FlipBar],
    labels: Sequence[str],
    covariates: Mapping[str, Array],
    subject: Subject,
    *,
    format: str = "png",
) -> list[Path]:
    """Write a map for each clustering, "map-METRIC.png", and the flip chart, "flips.png", into `folder`.

    `labels` and `covariates` are those of the clusterings, short labels such as "3.11" suit the map best; the
    first covariate colours the heads. Without `flips` there is no chart. The folder is made if it is not
    there; files of these names are replaced. Returns their paths. Raises InputError for another format, no
    covariate or a folder that cannot be written to, Unavailable without the extra.
    """
    if clusterings and not covariates:
        reject("covariates", expected="one that colours the heads", found="none", todo="Give one.")
    chosen = next(iter(covariates), "")
    files = {
        f"map-{clustering.first.key[0]}": head_map(
            clustering, labels, covariates[chosen], chosen, subject, format=format
        )
        for clustering in clusterings
    }
    if flips:
        files["flips"] = flip_chart(flips, subject, format=format)
    return write_figures(folder, files, format)


def write_figures(folder: str | PathLike[str], files: Mapping[str, bytes], format: str) -> list[Path]:
    """Write figures by name, "NAME.png", into a folder that is made if it is not there; their paths.

    Raises InputError for a folder that cannot be written to.
    """
    place, written = Path(folder), []
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            written.append(place / f"{name}.{format}")
            written[-1].write_bytes(data)
            note_written(written[-1])
    except OSError as error:
        reject(
            str(folder),
            expected="a folder for figures",
            found=error.strerror or str(error),
            todo="Name another one.",
        )
    return written
