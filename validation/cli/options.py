"""Options that commands share, as their types."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Encoding",
    "Engine",
    "File",
    "Json",
    "Layers",
    "Layout",
    "MaybeEncoding",
    "MaybeModel",
    "Model",
    "Rows",
    "Sink",
    "Text",
    "Truncate",
    "Verify",
    "VerifySeed",
]

Model = Annotated[
    str,
    typer.Option(
        "--model", metavar="NAME|PATH", help="A bundled name, a directory, a GGUF file or a hub id."
    ),
]
MaybeModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME|PATH",
        help="A bundled name, a directory, a GGUF file or a hub id.  [default: minilm-l6]",
    ),
]
Text = Annotated[
    list[str] | None, typer.Option("--text", metavar="TEXT", help="A text; may be given several times.")
]
File = Annotated[str | None, typer.Option("--file", metavar="FILE", help="A file with one text per line.")]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="How FILE is encoded.")]
MaybeEncoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="How FILE is encoded.  [default: utf-8]")
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result there as JSON too; - for standard output only."
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--attention",
        metavar="ROWS.npz",
        help="Attention rows instead of a model and texts: array 'attention' (layer, head, query, key), "
        "optionally 'value_norm' and 'transformed_norm' (layer, head, key), 'tokens' (token) and "
        "'visible' (query, key), or (key) for a mask of real tokens.",
    ),
]
Layers = Annotated[
    str | None, typer.Option("--layers", metavar="LAYERS", help="Layers like 0,3-5.  [default: all]")
]
Engine = Annotated[
    str, typer.Option("--engine", metavar="NAME", help="What measures the rows: fastpath or oracle.")
]
Sink = Annotated[
    str,
    typer.Option(
        "--sink", metavar="SINK", help="special, first, none, key positions like 0,7, or token:TEXT."
    ),
]
Layout = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="AXES",
        help="What the axes of 'attention' are, like 'batch head query key'.  [default: 'layer head "
        "query key'; of 5 axes 'layer batch head query key'; of 3 'head query key']",
    ),
]
Truncate = Annotated[
    bool, typer.Option("--truncate", help="Cut texts that are longer than the model's positions.")
]
Verify = Annotated[
    int | None,
    typer.Option("--verify", metavar="K", help="Let the oracle compute K random rows again, and check them."),
]
VerifySeed = Annotated[
    int | None,
    typer.Option("--verify-seed", metavar="SEED", min=0, help="Draw the rows of an earlier --verify again."),
]
