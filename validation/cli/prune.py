"""`sinkscope prune`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from validation.cli.app import app, examples
from validation.cli.options import Json, Model
from validation.running import calm_threads, run
from validation.studies.pruning.sizes import BUDGETS, DRAWS

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope prune",
        "sinkscope prune --budget 0.1 --draws 3 --json pruning.json",
        "sinkscope prune --model path/to/llama --out pruning.jsonl",
    )
)
def prune(
    model: Model = "smollm2-135m",
    budget: Annotated[
        str, typer.Option("--budget", metavar="SHARES", help="How many of the heads to cut.")
    ] = ",".join(map(str, BUDGETS)),
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=1, help="Random sets of heads for each control.")
    ] = DRAWS,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Draws the random sets.")] = 0,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Keep every forward pass there, and take what it holds.  [default: a file in the cache]",
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Cut heads by their sink share or entropy, and see what it costs.

    Perplexities of a causal model on two texts, heads being chosen on a third; beside each choice random
    heads, and random heads of the same layers. Under half an hour for the default model on two cores; a run
    that was stopped goes on where it was.
    """
    from oracle._checks import reject
    from validation import commands
    from validation.studies.pruning.choosing import parse_budgets
    from validation.studies.pruning.command import prune as work

    calm_threads()
    budgets = parse_budgets(budget)
    if out is not None and json is not None and os.path.realpath(out) == os.path.realpath(json):
        reject("--json", expected="another file than --out", found=repr(json), todo="Name another file.")
    return run(
        json,
        lambda tell: work(model, budgets=budgets, draws=draws, seed=seed, out=out, progress=tell),
        commands.inputs(model, out),
    )
