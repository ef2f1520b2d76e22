"""SmolLM2, the bundled causal model: its files, its tokenizer, its numbers beside transformers'."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_texts import TEXTS
from numpy.typing import NDArray

import oracle
from oracle.language_model import perplexity
from oracle.loading import _gguf, bundled_models, dequantised_copies, fetch_model, load_model
from oracle.loading._gguf_llama import rotary_rows
from oracle.model import Linear, Model

WEIGHTS = 4 * 134_515_008  # bytes in float32

# Long enough, and with words that come back, so that it matters where a token stands.
PROSE = Path(__file__).parents[2].joinpath("LICENSE").read_text(encoding="utf-8")
STORY = (
    "The lighthouse stood at the end of a narrow road, and for most of the year nobody used it except the "
    "keeper and his dog. In winter the waves came over the wall and left salt on the windows, so that every "
    "morning he went out with a bucket of warm water and washed them clean."
)


@pytest.fixture(scope="module")
def smollm2() -> Model:
    return load_model("smollm2-135m")


@pytest.fixture(scope="module")
def theirs(smollm2: Model) -> Any:
    """transformers on the same dequantised weights."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'reference'")
    return transformers.AutoModelForCausalLM.from_pretrained(
        smollm2.source, attn_implementation="eager", dtype="float32"
    )


def test_it_is_what_the_table_says(smollm2: Model) -> None:
    config = smollm2.config
    assert (config.n_layers, config.n_heads, config.n_kv_heads, config.d_model) == (30, 9, 3, 576)
    assert (config.max_positions, config.bos_id, config.causal, config.tied_head) == (8192, 1, True, True)
    assert smollm2.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    row = next(model for model in bundled_models() if model.name == "smollm2-135m")
    assert row.state == "cached"
    assert 98e6 < row.size < 99e6
    copy = next(copy for copy in dequantised_copies() if copy.path == smollm2.source)
    assert 538e6 < copy.size < 545e6


def test_its_weights_are_mapped_and_not_copied(smollm2: Model) -> None:
    arrays = [smollm2.embeddings.words, smollm2.layers[29].down.weight, smollm2.layers[0].query.weight]
    assert not any(array.flags.owndata or array.flags.writeable for array in arrays)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_round_trip_of_a_text_is_exact(smollm2: Model, text: str) -> None:
    encoding = smollm2.tokenizer.encode(text)
    assert smollm2.tokenizer.decode(encoding.ids, skip_special_tokens=False) == text
    spans = encoding.offsets
    assert all(start < end for start, end in spans)  # nothing is added
    assert not text or (spans[0][0], spans[-1][1]) == (0, len(text))


def test_a_byte_that_its_vocabulary_lacks_is_said_to_be_left_out(smollm2: Model) -> None:
    notes = oracle.forward(smollm2, "a\u0016b", keep=()).notes
    assert any(
        note.startswith("WARNING: characters that the vocabulary lacks are left out: 1,") for note in notes
    )


def test_position_0_is_said_to_be_no_bos(smollm2: Model) -> None:
    assert oracle.forward(smollm2, "The sea", keep=()).notes == (
        "WARNING: position 0 is not the BOS, which would be <|im_start|> (id 1): the tokenizer adds none",
    )
    (note,) = oracle.forward(smollm2, [1, 504], keep=()).notes
    assert note == "position 0 is the BOS <|im_start|> (id 1), which the text begins with"


@pytest.mark.parametrize("text", [PROSE, STORY], ids=["licence", "story"])
def test_attention_and_perplexity_are_those_of_transformers(smollm2: Model, theirs: Any, text: str) -> None:
    import torch

    ids = torch.tensor([smollm2.tokenizer.encode(text).ids])
    with torch.no_grad():
        found = theirs(ids, labels=ids, output_attentions=True)
    trace = oracle.forward(smollm2, text, keep=("attention",))
    for layer, rows in enumerate(found.attentions):
        np.testing.assert_allclose(trace.attention[layer], rows[0].numpy(), rtol=0, atol=2e-5)
    expected = float(torch.exp(found.loss.double()))
    assert perplexity(smollm2, text) == pytest.approx(expected, rel=5e-5)


