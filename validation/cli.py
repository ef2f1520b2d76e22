"""The `sinkscope` command: options in, exit codes out. Heavy imports happen inside the commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from validation.cli_options import (
    Encoding,
    Engine,
    File,
    Json,
    Layers,
    MaybeEncoding,
    MaybeModel,
    Model,
    Rows,
    Text,
    Verify,
    VerifySeed,
)
from validation.cli_prune import EXAMPLES as PRUNE_EXAMPLES
from validation.cli_prune import prune
from validation.running import calm_threads, guarded, one_blas_thread, run

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


def _refuse_beside(chosen: str, given: Mapping[str, object]) -> None:
    """Refuse options that mean nothing beside `chosen`: those of `given` with a value."""
    from validation import commands

    for option, value in given.items():
        if value not in (None, False, []):
            commands.refuse_both(chosen, option)


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
        commands.inputs(model, file),
    )


@app.command(
    epilog=_examples(
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
        _refuse_beside(f"{first} {second}", {"--model": model, "--text": text, "--file": file})
        return run(json, lambda tell: commands.diff_layers(first, second, tell))
    name = commands.DEFAULT_MODEL if model is None else model
    return run(
        json,
        lambda tell: commands.diff(name, first, second, commands.choose_texts(text, file, encoding), tell),
        commands.inputs(name, file),
    )


@app.command(
    epilog=_examples(
        "sinkscope measure",
        "sinkscope measure --file my_texts.txt --layers 0,3-5 --json sinks.json",
        'sinkscope measure --text "She paid and left." --sink token:. --layers 0',
        "sinkscope measure --file my_texts.txt --verify 100",
        "sinkscope measure --attention rows.npz --sink 0",
    )
)
def measure(
    model: MaybeModel = None,
    text: Text = None,
    file: File = None,
    attention: Rows = None,
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
    layers: Layers = None,
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
    engine: Engine = "fastpath",
    verify: Verify = None,
    verify_seed: VerifySeed = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Report how much attention goes to the sink.

    Of a model on texts, or of attention rows from a file (then no model is loaded). With neither
    --text nor --file the 14 bundled sentences are measured.
    """
    from validation import commands

    calm_threads()
    if attention is None:
        if layout is not None:
            commands.refuse_alone("--layout", "--attention")
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
    _refuse_beside("--attention", beside)
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


app.command(epilog=_examples(*PRUNE_EXAMPLES))(prune)


@app.command(
    epilog=_examples(
        "sinkscope bench",
        "sinkscope bench --quick",
        "sinkscope bench --only rows,streaming --json bench.json",
        "sinkscope bench --only forward --tokens 64,128",
    )
)
def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller sizes, under a minute; no goal is judged.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="SECTIONS",
            help="Some of rows, streaming, memory, sweep, compile, forward, with commas.",
        ),
    ] = None,
    readme: Annotated[
        str | None,
        typer.Option(
            "--readme",
            metavar="FILE",
            help="Rewrite the table between the bench marks of FILE from a whole run.",
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
    from validation import commands

    lengths = None if tokens is None else commands.read_lengths(tokens)
    return run(
        json,
        lambda tell: commands.bench(model, lengths, tell, quick=quick, only=only, readme=readme),
        commands.inputs(model, readme),
    )


@models.callback(
    invoke_without_command=True,
    epilog=_examples(
        "sinkscope models", "sinkscope models fetch minilm-l6", "sinkscope models remove minilm-l6"
    ),
)
def list_models(context: typer.Context, json: Json = None) -> int:
    """List, fetch or remove models that have a name.

    A model is fetched at first use as well. The weights of a GGUF file stand dequantised in the cache from
    its first use on; remove takes them out, by the name of the copy or with the bundled model.
    """
    from validation import commands

    if context.invoked_subcommand is not None:
        if json is not None:
            commands.refuse_before("--json", context.invoked_subcommand)
        return 0

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
