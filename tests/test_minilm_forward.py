"""The bundled encoder against transformers: token ids, fourteen sentences, 512 tokens, a padded batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oracle import Model
from oracle.inputs import read_tokens
from validation.diffing import diff
from validation.forward_checks import Agreement, long_text, padded
from validation.report.document import Check, Table
from validation.stages import Batch, runner, single
from validation.texts import SENTENCES

torch = pytest.importorskip("torch", reason='the reference needs pip install "sinkscope[reference]"')
transformers = pytest.importorskip(
    "transformers", reason='the reference needs pip install "sinkscope[reference]"'
)

TEXTS = {
    "empty": "",
    "spaces": "   ",
    "punctuation alone": "...!!!",
    "a word of 130 letters": "abcdefghijklm" * 10,
    "emoji": "I 💚 this 👍🏽 so much 🙂",
    "CJK": "机器学习 と 注意機構 한국어",
    "combining marks": "cafe\u0301 Zu\u0308rich n\u0303",
    "a zero-width joiner": "fam\u200dily 👩\u200d👩\u200d👧",
    "a literal [SEP]": "one [SEP] two",
    "a literal <s>": "one <s> two </s>",
    "a file in cp1252": "“naïve” – œuvre, 5 €".encode("cp1252").decode("cp1252"),
    "a line of 100,000 words": "word " * 100_000,
}
FOUR = ("oracle-float64", "torch-float64", "oracle-float32", "torch-float32")


@pytest.fixture(scope="module")
def runs(minilm: Model) -> dict[str, Any]:
    return {name: runner(minilm, name) for name in FOUR}


@pytest.fixture(scope="module")
def ids(minilm: Model) -> list[Any]:
    return [read_tokens(minilm, text, False).ids for text in SENTENCES]


@pytest.fixture(scope="module")
def tokenizer(minilm: Model) -> Any:
    return transformers.AutoTokenizer.from_pretrained(
        minilm.source, local_files_only=True, model_max_length=10**9
    )


@pytest.mark.parametrize("name", TEXTS)
def test_token_ids_equal_those_of_transformers(name: str, minilm: Model, tokenizer: Any) -> None:
    ours = read_tokens(minilm, TEXTS[name], False).ids.tolist()
    assert ours == tokenizer(TEXTS[name])["input_ids"]


def held(runs: dict[str, Any], batches: list[Batch]) -> Agreement:
    """Assert the bounds that every input must keep."""
    found = Agreement()
    for batch in batches:
        found.add(runs, batch)
    assert found.float64.leaving is None
    assert found.float32.leaving is None
    assert found.float64.stages["attention"].max_absolute <= 1e-12
    assert found.float32.stages["attention"].max_absolute <= 1e-5
    assert 0 < found.ratio <= 2
    return found


def test_fourteen_sentences(runs: dict[str, Any], ids: list[Any]) -> None:
    assert held(runs, [single(tokens) for tokens in ids]).float64.texts == 14


def test_a_text_of_512_tokens(runs: dict[str, Any], ids: list[Any]) -> None:
    assert held(runs, [single(long_text(ids, 512))]).lengths == {512}


@pytest.mark.parametrize("left", [False, True], ids=["right", "left"])
def test_a_padded_batch_with_token_types(left: bool, runs: dict[str, Any], ids: list[Any]) -> None:
    batch = padded(ids, 0, 2, left)
    assert not batch.mask.all(axis=1).any()
    assert held(runs, [batch]).float64.texts == 14


def test_float32_against_pytorch_in_float32(minilm: Model) -> None:
    _, check, *_ = diff(minilm, "oracle-float32", "torch-float32", SENTENCES)
    assert isinstance(check, Check)
    assert check.ok, check.found


@pytest.mark.slow
def test_float64_against_longdouble(minilm: Model, capsys: pytest.CaptureFixture[str]) -> None:
    """The oracle states its own rounding error; on machines without a wider longdouble it is zero."""
    table, check, *_ = diff(minilm, "oracle-float64", "oracle-longdouble", SENTENCES)
    assert isinstance(table, Table)
    assert isinstance(check, Check)
    assert check.ok, check.found
    row = next(row for row in table.records() if row["stage"] == "attention")
    with capsys.disabled():
        bits = np.finfo(np.longdouble).nmant
        print(f"\nfloat64 against longdouble ({bits} bits): rows {row['max_absolute']:.2e}, {row['worst']}")
    assert row["max_absolute"] <= 1e-13
