"""The oracle's forward pass held against transformers, on real text and on random weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Model
from oracle.loading import load_model
from validation.progress import Progress, silent
from validation.random_configs import RANDOM_CONFIGS
from validation.reference import LIFTED, random_network
from validation.report.document import Check, Column, Part, Table
from validation.stages import Batch, Run, Text, read_texts, runner, single
from validation.tally import Tally
from validation.wording import counted

__all__ = ["Agreement", "choose_batch", "long_text", "padded", "random_batches", "validate_forward"]

Array = NDArray[Any]

_MAX_RMS_RATIO = 2.0  # float32 may have so many times the error of PyTorch float32, both against float64
_LONG = 512  # tokens
_MAX_BATCH, _MAX_CELLS = 16, 16 * 64**2  # texts of a padded batch, and its texts times T squared
_ENOUGH = 20  # draws of weights: a ratio over fewer is shown and not judged
_COLUMNS = (
    Column("case", "case"),
    Column("texts", "texts", "d"),
    Column("tokens", "T"),
    Column("dtype", "dtype"),
    Column("max_absolute", "max abs", ".1e"),
    Column("bound", "bound", ".0e"),
    Column("rms_ratio", "RMS ratio", ".2f"),
    Column("worst", "worst at"),
    Column("within", "all stages"),
)


class Agreement:
    """The oracle in both precisions against PyTorch in float64, over any number of batches."""

    def __init__(self, model: Model | None = None) -> None:
        """Nothing compared yet; `model` is who runs, for `bounds_for`."""
        self.float64 = Tally("oracle-float64", "torch-float64", model)
        self.float32 = Tally("oracle-float32", "torch-float64", model)
        self.lengths: set[int] = set()
        self._squares = np.zeros(2)  # of the oracle's and PyTorch's float32 errors on rows of real tokens

    def add(self, runs: Mapping[str, Run], batch: Batch) -> None:
        """Compare one batch; `runs` holds the four implementations by name.

        Beside the truth one other side is held at a time, and a text's comparison at a time.
        """
        truth = runs["torch-float64"](batch)
        tallies = {"oracle-float64": self.float64, "oracle-float32": self.float32}
        for name in ("oracle-float64", "oracle-float32", "torch-float32"):
            found = runs[name](batch)
            for text, mask in enumerate(batch.mask):
                if name in tallies:
                    tallies[name].add(truth[text], found[text], mask)
                if name.endswith("float32"):
                    error = _squares(found[text]["attention"], truth[text]["attention"], mask)
                    self._squares[int(name.startswith("torch"))] += error
            del found
        self.lengths.update(batch.mask.sum(axis=1).tolist())

    @property
    def ratio(self) -> float:
        """RMS error of the oracle's float32 rows over that of PyTorch's, pooled over all texts.

        0 where the oracle has no error at all, infinite where only PyTorch has none.
        """
        return _ratio(*self._squares)

    def pool(self, other: Agreement) -> None:
        """Take the float32 errors of `other` into the ratio of this one."""
        self._squares += other._squares
        self.float32.texts += other.float32.texts


def validate_forward(
    model: Model,
    texts: Sequence[Text],
    progress: Progress = silent,
    *,
    reference: Path | None = None,
    draws: int = _ENOUGH,
    truncate: bool = False,
) -> tuple[Part, ...]:
    """The oracle against transformers: a table of cases in float64 and float32, and a check for each.

    Cases: `texts` one by one; one text as long as the model takes, up to 512 tokens; those of
    `choose_batch` padded on the right and padded on the left, with token types; `draws` random models with
    padding and token types. Both precisions are held against PyTorch in float64: the largest error on
    attention rows, all stages within `bounds_for`, and in float32 the RMS error at most twice PyTorch's own,
    pooled over all cases of real texts and judged from 20 texts on.
    The float32 bound is made for trained weights, so random ones are held to the RMS ratio alone in float32,
    and to none with fewer than 20 draws. `truncate` cuts texts that are too long. Errors as `diff`.
    """
    ids, skipped = read_texts(model, texts, truncate)
    batched = choose_batch(list(map(len, ids)))
    some = [ids[index] for index in batched]
    segments, pad = _segments(model), model.config.pad_id or 0
    cases: dict[str, list[Batch]] = {
        "each text": [single(tokens) for tokens in ids],
        "long text": [single(long_text(ids, min(_LONG, model.config.max_positions)))],
        "padded batch": [padded(some, pad, segments, left) for left in (False, True)],
    }
    total = sum(map(len, cases.values())) + draws
    results: list[tuple[Any, ...]] = []
    real = Agreement(model)
    runs, done = _runs(model, reference), 0
    for name, batches in cases.items():
        found = Agreement(model)
        for batch in batches:
            progress(f"oracle against transformers, {name}", done, total)
            found.add(runs, batch)
            done += 1
        results.append((name, found, True, False))
        real.pool(found)
    found, family = Agreement(), model.config.family
    for seed in range(draws):
        progress("oracle against transformers, random weights", done + seed, total)
        with TemporaryDirectory() as folder:
            config = RANDOM_CONFIGS[family][seed % len(RANDOM_CONFIGS[family])]
            drawn = load_model(random_network(folder, seed, family, **config))
            runs = _runs(drawn, None)
            for batch in random_batches(seed, drawn):
                found.add(runs, batch)
    if draws:
        results.append(("random weights", found, False, draws >= _ENOUGH))
    progress("oracle against transformers", total, total)
    rows = [row for result in results for row in _rows(*result)]
    checks = [check for result in results for check in _checks(*result)]
    judged = real.float32.texts >= _ENOUGH
    if judged:
        checks.insert(2 * len(cases), _ratio_check("real texts", real.ratio))
    pooled = f"of the cases of real texts pooled, {real.ratio:.2f} over {real.float32.texts} texts"
    notes = (
        "attention rows of real tokens, the oracle in each precision against PyTorch in float64",
        f"RMS ratio: the oracle's float32 error over PyTorch float32's; judged {pooled}"
        + ("" if judged else f": fewer than {_ENOUGH}, so that it is shown and not judged"),
        "worst at: x text (from 1), L layer, H head, q query, k key (from 0)",
        f"padded batch: {_batch_words(ids, batched)}, on the right and on the left, with token types",
        f"random weights: {draws} draws of two models of the family {family}, each with a text alone and "
        "three padded on either side; the float32 bound is made for trained weights, so that here only the "
        "RMS ratio is judged in float32",
        f"torch: {LIFTED}",
        "all stages: embeddings, queries, keys, values and their norms, scores, rows and block "
        "outputs within their bounds",
        *((f"skipped: {counted(skipped, 'text')} without tokens",) if skipped else ()),
    )
    return (Table("forward", "The oracle against transformers", _COLUMNS, tuple(rows), notes), *checks)


def choose_batch(lengths: Sequence[int]) -> list[int]:
    """Which texts are padded together, by place: as many as memory should hold, up to 16, of all lengths.

    The texts of the batch times the square of its T (the longest and two more) stay within 16 * 64**2,
    unless a single text exceeds that by itself. Texts that are short enough are taken evenly by length.
    """
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for count in range(min(_MAX_BATCH, len(order)), 1, -1):
        fitting = [place for place in order if count * (lengths[place] + 2) ** 2 <= _MAX_CELLS]
        if len(fitting) >= count:
            spread = np.linspace(0, len(fitting) - 1, count).round().astype(int)
            return sorted(fitting[rank] for rank in spread)
    return order[:1]


def long_text(ids: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
    """Token ids of `length` tokens: the texts over and over, inside the first one's first and last token."""
    inner = np.concatenate([tokens[1:-1] for tokens in ids])
    if not inner.size or length < 2:
        return np.resize(np.concatenate(ids), length)
    return np.concatenate([ids[0][:1], np.resize(inner, length - 2), ids[0][-1:]])


