"""Importing the oracle is light, and nobody imports what they may not."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import oracle

ROOT = Path(oracle.__file__).parent.parent
PACKAGES = ("oracle", "fastpath", "validation")
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
CONTRACTS, RULES = TOOLS["importlinter"]["contracts"], TOOLS["sinkscope"]["imports"]


def python(code: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=120
    )


# --- what `import oracle` costs -------------------------------------------------------------------------

HEAVY = (
    "numba",
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "platformdirs",
    "typer",
    "rich",
    "scipy",
)


def test_importing_the_oracle_loads_nothing_heavy():
    done = python("import sys, oracle; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"numpy", "oracle"} <= loaded
    assert not loaded & {*HEAVY, "fastpath", "validation"}


def test_the_list_of_loaded_modules_would_show_a_heavy_one():
    done = python("import sys, oracle, safetensors; print(*{name.partition('.')[0] for name in sys.modules})")
    assert "safetensors" in done.stdout.split()


@pytest.mark.timing
def test_importing_the_oracle_takes_numpys_time_plus_a_tenth_of_a_second():
    code = (
        "import time, numpy; start = time.perf_counter(); import oracle; print(time.perf_counter() - start)"
    )
    seconds = []
    for _ in range(7):  # the least of several: a busy machine only ever adds
        seconds.append(float(python(code).stdout))
        if seconds[-1] < 0.1:
            break
    assert min(seconds) < 0.1


# --- who may import whom --------------------------------------------------------------------------------


def lint(cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"
    return python(code, cwd)


def verdicts(text: str) -> dict[str, str]:
    """Contract name -> KEPT or BROKEN, from the report's summary."""
    return dict(re.findall(r"^(\S.*) (KEPT|BROKEN)(?: \(.*\))?$", text, re.MULTILINE))


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, place / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


def test_every_contract_holds():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdicts(done.stdout) == {contract["name"]: "KEPT" for contract in CONTRACTS}


FORBIDDEN = [
    ("oracle", "oracle/ops.py", "import fastpath", {0}),
    ("oracle", "oracle/ops.py", "import validation.progress", {0}),
    ("oracle", "oracle/measures.py", "def f():\n    import numba", {0}),
    ("oracle", "oracle/loading/__init__.py", "import torch", {0}),
    ("oracle", "oracle/words.py", "from transformers import BertModel", {0}),
    ("arithmetic", "oracle/rows.py", "import safetensors", {1}),
    ("arithmetic", "oracle/families/__init__.py", "def f():\n    from tokenizers import Tokenizer", {1}),
    ("arithmetic", "oracle/trace.py", "import rich", {1}),
    ("fast path", "fastpath/__init__.py", "from oracle import measures", {2}),
    ("fast path", "fastpath/__init__.py", "import oracle.measures", {2}),
    ("fast path", "fastpath/__init__.py", "import torch", {2}),
    ("reference", "validation/progress.py", "def f():\n    import torch", {3}),
    ("reference", "validation/report/document.py", "import transformers", {3}),
    ("shared", "oracle/_checks.py", "import oracle", {4}),
    ("shared", "oracle/_checks.py", "from oracle.model import Norm", {4, 5}),
    ("shared", "oracle/_results.py", "def f():\n    from oracle.sinks import choose_sinks", {4, 5}),
    ("shared", "oracle/_query_key_checks.py", "from oracle import ops", {4}),
    ("shared", "oracle/_distance_checks.py", "def f():\n    from oracle import zeros", {4, 5}),
    ("cycle", "oracle/ops.py", "from oracle.attention import attend", {5}),
    ("cycle", "oracle/model.py", "def f():\n    from oracle.loading import load_model", {5}),
    ("cycle", "fastpath/_jit.py", "from fastpath.measures import sink_share", {6}),
    ("cycle", "validation/progress.py", "from validation.cli import main", {7}),
    ("cycle", "validation/report/document.py", "from validation.report import terminal", {7}),
]


def test_every_contract_has_an_import_that_breaks_it():
    assert set.union(*(broken for *_, broken in FORBIDDEN)) == set(range(len(CONTRACTS)))


