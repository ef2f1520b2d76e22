"""The `sinkscope` command: options in, exit codes out. Heavy imports happen inside the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from validation.running import guarded, one_blas_thread, run

__all__ = ["app", "main"]

_SETTINGS: dict[str, Any] = {"context_settings": {"help_option_names": ["-h", "--help"]}}
app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    **_SETTINGS,
)
models = typer.Typer(rich_markup_mode=None, **_SETTINGS)
app.add_typer(models, name="models")


Model = Annotated[str, typer.Option("--model", metavar="NAME|DIR", help="A bundled name or a directory.")]
MaybeModel = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME|DIR", help="A bundled name or a directory.  [default: minilm-l6]"),
]
Text = Annotated[
    list[str] | None, typer.Option("--text", metavar="TEXT", help="A text; may be given several times.")
]
File = Annotated[str | None, typer.Option("--file", metavar="FILE", help="A file with one text per line.")]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="How FILE is encoded.")]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result there as JSON too; - for standard output only."
    ),
]


_EXIT_CODES = """

\b
Exit codes:
  0  every check held
  1  a check failed
  2  the input or the call was wrong
  3  something could not be run (a missing extra), so nothing is claimed"""


def _examples(*commands: str) -> str:
    """The end of a help text; the mark before it keeps its lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


def _version(wanted: bool) -> None:
    if wanted:
        from validation.provenance import program_version

        typer.echo(f"sinkscope {program_version()}")
        raise typer.Exit()


@app.callback(
    invoke_without_command=True,
    epilog=_examples(
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


@app.command(
    epilog=_examples(
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
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the model's positions.")
    ] = False,
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
    )


@app.command(
    epilog=_examples(
        "sinkscope diff oracle-float32 torch-float32",
        'sinkscope diff oracle-float64 oracle-longdouble --text "A short text."',
    )
)
def diff(
    first: Annotated[str, typer.Argument(metavar="A", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", show_default=False)],
    model: Model = "minilm-l6",
    text: Text = None,
    file: File = None,
    encoding: Encoding = "utf-8",
    json: Json = None,
) -> int:
    """Compare two implementations stage by stage.

    A and B are any two of oracle-float32, oracle-float64, oracle-longdouble, torch-float32 and
    torch-float64; the last two need the "reference" extra.
    """
    from validation import commands

    return run(
        json,
        lambda tell: commands.diff(model, first, second, commands.choose_texts(text, file, encoding), tell),
    )


@app.command(
    epilog=_examples(
        "sinkscope measure",
        "sinkscope measure --file my_texts.txt --layers 0,3-5 --json sinks.json",
        'sinkscope measure --text "She paid and left." --sink token:. --layers 0',
        "sinkscope measure --attention rows.npz --sink 0",
    )
)
def measure(
    model: MaybeModel = None,
    text: Text = None,
    file: File = None,
    attention: Annotated[
        str | None,
        typer.Option(
            "--attention",
            metavar="ROWS.npz",
            help="Attention rows instead of a model and texts: array 'attention' (layer, head, query, key), "
            "optionally 'value_norm' and 'transformed_norm' (layer, head, key), 'tokens' (token) and "
            "'visible' (query, key), or (key) for a mask of real tokens.",
        ),
    ] = None,
    sink: Annotated[
        str,
        typer.Option(
            "--sink", metavar="SINK", help="special, first, none, key positions like 0,7, or token:TEXT."
        ),
    ] = "special",
    weighting: Annotated[
        str,
        typer.Option(
            "--weighting",
            metavar="NAMES",
            help="attention, value_norm, transformed_norm, head_summed_norm (several with commas), or all.",
        ),
    ] = "all",
    layers: Annotated[
        str | None, typer.Option("--layers", metavar="LAYERS", help="Layers like 0,3-5.  [default: all]")
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="AXES",
            help="What the axes of 'attention' are, like 'batch head query key'.  [default: 'layer head "
            "query key'; of 5 axes 'layer batch head query key'; of 3 'head query key']",
        ),
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the model's positions.")
    ] = False,
    encoding: Encoding = "utf-8",
    json: Json = None,
) -> int:
    """Report how much attention goes to the sink.

    Of a model on texts, or of attention rows from a file (then no model is loaded). With neither
    --text nor --file the 14 bundled sentences are measured.
    """
    from validation import commands

    if attention is None:
        if layout is not None:
            commands.refuse_alone("--layout", "--attention")
        return run(
            json,
            lambda tell: commands.measure(
                commands.DEFAULT_MODEL if model is None else model,
                commands.choose_texts(text, file, encoding),
                sink=sink,
                weightings=weighting,
                layers=layers,
                truncate=truncate,
                progress=tell,
            ),
        )
    given = {
        "--model": model is not None,
        "--text": bool(text),
        "--file": file is not None,
        "--truncate": truncate,
    }
    for option, present in given.items():
        if present:
            commands.refuse_both("--attention", option)
    return run(
        json,
        lambda tell: commands.measure_file(
            attention, sink=sink, weightings=weighting, layers=layers, layout=layout, progress=tell
        ),
    )


@app.command(epilog=_examples("sinkscope bench", "sinkscope bench --tokens 64,128 --json bench.json"))
def bench(
    model: Model = "minilm-l6",
    tokens: Annotated[
        str, typer.Option("--tokens", metavar="LENGTHS", help="Text lengths in tokens, like 128,512.")
    ] = "128,512",
    json: Json = None,
) -> int:
    """Time the forward pass against PyTorch.

    Needs the "reference" extra.
    """
    from validation import commands

    return run(json, lambda tell: commands.bench(model, commands.read_lengths(tokens), tell))


@models.callback(
    invoke_without_command=True,
    epilog=_examples(
        "sinkscope models", "sinkscope models fetch minilm-l6", "sinkscope models remove minilm-l6"
    ),
)
def list_models(context: typer.Context, json: Json = None) -> int:
    """List, fetch or remove models that have a name.

    A model is fetched at first use as well.
    """
    if context.invoked_subcommand is not None:
        return 0
    from validation import commands

    return run(json, lambda _: commands.list_models())


@models.command("list", epilog=_examples("sinkscope models list"))
def list_them(json: Json = None) -> int:
    """List models that have a name, as `sinkscope models` does."""
    from validation import commands

    return run(json, lambda _: commands.list_models())


Name = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="A name that `sinkscope models` lists.")
]


@models.command(epilog=_examples("sinkscope models fetch minilm-l6"))
def fetch(name: Name, json: Json = None) -> int:
    """Put a model into the cache."""
    from validation import commands

    return run(json, lambda tell: commands.fetch(name, tell))


@models.command(epilog=_examples("sinkscope models remove minilm-l6"))
def remove(name: Name, json: Json = None) -> int:
    """Take a model out of the cache."""
    from validation import commands

    return run(json, lambda _: commands.remove(name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the one of this process) and return its exit code."""
    command = typer.main.get_command(app)
    given = None if arguments is None else list(arguments)
    return guarded(lambda: command.main(args=given, prog_name="sinkscope", standalone_mode=False))
