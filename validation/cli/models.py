"""`sinkscope models` and its own commands."""

from __future__ import annotations

from typing import Annotated

import typer

from validation.cli.app import SETTINGS, app, examples
from validation.cli.options import Json
from validation.running import run

__all__: list[str] = []

models = typer.Typer(rich_markup_mode=None, **SETTINGS)
app.add_typer(models, name="models")


@models.callback(
    invoke_without_command=True,
    epilog=examples(
        "sinkscope models", "sinkscope models fetch minilm-l6", "sinkscope models remove minilm-l6"
    ),
)
def list_models(context: typer.Context, json: Json = None) -> int:
    """List, fetch or remove models that have a name.

    A model is fetched at first use as well. The weights of a GGUF file stand dequantised in the cache from
    its first use on; remove takes them out, by the name of the copy or with the bundled model.
    """
    from validation import command_parts, commands

    if context.invoked_subcommand is not None:
        if json is not None:
            command_parts.refuse_before("--json", context.invoked_subcommand)
        return 0

    return run(json, lambda _: commands.list_models())


@models.command("list", epilog=examples("sinkscope models list"))
def list_them(json: Json = None) -> int:
    """List models that have a name, as `sinkscope models` does."""
    from validation import commands

    return run(json, lambda _: commands.list_models())


Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="A name that `sinkscope models` lists.")
]


@models.command(epilog=examples("sinkscope models fetch minilm-l6"))
def fetch(name: Name, json: Json = None) -> int:
    """Put a model into the cache."""
    from validation import commands

    return run(json, lambda tell: commands.fetch(name, tell))


@models.command(epilog=examples("sinkscope models remove minilm-l6"))
def remove(name: Name, json: Json = None) -> int:
    """Take a model out of the cache."""
    from validation import commands

    return run(json, lambda _: commands.remove(name))
