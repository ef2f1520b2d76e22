"""The command line itself: what stands before a command, and what commands share in their help and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from validation.running import one_blas_thread

__all__ = ["SETTINGS", "app", "examples", "refuse_beside"]

SETTINGS: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"]}}
app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    **SETTINGS,
)


_EXIT_CODES = """

\b
Exit codes:
  0  every check held
  1  a check failed
  2  the input or the call was wrong
  3  something could not be run (a missing extra), so nothing is claimed
  70  an error of this program; the report of it is welcome
  130  stopped from the keyboard"""


def examples(*commands: str) -> str:
    """The end of a help text; the mark before it keeps its lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def refuse_beside(chosen: str, given: Mapping[str, object]) -> None:
    """Refuse options that mean nothing beside `chosen`: those of `given` with a value."""
    from validation import command_parts

    for option, value in given.items():
        if value not in (None, False, []):
            command_parts.refuse_both(chosen, option)


def _version(wanted: bool) -> None:
    if wanted:
        from validation.provenance import program_version

        typer.echo(f"sinkscope {program_version()}")
        raise typer.Exit()


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "sinkscope validate",
        'sinkscope measure --text "The doctor thanked the nurse." --sink special',
        "sinkscope diff oracle-float32 torch-float32",
        "sinkscope measure --attention rows.npz --sink 0",
    )
    + _EXIT_CODES,
)
def sinkscope(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Measure attention sinks in transformer models, with numbers that prove themselves."""
    if context.invoked_subcommand != "bench":  # which compares as many threads as PyTorch has
        one_blas_thread()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
