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
    Layout,
    MaybeEncoding,
    MaybeModel,
    Rows,
    Sink,
    Text,
    Truncate,
    Verify,
    VerifySeed,
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
    sink: Sink = "special",
    weighting: Annotated[
        str,
        typer.Option(
            "--weighting",
            metavar="NAMES",
            help="attention, value_norm, transformed_norm, head_summed_norm (several with commas), or all.",
        ),
    ] = "all",
    layers: Layers = None,
    layout: Layout = None,
    truncate: Truncate = False,
    engine: Engine = "fastpath",
    verify: Verify = None,
    verify_seed: VerifySeed = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Report how much attention goes to the sink.

    Of a model on texts, or of attention rows from a file (then no model is loaded). With neither
    --text nor --file the 14 bundled sentences are measured.
    """
    from validation import command_parts, commands

    calm_threads()
    if attention is None:
        if layout is not None:
            command_parts.refuse_alone("--layout", "--attention")
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
                verify_seed=verify_seed,
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
            verify_seed=verify_seed,
            progress=tell,
        ),
        [attention],
    )