def test_rows_of_q_and_k_left_as_stored_are_noticed(smollm2: Model) -> None:
    """The self-test of the rotary permutation: the perplexity must be over ten times too high."""
    right = perplexity(smollm2, PROSE)
    assert right < 5
    layers = tuple(
        replace(
            layer,
            query=as_stored(layer.query, "layer.q_proj.weight"),
            key=as_stored(layer.key, "layer.k_proj.weight"),
        )
        for layer in smollm2.layers
    )
    assert perplexity(replace(smollm2, layers=layers), PROSE) > 10 * right


def as_stored(linear: Linear, name: str) -> Linear:
    """With its rows (columns of x W) in the file's order."""
    order: NDArray[np.int64] | None = rotary_rows(
        name, {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64}
    )
    weight = np.empty(linear.weight.shape, linear.weight.dtype)
    weight[:, order] = linear.weight
    return linear._replace(weight=weight)


@pytest.mark.slow
def test_making_and_widening_it_takes_little_more_memory_than_its_weights(
    smollm2: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = fetch_model("smollm2-135m") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path))
    assert peak(lambda: _gguf.dequantise(file, None, lambda line: None)) < 0.3 * WEIGHTS
    assert peak(lambda: load_model(file)) < 0.01 * WEIGHTS  # mapped
    assert peak(lambda: load_model(file, dtype="float64")) < 1.3 * 2 * WEIGHTS


LOADED = """
import time
import gguf, tokenizers
import oracle
from validation.bench.child import peak_memory
before, start = peak_memory(), time.perf_counter()
model = oracle.load_model("smollm2-135m")
seconds = time.perf_counter() - start
oracle.logits(model, oracle.forward(model, [504, 3575, 282], keep=("hidden_states",)))
print(peak_memory() - before, seconds)
"""


def loaded() -> tuple[int, float]:
    """Bytes at most in memory, every weight read, and seconds of loading, in a process of its own."""
    pytest.importorskip("resource", reason="peak memory is asked of POSIX")
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    most, seconds = run.stdout.split()
    return int(most), float(seconds)


def test_running_it_needs_no_more_than_its_weights_and_a_third(smollm2: Model) -> None:
    assert 0.9 * WEIGHTS < loaded()[0] <= 1.3 * WEIGHTS


@pytest.mark.timing
def test_after_the_first_time_it_is_there_within_six_seconds(smollm2: Model) -> None:
    assert loaded()[1] < 6


def peak(call: Callable[[], Any]) -> int:
    """The most bytes that were held at once."""
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.slow
def test_weights_equal_those_of_transformers_own_gguf_loader(theirs: Any) -> None:
    """Bit by bit; its loader takes a quarter of a minute."""
    import transformers

    folder = fetch_model("smollm2-135m")
    own = transformers.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf", dtype="float32"
    ).state_dict()
    ours = theirs.state_dict()
    assert set(own) == set(ours)
    for name, values in own.items():
        np.testing.assert_array_equal(ours[name].numpy(), values.numpy(), err_msg=name)


@pytest.mark.slow
def test_token_ids_equal_those_of_transformers_rebuilding_but_for_white_space_before_numbers(
    smollm2: Model,
) -> None:
    import transformers

    folder = fetch_model("smollm2-135m")
    rebuilt = transformers.AutoTokenizer.from_pretrained(folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
    for text in TEXTS.values():
        assert smollm2.tokenizer.encode(text).ids == rebuilt(text)["input_ids"]
    numbers = ["2", "10", "\u00bd", "\u2460", "\u0663"]
    others = [" ", "\n", "\t", "the", "Cat", "'s", "'", "e\u0301", "<|im_start|>", "<|endoftext|>", ".", "-"]
    others += ["$", "\u0016", "\U000e0067", "\u6ce8", "\N{THUMBS UP SIGN}", "\u00a0"]
    rng, differ = random.Random(5), 0
    for turn in range(4000):
        drawn = others if turn % 2 else numbers + others
        text = "".join(rng.choice(drawn) for _ in range(rng.randint(1, 8)))
        same = smollm2.tokenizer.encode(text).ids == rebuilt(text)["input_ids"]
        cut = any(text[place - 1 : place].isspace() for place, char in enumerate(text) if char.isnumeric())
        assert same or cut, text
        differ += not same
    assert differ > 20
