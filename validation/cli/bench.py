"""`sinkscope bench`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples
from validation.cli.options import Json, Model
from validation.running import run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope bench",
        "sinkscope bench --quick",
        "sinkscope bench --only rows,streaming --json bench.json",
        "sinkscope bench --only forward --tokens 64,128",
    )
)
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, a minute or two; no goal is judged.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="SECTIONS",
            help="Some of rows, streaming, distances, verdicts, audit, memory, sweep, compile, forward, "
            "language-model, with commas.",
        ),
    ] = None,
    model: Model = "minilm-l6",
    tokens: Annotated[
        str | None,
        typer.Option("--tokens", metavar="LENGTHS", help="Tokens of the forward pass.  [default: 128,512]"),
    ] = None,
    json: Json = None,
) -> int:
    """Time the fast path and the forward pass here.

    Against NumPy, PyTorch and what this machine can do at most. Every result is compared with the oracle
    first; what disagrees is not timed, and the exit code is 1. A slow timing fails nothing.
    """
    from validation import command_parts, commands

    lengths = None if tokens is None else command_parts.read_lengths(tokens)
    return run(
        json,
        lambda tell: commands.bench(model, lengths, tell, quick=quick, only=only),
        commands.inputs(model),
    )