def padded(ids: Sequence[NDArray[np.int64]], pad: int, segments: int, left: bool) -> Batch:
    """All texts in one batch, two columns wider than the longest; second halves are the last segment."""
    shape = (len(ids), max(map(len, ids)) + 2)
    batch = Batch(
        np.full(shape, pad, dtype=np.int64), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=np.int64)
    )
    for text, tokens in enumerate(ids):
        start = shape[1] - len(tokens) if left else 0
        here = slice(start, start + len(tokens))
        batch.token_ids[text, here] = tokens
        batch.mask[text, here] = True
        batch.token_types[text, here] = np.where(np.arange(len(tokens)) < len(tokens) / 2, 0, segments - 1)
    return batch


def random_batches(seed: int, model: Model) -> list[Batch]:
    """One text alone, and three padded on each side with token types; all lengths are prime."""
    rng, vocabulary = np.random.default_rng(seed), model.config.vocab_size
    texts = [rng.integers(vocabulary, size=length) for length in (23, 17, 11)]
    alone = single(rng.integers(vocabulary, size=29))
    segments, pad = _segments(model), model.config.pad_id or 0
    return [alone, *(padded(texts, pad, segments, left) for left in (False, True))]


def _segments(model: Model) -> int:
    types = model.embeddings.token_types
    return 1 if types is None else len(types)


