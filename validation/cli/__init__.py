"""The `sinkscope` command: options in, exit codes out. Heavy imports happen inside the commands.

Each module of this package adds its commands to the app as it is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import typer

from validation.cli.app import app
from validation.running import guarded

__all__ = ["app", "main"]

for _module in (
    "checks",
    "measure",
    "audit",
    "predict",
    "prune",
    "collapse",
    "claims",
    "bench",
    "reproduce",
    "models",
):  # as the help lists them
    import_module(f"{__name__}.{_module}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the one of this process) and return its exit code."""
    command = typer.main.get_command(app)
    given = None if arguments is None else list(arguments)
    return guarded(lambda: command.main(args=given, prog_name="sinkscope", standalone_mode=False))
