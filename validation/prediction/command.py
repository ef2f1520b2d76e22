"""What `sinkscope predict` does, without a command line around it: arguments in, a Document out."""

from __future__ import annotations

from validation.audit.command import bundled_passages
from validation.command_parts import Texts, document, load
from validation.prediction.frozen import load_predictor
from validation.prediction.predicting import predict
from validation.progress import Progress
from validation.report.document import Document
from validation.report.live import announce_compiling
from validation.sink_report import as_read

__all__ = ["bundled_passages", "predict_texts"]


def predict_texts(
    model_name: str,
    texts: Texts,
    *,
    sink: str,
    layers: str | None,
    truncate: bool,
    engine: str,
    seed: int,
    progress: Progress,
) -> Document:
    """Predict the flip rates of a model on texts and compare; a changed predictor is refused before all."""
    predictor = load_predictor()
    model = load(model_name, progress)
    found = predict(
        model,
        texts.texts,
        sink=sink,
        layers=layers,
        truncate=truncate,
        engine=engine,
        seed=seed,
        predictor=predictor,
        on_compile=announce_compiling,
        progress=progress,
    )
    return document(
        "predict",
        model,
        texts,
        found.parts,
        truncate=truncate,
        sink=as_read(sink, model.config.causal),
        convention="keep against drop",
        queries="content",
        layers=layers or "all",
        engine=engine,
        seed=seed,
        frozen_sha256=predictor.frozen.sha256,
        predictor_made=predictor.frozen.made,
    )
