"""`sinkscope validate` and `sinkscope diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples, refuse_beside
from validation.cli.options import Encoding, File, Json, MaybeModel, Model, Text, Truncate
from validation.running import run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope validate",
        "sinkscope validate --file my_texts.txt --json validation.json",
        "sinkscope validate --layers 0,3-5 --punctuation word",
        "sinkscope validate --model path/to/bert",
    )
)
def validate(
    model: Model = "minilm-l6",
    file: File = None,
    layers: Annotated[
        str | None,
        typer.Option("--layers", metavar="LAYERS", help="The study's layers, like 0,3-5.  [default: all]"),
    ] = None,
    punctuation: Annotated[
        str,
        typer.Option(
            "--punctuation",
            metavar="KIND",
            help="What the study takes outer punctuation for: neither (sink nor word), sink or word.",
        ),
    ] = "neither",
    truncate: Truncate = False,
    encoding: Encoding = "utf-8",
    json: Json = None,
) -> int:
    """Check the oracle, break it on purpose, re-run the study.

    The oracle is compared with PyTorch, every mutant must be noticed, and the norm-weighting study is
    run with its verdict. Without PyTorch (the "reference" extra) the rest is shown and the exit code is 3.
    --layers and --punctuation concern the study alone.
    """
    from validation import commands

    return run(
        json,
        lambda tell: commands.validate(
            model,
            commands.choose_texts(None, file, encoding),
            tell,
            layers=layers,
            punctuation=punctuation,
            truncate=truncate,
        ),
        commands.inputs(model, file),
    )


@app.command(
    epilog=examples(
        "sinkscope diff oracle-float32 torch-float32",
        'sinkscope diff oracle-float64 oracle-longdouble --text "A short text."',
        "sinkscope diff oracle fastpath",
    )
)
def diff(
    first: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    model: MaybeModel = None,
    text: Text = None,
    file: File = None,
    encoding: Encoding = "utf-8",
    json: Json = None,
) -> int:
    """Compare two implementations stage by stage.

    A and B are any two of oracle-float32, oracle-float64, oracle-longdouble, torch-float32 and
    torch-float64; the last two need the "reference" extra. Or they are the layers oracle and fastpath,
    whose measures are compared on built-in cases, without a model.
    """
    from validation import commands
    from validation.engines import ENGINES

    if first in ENGINES and second in ENGINES:
        refuse_beside(f"{first} {second}", {"--model": model, "--text": text, "--file": file})
        return run(json, lambda tell: commands.diff_layers(first, second, tell))
    name = commands.DEFAULT_MODEL if model is None else model
    return run(
        json,
        lambda tell: commands.diff(name, first, second, commands.choose_texts(text, file, encoding), tell),
        commands.inputs(name, file),
    )
