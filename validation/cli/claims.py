"""`sinkscope claims`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples
from validation.cli.options import Json
from validation.running import calm_threads, run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope claims",
        "sinkscope claims --detail arithmetic --detail flips",
        "sinkscope claims --verdict fails",
        "sinkscope claims --part A --run",
        "sinkscope claims --json claims.json",
    )
)
def claims(
    detail: Annotated[
        list[str] | None,
        typer.Option(
            "--detail", metavar="CLAIM", help="A claim with all its entries; may be given several times."
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(
            "--part", metavar="A|B", help="A: norm-weighted attention; B: rows as compositions. In detail."
        ),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            "--verdict",
            metavar="VERDICT",
            help="holds, 'holds in direction', fails or 'not testable here'. In detail.",
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--run",
            help="Make the results anew; a stopped run goes on. reproduce --list shows how long.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="With --run: take nothing that an earlier run has left.")
    ] = False,
    json: Json = None,
) -> int:
    """Show which published claims hold here.

    Every statement and figure of the sources, the rule that was set for it, the command that tests it, what
    was found with the noise floor beside it, and a verdict. Verdicts are drawn again each time, from the
    results that are shipped or, with --run, from new ones; where the ledger differs the exit code is 1.
    """
    from validation.ledger.command import Chosen, show_claims

    calm_threads()
    chosen = Chosen(tuple(detail or ()), part, verdict)
    return run(json, lambda tell: show_claims(chosen, run=again, fresh=fresh, progress=tell))
