"""`sinkscope collapse`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from validation.cli.app import app, examples, refuse_beside
from validation.cli.options import Engine, File, Json, Layers, MaybeEncoding, Sink, Text, Truncate
from validation.running import calm_threads, run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope collapse runs/step*",
        "sinkscope collapse first middle last --steps 0,1000,20000 --file my_texts.txt",
        "sinkscope collapse org/name@step0 org/name@step512 org/name@step143000 --layers 0-2",
        "sinkscope collapse runs/checkpoint-* --figures figures --json collapse.json",
        "sinkscope collapse --demo",
        "sinkscope collapse --demo --widths 64 --seeds 0 --out series",
        "cd series/backcopy-width64-seed0 && sinkscope collapse step0 step64 step2048 --file texts.txt",
    )
)
def collapse(
    places: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...", show_default=False, help="Checkpoints: directories or hub revisions."
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", metavar="STEPS", help="Their steps, like 0,128,1024.  [default: as named]"),
    ] = None,
    text: Text = None,
    file: File = None,
    sink: Sink = "special",
    layers: Layers = None,
    min_content_keys: Annotated[
        int | None,
        typer.Option(
            "--min-content-keys",
            metavar="N",
            min=1,
            help="A row of a causal text counts if it sees so many content keys.  [default: 8]",
        ),
    ] = None,
    truncate: Truncate = False,
    engine: Engine = "fastpath",
    results: Annotated[
        str | None,
        typer.Option(
            "--results",
            metavar="FILE",
            help="Keep what is measured there, and go on from what is there.  [default: in the cache]",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option("--figures", metavar="DIR", help="Draw the channels over log steps into DIR."),
    ] = None,
    figure_format: Annotated[
        str | None, typer.Option("--figure-format", metavar="NAME", help="png or svg.  [default: png]")
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Train small series here (minutes; needs PyTorch once) and measure those."
        ),
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Where --demo puts its series.  [default: in the cache]"),
    ] = None,
    widths: Annotated[
        str | None,
        typer.Option("--widths", metavar="NUMBERS", help="Widths of --demo.  [default: 16,64,128]"),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", metavar="NUMBERS", help="Seeds of --demo.  [default: 0,1,2]")
    ] = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Say how much of an entropy drop is the sink growing.

    Of the checkpoints of one training run, at the same texts and rows. The drop from the checkpoint of
    highest entropy to the last is split row by row into the sink growing and attention sharpening, beside
    controls.
    With neither --text nor --file the 20 bundled passages are taken. A run that was stopped goes on where it
    was.
    """
    from validation import command_parts as parts
    from validation.studies.collapse import command
    from validation.table import MIN_CONTENT_KEYS

    calm_threads()
    if figure_format is not None and figures is None:
        parts.refuse_alone("--figure-format", "--figures")
    wanted = command.Wanted(figures, figure_format or "png")
    if demo:
        beside = {
            "DIR": places,
            "--steps": steps,
            "--text": text,
            "--file": file,
            "--sink": None if sink == "special" else sink,
            "--layers": layers,
            "--min-content-keys": min_content_keys,
            "--truncate": truncate,
            "--encoding": encoding,
        }
        refuse_beside("--demo", beside)
        planned = command.plan_demo(widths, seeds)
        wanted.check()
        return run(
            json,
            lambda tell: command.collapse_demo(
                planned, out=out, engine=engine, results=results, wanted=wanted, progress=tell
            ),
            [*filter(None, [results])],
        )
    for option, value in {"--out": out, "--widths": widths, "--seeds": seeds}.items():
        if value is not None:
            parts.refuse_alone(option, "--demo")
    given = list(places or [])
    at = command.read_steps(steps)
    wanted.check()
    return run(
        json,
        lambda tell: command.collapse_checkpoints(
            given,
            parts.choose_texts(text, file, encoding or "utf-8", command.bundled_passages()),
            steps=at,
            sink=sink,
            layers=layers,
            min_content_keys=MIN_CONTENT_KEYS if min_content_keys is None else min_content_keys,
            truncate=truncate,
            engine=engine,
            results=results,
            wanted=wanted,
            progress=tell,
        ),
        [*map(os.path.expanduser, given), *filter(None, [file, results])],
    )
