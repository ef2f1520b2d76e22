"""`sinkscope reproduce`."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import app, examples, refuse_beside
from validation.cli.options import Json
from validation.running import run

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope reproduce",
        "sinkscope reproduce audit-minilm-clusters prune-smollm2",
        "sinkscope reproduce --list",
        "sinkscope reproduce bench --fresh --publish",
        "sinkscope reproduce claims --publish",
        "sinkscope reproduce --render",
        "sinkscope reproduce --check",
    )
)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", show_default=False, help="Some of the runs.  [default: all]"),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show the runs and what is there of them.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what has a result already.")] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="DIR", help="Keep results and logs there.  [default: in the cache]"),
    ] = None,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="Make what was found the shipped results, and write the ledger and the README anew.",
        ),
    ] = False,
    render: Annotated[
        bool,
        typer.Option("--render", help="Run nothing; write the README's blocks from the shipped results."),
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Run nothing; compare the README's blocks with the shipped results."),
    ] = False,
    readme: Annotated[
        str | None,
        typer.Option("--readme", metavar="FILE", help="The README.  [default: that of this checkout]"),
    ] = None,
    json: Json = None,
) -> int:
    """Make every figure of the README and of the ledger again.

    Runs the commands that they come from, one after the other, and compares what is found with the results
    that are shipped. A result is kept as soon as it is there: a run that was stopped goes on where it was,
    and what other code, libraries or commands have made is made again. A figure that differs is a failed
    check; timings, and what another machine rounds otherwise, are only counted. For whoever maintains the
    README: --publish, --render and --check.
    """
    from validation import command_parts
    from validation.ledger.command import remake_ledger
    from validation.reproduction import command

    given = list(names or [])
    modes = {"--list": listed, "--render": render, "--check": check}
    for mode in (name for name, chosen in modes.items() if chosen):
        others = {name: chosen for name, chosen in modes.items() if name != mode}
        beside = {"NAME": given, "--fresh": fresh, "--publish": publish, **others}
        refuse_beside(mode, beside if mode == "--list" else {**beside, "--out": out})
    if readme is not None and not (publish or render or check):
        command_parts.refuse_alone("--readme", "--publish, --render or --check")
    if listed:
        return run(json, lambda _: command.list_runs(out))
    if publish:
        command.refuse_outside()
    page = command.readme_of(readme) if publish or render or check else None
    if page is not None and not publish:
        work = command.check if check else command.render
        return run(json, lambda _: work(page), [page])
    return run(
        json,
        lambda tell: command.reproduce(
            given, fresh=fresh, out=out, publish=page, progress=tell, remake=remake_ledger
        ),
        [page] if page is not None else [],
    )