@pytest.mark.parametrize(("path", "line", "broken"), [row[1:] for row in FORBIDDEN])
def test_a_forbidden_import_is_reported(copy, path, line, broken):
    file = copy / path
    original = file.read_text(encoding="utf-8")
    try:
        file.write_text(f"{original}\n{line}\n", encoding="utf-8")
        done = lint(copy)
    finally:
        file.write_text(original, encoding="utf-8")
    assert done.returncode == 1, done.stdout + done.stderr
    expected = {c["name"]: "BROKEN" if place in broken else "KEPT" for place, c in enumerate(CONTRACTS)}
    assert verdicts(done.stdout) == expected


def test_allowed_imports_are_not_reported(copy):
    file = copy / "fastpath" / "allowed.py"
    try:
        file.write_text("import numba\nfrom oracle._checks import reject\n", encoding="utf-8")
        done = lint(copy)
    finally:
        file.unlink()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["_checks", "_results", "_query_key_checks"])
def test_the_fast_paths_own_init_may_share_them_too(copy, module):
    file = copy / "fastpath" / "__init__.py"
    original = file.read_text(encoding="utf-8")
    try:
        file.write_text(f"{original}\nimport oracle.{module}\n", encoding="utf-8")
        done = lint(copy)
    finally:
        file.write_text(original, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr


# A list of what is forbidden cannot say "NumPy and the standard library only"; the rules under
# [tool.sinkscope.imports] can.

OF_THE_TESTS = {path.stem for path in Path(__file__).parent.rglob("*.py")}


def rule(table: str, module: str) -> list[str] | None:
    """What `table` says of the innermost package that it names around `module`."""
    rules = RULES[table]
    inside = [name for name in rules if f"{module}.".startswith(f"{name}.")]
    return rules[max(inside, key=len)] if inside else None


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Every imported module, and whether it is imported when the file is (and not inside a function)."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for part in ast.walk(node)
    }
    typing_only = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        at_import = id(node) not in inside | typing_only
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "", at_import)


def trespasses(source: str, module: str) -> list[str]:
    """Imports of a module that its place in the house does not allow."""
    wrong = []
    package, only, late = module.split(".")[0], rule("only", module), rule("late", module)
    for name, at_import in imports(ast.parse(source)):
        top = name.split(".")[0]
        if top in RULES["never"] or top in OF_THE_TESTS:
            wrong.append(f"{name} is imported")
        elif only is not None and top not in {package, *only, *sys.stdlib_module_names}:
            wrong.append(f"{name} is not for {module}")
        elif at_import and top in (late or ()):
            wrong.append(f"{name} is imported before it is needed")
    return wrong


def sources() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path.read_text(encoding="utf-8")


def test_every_file_imports_only_what_its_place_allows():
    found = {module: trespasses(source, module) for module, source in sources()}
    assert len(found) > 25
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("oracle.ops", "import scipy.special"),
        ("oracle.ops", "def f():\n    import ml_dtypes"),
        ("oracle.loading._tensors", "import requests"),
        ("oracle.loading._tensors", "import safetensors"),
        ("fastpath.measures", "from scipy import special"),
        ("validation.reference", "import torch"),
        ("validation.reference", "if True:\n    from transformers import BertModel"),
        ("validation.cli", "def f():\n    import tests.naive"),
        ("validation.cli", "from tests import naive"),
        ("validation.cli", "import naive"),
        ("oracle.ops", "import tests"),
        ("oracle.ops", "import safetensors"),
        ("oracle.loadings", "def f():\n    import safetensors"),
        ("fastpath.measures", "import validation.progress"),
    ],
)
def test_those_rules_can_fail(module, source):
    assert len(trespasses(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("oracle.ops", "import math\nimport numpy as np\nfrom oracle.model import Norm"),
        ("oracle.loading._tensors", "def f():\n    from safetensors import safe_open"),
        ("fastpath._jit", "import numba"),
        ("validation.reference", "def f():\n    import torch"),
        ("validation.reference", "if TYPE_CHECKING:\n    import torch"),
        ("validation.cli", "import typer"),
    ],
)
def test_those_rules_let_the_rest_through(module, source):
    assert trespasses(source, module) == []
