"""What is public is written down: `__all__`, docstrings, and the same names in both layers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import fastpath
import oracle

ROOT = Path(oracle.__file__).parent.parent
PACKAGES = ("oracle", "fastpath", "validation")


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def declared(tree: ast.Module) -> list[str] | None:
    """The strings of `__all__`, in their order."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return ast.literal_eval(node.value)
    return None


def assigned(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            parts = [part for target in targets for part in getattr(target, "elts", [target])]
            yield from (part.id for part in parts if isinstance(part, ast.Name))


def is_registered(node: ast.stmt) -> bool:
    """A function that a decorator call hands to somebody, as the command line does, needs no mention."""
    return any(isinstance(part, ast.Call) for part in getattr(node, "decorator_list", ()))


def defined(tree: ast.Module) -> set[str]:
    """Names without an underscore that a module makes itself."""
    names = {
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) or (isinstance(node, ast.FunctionDef) and not is_registered(node))
    }
    return {name for name in names | set(assigned(tree)) if not name.startswith("_")}


def imported(tree: ast.Module) -> set[str]:
    """Names that a module takes from the three packages."""
    return {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for alias in node.names
    }


def kind(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, each by name: the order that ruff keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def complaints(source: str, is_package: bool = False, is_library: bool = True) -> list[str]:
    """What is wrong with the public face of a module.

    A package that only imports re-exports all of it. Type aliases (Array, Shape) serve annotations and may
    be listed or not, and so may the constants of a module that is no library.
    """
    tree = ast.parse(source)
    names, own, taken = declared(tree) or [], defined(tree), imported(tree)
    optional = {name for name in assigned(tree) if not is_library or kind(name)[0] == 1}
    wrong = []
    if names != sorted(names, key=kind):
        wrong.append("__all__ is not sorted")
    missing = (taken if is_package and not own else own) - optional - set(names)
    if missing:
        wrong.append(f"__all__ lacks {sorted(missing)}")
    if set(names) - own - taken:
        wrong.append(f"__all__ names {sorted(set(names) - own - taken)}, which is not there")
    if tree.body and ast.get_docstring(tree) is None:
        wrong.append("the module has no docstring")
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            inside = [node]
            if isinstance(node, ast.ClassDef):
                inside += [part for part in node.body if isinstance(part, ast.FunctionDef)]
            wrong += [
                f"{part.name} has no docstring"
                for part in inside
                if not part.name.startswith("_") and ast.get_docstring(part) is None
            ]
    return wrong


def test_there_is_something_to_look_at():
    assert len(modules()) > 25


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_all_is_sorted_and_complete_and_everything_public_has_a_docstring(path):
    is_library = not name_of(path).startswith("validation")
    assert complaints(path.read_text(encoding="utf-8"), path.name == "__init__.py", is_library) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('"""D."""\n__all__ = ["b", "a"]\na = b = 1\n', "not sorted"),
        ('"""D."""\n__all__ = ["Bb", "A_B"]\nBb = A_B = 1\n', "not sorted"),
        ('"""D."""\n__all__ = ["a"]\na = 1\nb = 2\n', "lacks ['b']"),
        ('"""D."""\n__all__ = ["a"]\na, b = range(2)\n', "lacks ['b']"),
        ('"""D."""\n__all__ = ["a", "b"]\na: int = 1\n', "names ['b'], which is not there"),
        ('"""D."""\n__all__ = []\ndef f():\n    """D."""\n', "lacks ['f']"),
        ('"""D."""\ndef f():\n    """D."""\n', "lacks ['f']"),
        ('"""D."""\n__all__ = []\nMANY_ROWS = 3\n', "lacks ['MANY_ROWS']"),
        ('"""D."""\n__all__ = ["f"]\ndef f(): pass\n', "f has no docstring"),
        ('"""D."""\n__all__ = ["C"]\nclass C: pass\n', "C has no docstring"),
        ('"""D."""\n__all__ = ["C"]\nclass C:\n    """D."""\n    def m(self): pass\n', "m has no docstring"),
        ("__all__ = []\n", "the module has no docstring"),
        ('"""D."""\nfrom oracle.ops import softmax\n__all__ = []\n', "lacks ['softmax']"),
        ('"""D."""\nimport numpy\n__all__ = ["numpy"]\n', "names ['numpy']"),
    ],
)
def test_the_check_can_fail(source, words):
    (complaint,) = complaints(source, is_package=True)
    assert words in complaint


