"""`audit`: do conclusions about heads depend on keeping or dropping the sink? Of a model, or of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from oracle._checks import reject
from oracle.distances import METRICS
from oracle.model import Model
from oracle.trace import Trace
from validation.arrays_file import ReadArrays, read_arrays
from validation.audit.between import between_tables
from validation.audit.checking import PairVerification
from validation.audit.clustering import Clustering
from validation.audit.context import Context, describe
from validation.audit.distances import DistanceGatherer, Distances
from validation.audit.flips import Analysis, analyse
from validation.audit.grouping import PRESET, clusterings, grouping_parts, parse_metrics
from validation.audit.places import check_windows
from validation.audit.safety import closing_notes, safety_tables
from validation.audit.tables import (
    Missing,
    anchor_table,
    count_table,
    distance_table,
    flip_tables,
    sensitivity_table,
)
from validation.audit.zeros import DELTAS, REFUSE, FoundZeros, ZerosChoice, find_zeros, parse_zeros
from validation.choices import parse_layers
from validation.engines import load_engine
from validation.gathering import Gathered, gather, gather_arrays
from validation.headline import length_words, row_notes
from validation.progress import Progress, silent
from validation.report.document import Note, Part
from validation.table import MIN_CONTENT_KEYS, content_queries
from validation.verify import check_draw
from validation.wording import counted

__all__ = ["Audit", "audit", "audit_arrays"]


_NO_CONTENT = (
    "Give rows with content, or another sink set. Keys on which nobody puts weight are read as padding: an "
    "array `visible` says which are none."
)
_CHOICES = {
    "refuse": "Aitchison's distances are not computed. Choose --zeros common-support or, say, "
    "--zeros replace:1e-6",
    "common-support": "for Aitchison's distances a part that is zero in a row is left out of its pairs",
}


class Audit(NamedTuple):
    """The report of an audit, and what it is made from."""

    parts: tuple[Part, ...]
    distances: Distances
    analysis: Analysis
    clusterings: Mapping[str, Clustering]
    context: Context


def audit(
    model: Model,
    texts: str | Sequence[str],
    *,
    sink: Any = "special",
    layers: str | Sequence[int] | None = None,
    min_content_keys: int = MIN_CONTENT_KEYS,
    truncate: bool = False,
    cluster: str | Sequence[str] | None = None,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    seed: int = 0,
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> Audit:
    """Which verdicts about heads of `model` on `texts` flip when the sink is dropped instead of kept.

    One text is run at a time, and only the distances of its content queries stay; Aitchison's come from the
    scores, so that no zero arises. `sink` is read by `oracle.choose_sinks`, `layers` by `parse_layers`; a
    causal text counts from the first row with `min_content_keys` content keys. A text longer than the
    model's positions raises InputError, unless `truncate` cuts it, and so do layers whose windows
    differ. `cluster` names metrics by which the heads are clustered and mapped too (`parse_metrics`).
    `engine` is "fastpath" or "oracle"; `verify` is the number of random pairs of heads that the oracle
    computes again, with a Check of them; these are others each time unless `verify_seed` is given. `seed`
    draws the halves of the texts.
    InputError too where no text has a content query.
    """
    measures = load_engine(engine, on_compile)
    verification = _verification(engine, verify, verify_seed)
    grouped = parse_metrics(cluster)
    chosen = parse_layers(layers, model.config.n_layers)
    texts = [texts] if isinstance(texts, str) else texts
    check_windows(model, texts, chosen, truncate)
    gatherer = DistanceGatherer(
        measures,
        chosen,
        preset=PRESET in grouped,
        min_content_keys=min_content_keys,
        verification=verification,
    )

    def add(text: int, trace: Trace) -> None:
        gatherer.add(text, trace.attention, trace.sink_mask, trace.visible, trace.scores)

    gathered = gather(
        model,
        texts,
        sink=sink,
        weightings=("attention",),
        layers=chosen,
        min_content_keys=min_content_keys,
        truncate=truncate,
        progress=progress,
        each=add,
        keep=("scores",),
        measures=measures,
    )
    note = Note("zeros", "Aitchison's distances are taken from the scores, where no zero arises.")
    found = _Found(gathered, gatherer, measures, note, {}, REFUSE, grouped, verification)
    return _report(found, model.name, seed, progress)


def audit_arrays(
    source: Any,
    *,
    sink: Any = "special",
    layers: str | Sequence[int] | None = None,
    layout: str | None = None,
    zeros: str = "refuse",
    min_content_keys: int = MIN_CONTENT_KEYS,
    cluster: str | Sequence[str] | None = None,
    engine: str = "fastpath",
    verify: int | None = None,
    verify_seed: int | None = None,
    seed: int = 0,
    subject: str = "the arrays",
    on_compile: Callable[[], None] | None = None,
    progress: Progress = silent,
) -> Audit:
    """An audit of attention rows without a model: an .npz file, a mapping of arrays, or bare rows.

    `source` is read by `validation.arrays_file.read_arrays`, unless that was done before. `zeros` is
    "refuse", "common-support" or "replace:1e-6": where rows have exact zeros and the choice is to refuse,
    Aitchison's distances are not computed and the report says so; with a replacement it has a table over
    several of them. `subject` names the rows in sentences. The rest is as in `audit`.
    """
    measures = load_engine(engine, on_compile)
    verification = _verification(engine, verify, verify_seed)
    choice, grouped = parse_zeros(zeros), parse_metrics(cluster)
    arrays = source if isinstance(source, ReadArrays) else read_arrays(source, sink=sink, layout=layout)
    chosen = parse_layers(layers, arrays.rows.attention.shape[1])
    lacking = _zeros_of(arrays, chosen, min_content_keys)
    refused = bool(lacking.parts) and choice.zeros == "refuse"
    deltas = () if choice.delta is None or not lacking.parts else {*DELTAS, choice.delta}
    gatherer = DistanceGatherer(
        measures,
        chosen,
        precision=arrays.precision,
        metrics=[metric for metric in METRICS if not (refused and metric.startswith("aitchison"))],
        zeros=choice,
        deltas=sorted(deltas),
        preset=PRESET in grouped,
        min_content_keys=min_content_keys,
        verification=verification,
    )
    gathered = gather_arrays(
        arrays,
        sink=sink,
        layers=chosen,
        min_content_keys=min_content_keys,
        progress=progress,
        each=gatherer.add,
        measures=measures,
    )
    missing = {}
    if refused:
        why = f"{counted(lacking.parts, 'zero')}, the first at {lacking.first}; choose --zeros"
        missing = {"aitchison": why}
    note = _zeros_note(lacking, choice)
    found = _Found(gathered, gatherer, measures, note, missing, choice, grouped, verification, _NO_CONTENT)
    return _report(found, subject, seed, progress)


def _verification(engine: str, pairs: int | None, seed: int | None) -> PairVerification | None:
    check_draw(engine, pairs, seed)
    return None if pairs is None else PairVerification(pairs, seed)


class _Found(NamedTuple):
    gathered: Gathered
    gatherer: DistanceGatherer
    engine: ModuleType
    zeros: Note
    missing: Missing
    choice: ZerosChoice
    grouped: tuple[str, ...]
    verification: PairVerification | None
    todo: str = "Give a text with words, or another sink set."  # where no row counts


def _zeros_of(arrays: ReadArrays, layers: Sequence[int], min_content_keys: int) -> FoundZeros:
    """The zeros of all rows that count."""
    found = FoundZeros()
    for text, (rows, sinks, visible) in enumerate(
        zip(arrays.rows.attention, arrays.sinks, arrays.rows.visible, strict=True)
    ):
        queries, _ = content_queries(sinks, visible, "content", min_content_keys)
        found = found.and_then(find_zeros(text, rows, sinks, visible, queries, layers))
    return found


def _zeros_note(lacking: FoundZeros, choice: ZerosChoice) -> Note:
    empty = ""
    if lacking.without_content:
        rows = counted(lacking.without_content, "row")
        empty = f" Not looked at: {rows} with no weight on any content key, undefined whatever is chosen."
    if not lacking.parts:
        return Note("zeros", "Zeros: none among the parts of the rows that count." + empty)
    if choice.delta is not None:
        what = f"for Aitchison's distances {choice.delta:g} takes their place"
    else:
        what = _CHOICES[choice.zeros]
    parts = counted(lacking.parts, "part")
    said = f"Zeros: {parts} of the rows that count, the first at {lacking.first}; {what}."
    return Note("zeros", said + empty)


def _report(found: _Found, subject: str, seed: int, progress: Progress) -> Audit:
    gathered, distances = found.gathered, found.gatherer.result()
    if distances is None:
        reject(
            "texts",
            expected="a text with a token beside the sinks",
            found=f"no content query in {counted(gathered.sinks.texts, 'text')}",
            todo=found.todo,
        )
    analysis = analyse(distances, found.engine.verdict_flips, seed=seed, progress=progress)
    groups = clusterings(distances, found.grouped, seed, progress)
    context = describe(gathered, distances.rows)
    words, missing = context.words, found.missing
    parts: tuple[Part, ...] = (
        *gathered.warnings,
        gathered.sinks.note(),
        *row_notes(gathered.table, "content", gathered.min_content_keys),
        *_pooling(distances, context),
        found.zeros,
        *gathered.notes,
        gathered.sinks.undeclared_part(),
        Note("section", "Distances between heads"),
        distance_table(analysis, missing, words),
        *sensitivity_table(analysis, found.choice.delta, words),
        Note("section", "Verdicts: which of two heads is nearer to a third"),
        *flip_tables(analysis, missing, words),
        count_table(analysis, words),
        anchor_table(analysis, words),
        *between_tables(analysis, words),
        Note("section", "Where each convention is safe"),
        *safety_tables(analysis, words),
        *grouping_parts(distances, groups, found.grouped, words),
        Note("section", "In a sentence"),
        *closing_notes(analysis, context, subject, missing),
        *(() if found.verification is None else (found.verification.part(),)),
    )
    return Audit(parts, distances, analysis, groups, context)


def _pooling(distances: Distances, context: Context) -> tuple[Note, ...]:
    """What was pooled, and where keep and drop cannot differ."""
    notes = []
    if len(context.lengths) > 1:
        said = (
            f"Pooled: rows of texts of different length ({length_words(context.lengths)}). Distances depend "
            "on T, so hold two audits against each other at equal T only."
        )
        notes.append(Note("pooled", said))
    if len(distances.texts) > distances.blocks:
        said = f"Splits: {counted(len(distances.texts), 'text')} are split as {distances.blocks} blocks."
        notes.append(Note("blocks", said))
    if not (distances.sink_share > 0).any():
        said = "No sink is visible in any row that counts: keep and drop are the same, and nothing can flip."
        notes.append(Note("no_sink", said))
    return tuple(notes)
