"""`sinkscope measure`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples, refuse_beside
from validation.cli.options import (
    Engine,
    File,
    Json,
    Layers,
    MaybeEncoding,
    MaybeModel,
    Rows,
    Text,
    Verify,
)
from validation.running import calm_threads, run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope measure",
        "sinkscope measure --file my_texts.txt --layers 0,3-5 --json sinks.json",
        'sinkscope measure --text "She paid and left." --sink token:. --layers 0',
        "sinkscope measure --file my_texts.txt --verify 100",
        "sinkscope measure --attention rows.npz --sink 0",
    )
)
def measure(
    model: MaybeModel = None,
    text: Text = None,
    file: File = None,
    attention: Rows = None,
    sink: Annotated[
        str,
        typer.Option(
            "--sink", metavar="SINK", help="special, first, none, key positions like 0,7, or token:TEXT."
        ),
    ] = "special",
    weighting: Annotated[
        str,
        typer.Option(
            "--weighting",
            metavar="NAMES",
            help="attention, value_norm, transformed_norm, head_summed_norm (several with commas), or all.",
        ),
    ] = "all",
    layers: Layers = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="AXES",
            help="What the axes of 'attention' are, like 'batch head query key'.  [default: 'layer head "
            "query key'; of 5 axes 'layer batch head query key'; of 3 'head query key']",
        ),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the model's positions.")
    ] = False,
    engine: Engine = "fastpath",
    verify: Verify = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Report how much attention goes to the sink.

    Of a model on texts, or of attention rows from a file (then no model is loaded). With neither
    --text nor --file the 14 bundled sentences are measured.
    """
    from validation import commands

    calm_threads()
    if attention is None:
        if layout is not None:
            commands.refuse_alone("--layout", "--attention")
        name = commands.DEFAULT_MODEL if model is None else model
        return run(
            json,
            lambda tell: commands.measure(
                name,
                commands.choose_texts(text, file, encoding or "utf-8"),
                sink=sink,
                weightings=weighting,
                layers=layers,
                truncate=truncate,
                engine=engine,
                verify=verify,
                progress=tell,
            ),
            commands.inputs(name, file),
        )
    beside = {
        "--model": model,
        "--text": text,
        "--file": file,
        "--truncate": truncate,
        "--encoding": encoding,
    }
    refuse_beside("--attention", beside)
    return run(
        json,
        lambda tell: commands.measure_file(
            attention,
            sink=sink,
            weightings=weighting,
            layers=layers,
            layout=layout,
            engine=engine,
            verify=verify,
            progress=tell,
        ),
        [attention],
    )