def test_what_is_private_or_imported_needs_no_mention():
    source = (
        '"""D."""\nimport os\nfrom oracle.ops import softmax\n__all__ = ["f"]\n_X = 1\nArray = list[int]\n'
    )
    source += 'def f():\n    """D."""\n'
    assert complaints(source) == []
    assert complaints(source + "ROWS = 1\n", is_library=False) == []
    assert complaints(source + "@app.command()\ndef fetch(): pass\n") == []
    assert complaints(source + "def fetch(): pass\n", is_library=False) == ["__all__ lacks ['fetch']"]


@pytest.mark.parametrize(
    "path", [path for path in modules() if name_of(path).startswith("oracle")], ids=name_of
)
def test_every_name_in_all_can_be_had(path):
    module = importlib.import_module(name_of(path))
    for name in getattr(module, "__all__", ()):
        getattr(module, name)


# --- the same names in both layers --------------------------------------------------------------------


def public_functions(package) -> dict[str, object]:
    """Functions that the package and its public modules name in `__all__`."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not info.name.rpartition(".")[2].startswith("_"):
            module = importlib.import_module(info.name)
            found |= {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    found |= {name: getattr(package, name) for name in getattr(package, "__all__", ())}
    return {name: value for name, value in found.items() if inspect.isfunction(value)}


def differences(fast: dict[str, object], slow: dict[str, object]) -> list[str]:
    """Functions of the fast path that the oracle lacks, or calls otherwise."""
    wrong = [f"{name} is not in the oracle" for name in sorted(fast.keys() - slow.keys())]
    for name in sorted(fast.keys() & slow.keys()):
        mine, theirs = (list(inspect.signature(f).parameters) for f in (fast[name], slow[name]))
        if mine != theirs:
            wrong.append(f"{name} takes {mine}, the oracle {theirs}")
    return wrong


def test_the_fast_path_has_the_oracles_names_and_parameters():
    assert differences(public_functions(fastpath), public_functions(oracle)) == []


def test_the_comparison_of_layers_can_fail():
    def sink_share(attention, sink_mask):
        return None

    slow = public_functions(oracle)
    assert "sink_share" in slow
    assert differences({"sink_share": oracle.sink_share}, slow) == []
    assert differences({"sink_shares": sink_share}, slow) == ["sink_shares is not in the oracle"]
    (complaint,) = differences({"sink_share": sink_share}, slow)
    assert complaint.startswith("sink_share takes ['attention', 'sink_mask'], the oracle")


def test_the_doors_of_the_oracle():
    assert set(oracle.__all__) >= {
        "aitchison_split",
        "aitchison_split_from_scores",
        "clark2019_distances",
        "closure",
        "clr",
        "distance_sums",
        "entropy_change",
        "entropy_change_from_scores",
        "entropy_split",
        "entropy_split_from_scores",
        "forward",
        "forward_batch",
        "gaussian_flip_rate",
        "head_distances",
        "head_summed_norm",
        "load_model",
        "mean_distances",
        "merge_words",
        "norm_odds_ratio",
        "open_merged_rows",
        "open_rows",
        "read_attention",
        "replace_zeros",
        "row_distances",
        "row_measures",
        "sink_share",
        "sink_share_from_query_key",
        "undeclared_sinks",
        "value_norm_ratio",
        "verdict_flips",
        "weighted_rows",
    }


def test_measures_say_axis_range_degenerate_rows_and_errors():
    rows = (
        "aitchison_split",
        "aitchison_split_from_scores",
        "closure",
        "clr",
        "entropy_change",
        "entropy_change_from_scores",
        "entropy_split",
        "entropy_split_from_scores",
        "norm_odds_ratio",
        "replace_zeros",
        "row_distances",
        "row_measures",
        "sink_share",
        "sink_share_from_query_key",
        "value_norm_ratio",
        "weight_share",
        "weighted_rows",
    )
    heads = ("clark2019_distances", "distance_sums", "head_distances", "mean_distances", "verdict_flips")
    for name in (*rows, *heads, "gaussian_flip_rate"):
        text = " ".join(getattr(oracle, name).__doc__.split())
        assert any(axes in text for axes in (["(..., "] if name in rows else ["head)", "(head,)"])), name
        assert "NaN" in text, name
        assert "InputError" in text, name
