"""`sinkscope audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from validation.cli.app import app, examples, refuse_beside
from validation.cli.options import (
    Engine,
    File,
    Json,
    Layers,
    Layout,
    MaybeEncoding,
    Rows,
    Sink,
    Text,
    Truncate,
    VerifySeed,
)
from validation.running import calm_threads, run

if TYPE_CHECKING:
    from validation.progress import Progress
    from validation.report.document import Document

__all__: list[str] = []


@app.command(
    epilog=examples(
        "sinkscope audit",
        "sinkscope audit --model path/to/model --file my_texts.txt --json audit.json",
        "sinkscope audit --model minilm-l6 --model smollm2-135m --json both.json",
        "sinkscope audit --layers 0-2 --verify 100 --save distances.npz",
        "sinkscope audit --cluster jsd,clark2019 --figures figures",
        "sinkscope audit --invariances",
        "sinkscope audit --attention rows.npz --sink 0",
        "sinkscope audit --attention rows.npz --sink first --zeros replace:1e-6",
    )
)
def audit(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME|PATH",
            help="A bundled name, a directory, a GGUF file or a hub id; given several times, the models are "
            "audited in turn and held beside each other.  [default: minilm-l6]",
        ),
    ] = None,
    text: Text = None,
    file: File = None,
    attention: Rows = None,
    sink: Sink = "special",
    layers: Layers = None,
    layout: Layout = None,
    zeros: Annotated[
        str | None,
        typer.Option(
            "--zeros",
            metavar="CHOICE",
            help="What Aitchison's distances do with zeros in ROWS.npz: refuse, common-support, or "
            "replace:1e-6, say.  [default: refuse]",
        ),
    ] = None,
    min_content_keys: Annotated[
        int | None,
        typer.Option(
            "--min-content-keys",
            metavar="N",
            help="A row of a causal text counts if it sees so many content keys.  [default: 8]",
        ),
    ] = None,
    truncate: Truncate = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            metavar="METRICS",
            help="Cluster and map the heads too, by some of cosine, jsd, root_jsd, hellinger, l1, entropy, "
            "aitchison and clark2019 (with commas), or by all.",
        ),
    ] = None,
    invariances: Annotated[
        bool,
        typer.Option(
            "--invariances",
            help="Show too, on scores of the first three texts, what leaves each distance as it is.",
        ),
    ] = False,
    engine: Engine = "fastpath",
    verify: Annotated[
        int | None,
        typer.Option(
            "--verify",
            metavar="K",
            help="Let the oracle compute the distances of K random pairs of heads again, and check them.",
        ),
    ] = None,
    verify_seed: VerifySeed = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Draws the halves of the texts.")
    ] = 0,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Write the distances between heads there, as .npz."),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            "--figures",
            metavar="DIR",
            help="Draw the flips, and a map of the heads for each metric of --cluster (else jsd), into DIR.",
        ),
    ] = None,
    figure_format: Annotated[
        str | None, typer.Option("--figure-format", metavar="NAME", help="png or svg.  [default: png]")
    ] = None,
    encoding: MaybeEncoding = None,
    json: Json = None,
) -> int:
    """Say which conclusions about heads depend on the sink.

    Which of two heads is nearer to a third is asked of every triple of heads, by seven distances, with the
    sink kept and with it dropped; what flips stands beside what flips between halves of the texts. Of a
    model on texts, or of attention rows from a file (then no model is loaded). With neither --text nor
    --file the 20 bundled passages are taken.
    """
    from oracle._checks import reject
    from validation import command_parts
    from validation.audit import command
    from validation.studies.invariances import invariance_table
    from validation.table import MIN_CONTENT_KEYS

    calm_threads()
    if figure_format is not None and figures is None:
        command_parts.refuse_alone("--figure-format", "--figures")
    if min_content_keys is not None and min_content_keys < 1:
        reject(
            "--min-content-keys",
            expected="at least 1 content key",
            found=str(min_content_keys),
            todo=f"Leave it out for {MIN_CONTENT_KEYS}.",
        )
    wanted = command.Wanted(save, figures, figure_format or "png")
    if figures is not None and cluster is None:
        cluster = "jsd"
    least = MIN_CONTENT_KEYS if min_content_keys is None else min_content_keys
    if attention is None:
        for option, value in {"--layout": layout, "--zeros": zeros}.items():
            if value is not None:
                command_parts.refuse_alone(option, "--attention")
        names = model or [command_parts.DEFAULT_MODEL]
        read = [path for name in names for path in command_parts.inputs(name, file)]
        for option, value in {"--save": save, "--figures": figures}.items():
            if value is not None and len(names) > 1:
                reject(
                    option,
                    expected="one model, as it writes the files of one",
                    found=f"{len(names)} models",
                    todo="Audit each by itself for its files, or leave it out.",
                )
        wanted.check(read, json)

        def work(tell: Progress) -> Document:
            texts = command_parts.choose_texts(text, file, encoding or "utf-8", command.bundled_passages())
            choices: command.Choices = {
                "sink": sink,
                "layers": layers,
                "min_content_keys": least,
                "cluster": cluster,
                "truncate": truncate,
                "invariances": invariance_table if invariances else None,
                "engine": engine,
                "verify": verify,
                "verify_seed": verify_seed,
                "seed": seed,
                "progress": tell,
            }
            if len(names) > 1:
                return command.audit_models(names, texts, **choices)
            return command.audit_texts(names[0], texts, wanted=wanted, **choices)

        return run(json, work, read)
    beside = {
        "--model": model,
        "--text": text,
        "--file": file,
        "--truncate": truncate,
        "--encoding": encoding,
        "--invariances": invariances,
    }
    refuse_beside("--attention", beside)
    wanted.check([attention], json)
    return run(
        json,
        lambda tell: command.audit_file(
            attention,
            sink=sink,
            layers=layers,
            layout=layout,
            zeros=zeros or "refuse",
            min_content_keys=least,
            cluster=cluster,
            engine=engine,
            verify=verify,
            verify_seed=verify_seed,
            seed=seed,
            wanted=wanted,
            progress=tell,
        ),
        [attention],
    )