def _batch_words(ids: Sequence[Array], batched: Sequence[int]) -> str:
    """Which of the texts with tokens are in the padded batch, counted from 1."""
    if len(batched) == len(ids):
        return f"all {len(ids)} texts"
    numbers = ", ".join(str(place + 1) for place in batched)
    lengths = [len(ids[place]) for place in batched]
    some = f"{len(batched)} of {len(ids)} texts with tokens, chosen by length to fit into memory"
    return f"{some} (numbers {numbers}; T {min(lengths)}-{max(lengths)})"


def _runs(model: Model, reference: Path | None) -> dict[str, Run]:
    names = ("oracle-float64", "torch-float64", "oracle-float32", "torch-float32")
    return {name: runner(model, name, reference) for name in names}


def _rows(name: str, found: Agreement, bounded: bool, judged: bool) -> Iterator[tuple[Any, ...]]:
    tokens = f"{min(found.lengths)}-{max(found.lengths)}" if len(found.lengths) > 1 else str(*found.lengths)
    for dtype, tally in (("float64", found.float64), ("float32", found.float32)):
        rows, held = tally.stages["attention"], dtype == "float64" or bounded
        yield (
            name,
            tally.texts,
            tokens,
            dtype,
            rows.max_absolute,
            rows.bound.limit if held else None,
            found.ratio if dtype == "float32" else None,
            rows.place,
            tally.leaving is None if held else None,
        )


def _checks(name: str, found: Agreement, bounded: bool, judged: bool) -> Iterator[Check]:
    key = f"forward.{name.replace(' ', '-')}"
    for dtype, tally in (("float64", found.float64), ("float32", found.float32)):
        if dtype == "float64" or bounded:
            rows = tally.stages["attention"]
            expected = f"attention rows within {rows.bound.limit:.0e}, every stage within its bound"
            yield Check(
                f"{key}.{dtype}",
                f"{name}, {dtype}: {expected}",
                tally.leaving or f"rows {rows.max_absolute:.1e}, every stage within",
                tally.leaving is None,
            )
    if judged:
        yield _ratio_check(name, found.ratio)


def _ratio_check(name: str, ratio: float) -> Check:
    expected = f"{name}, float32: RMS error at most {_MAX_RMS_RATIO:g} times PyTorch's own"
    found = f"{ratio:.2f} times"
    return Check(f"forward.{name.replace(' ', '-')}.rms", expected, found, ratio <= _MAX_RMS_RATIO)


def _squares(found: Array, truth: Array, mask: NDArray[np.bool_]) -> float:
    """Sum of squared errors of the rows of real queries, layer by layer; both (layer, head, query, key)."""
    pairs = zip(found, truth, strict=True)
    errors = (np.subtract(ours, true, dtype=np.float64)[:, mask] for ours, true in pairs)
    return float(sum(np.square(error).sum() for error in errors))


def _ratio(ours: float, theirs: float) -> float:
    if not ours:
        return 0.0
    return float(np.sqrt(ours / theirs)) if theirs else float("inf")
