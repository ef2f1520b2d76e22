"""`sinkscope predict`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples
from validation.cli.options import Encoding, Engine, File, Json, Layers, Model, Sink, Text, Truncate
from validation.running import calm_threads, run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope predict",
        "sinkscope predict --model path/to/model --file my_texts.txt --json p.json",
        "sinkscope predict --model path/to/model --layers 0-5",
    )
)
def predict(
    model: Model = "minilm-l6",
    text: Text = None,
    file: File = None,
    sink: Sink = "special",
    layers: Layers = None,
    truncate: Truncate = False,
    engine: Engine = "fastpath",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Draws the halves of the texts.")
    ] = 0,
    encoding: Encoding = "utf-8",
    json: Json = None,
) -> int:
    """Predict how much depends on the sink, then look.

    How many verdicts about heads flip when the sink is dropped is predicted from statistics of the rows as
    they are, by a predictor that was frozen before; then the flips are counted, and each metric is confirmed,
    failed, or abstained from. With neither --text nor --file the 20 bundled passages are taken.
    """
    from validation import command_parts
    from validation.prediction import command

    calm_threads()
    return run(
        json,
        lambda tell: command.predict_texts(
            model,
            command_parts.choose_texts(text, file, encoding, command.bundled_passages()),
            sink=sink,
            layers=layers,
            truncate=truncate,
            engine=engine,
            seed=seed,
            progress=tell,
        ),
        command_parts.inputs(model, file),
    )
