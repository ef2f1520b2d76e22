"""`sinkscope measure`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from validation.command_parts import Texts

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope measure",
        "sinkscope measure --file my_texts.txt --layers 0,3-5 --json sinks.json",
        'sinkscope measure --text "She paid and left." --sink token:. --layers 0',
        "sinkscope measure --file my_texts.txt --verify 100",
        "sinkscope measure --attention rows.npz --sink 0",
        "sinkscope measure --model smollm2-135m --lengths 64,128,256,512,1024",
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
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths",
            metavar="TOKENS",
            help="Cut every text at these numbers of tokens, like 64,128,256, and show shares by layer and "
            "length.",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option("--figures", metavar="DIR", help="Draw the shares of --lengths by layer, into DIR."),
    ] = None,
    figure_format: Annotated[
        str | None, typer.Option("--figure-format", metavar="NAME", help="png or svg.  [default: png]")
    ] = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Report how much attention goes to the sink.

    Of a model on texts, or of attention rows from a file (then no model is loaded). With neither
    --text nor --file the 14 bundled sentences are measured; with --lengths two long bundled texts.
    """
    from validation import command_parts, commands

    calm_threads()
    if figures is not None and lengths is None:
        command_parts.refuse_alone("--figures", "--lengths")
    if figure_format is not None and figures is None:
        command_parts.refuse_alone("--figure-format", "--figures")
    if lengths is not None:
        beside: dict[str, object] = {"--attention": attention, "--layout": layout}
        beside |= {"--truncate": truncate, "--verify": verify, "--verify-seed": verify_seed}
        refuse_beside("--lengths", beside)
        return _lengths(
            commands.DEFAULT_MODEL if model is None else model,
            command_parts.choose_texts(text, file, encoding or "utf-8") if text or file is not None else None,
            command_parts.read_lengths(lengths, "--lengths"),
            command_parts.inputs(commands.DEFAULT_MODEL if model is None else model, file),
            json,
            sink=sink,
            weightings=weighting,
            layers=layers,
            engine=engine,
            figures=figures,
            figure_format=figure_format or "png",
        )
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


def _lengths(
    model: str, texts: Texts | None, lengths: list[int], read: list[Any], json: str | None, **given: Any
) -> int:
    from validation.audit.figure_files import check_figures
    from validation.lengths.command import lengths_document

    if given["figures"] is not None:
        check_figures(given["figures"], given["figure_format"])
    return run(json, lambda tell: lengths_document(model, texts, lengths, **given, progress=tell), read)
