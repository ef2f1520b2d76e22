"""Somebody else's code: Hugging Face transformers, eager, on the CPU, and its numbers stage by stage.

The only module of this package that knows torch and transformers; both are imported when they are called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracle import Unavailable
from oracle._checks import as_array, reject
from oracle.loading._files import one_line

__all__ = ["STAGES", "Reference", "random_bert", "torch_threads"]

Array = NDArray[Any]

STAGES = ("embeddings", "queries", "keys", "values", "scores", "attention", "hidden_states")
"""What `Reference.run` returns, in the order of computation."""

_PROBES, _PROBE_LENGTH, _GROWTHS = 3, 61, 60  # what random_bert looks at, and how long it tries


class Reference:
    """A checkpoint as transformers itself loads and runs it, in one dtype."""

    def __init__(self, network: Any, directory: Path) -> None:
        """Use `load`."""
        self._network, self.directory = network, directory

    @classmethod
    def load(cls, directory: str | os.PathLike[str], dtype: str = "float32") -> Reference:
        """The model in `directory`, in "float32" or "float64", without dropout, its rows kept.

        The network is never asked and no code of the checkpoint runs. Raises Unavailable without the extra,
        and InputError where transformers cannot load the directory or would make up a weight that is missing.
        """
        torch, transformers = _libraries()
        if dtype not in ("float32", "float64"):
            reject("dtype", expected="float32 or float64", found=str(dtype), todo="Name one of the two.")
        with _quiet(torch, transformers):
            try:
                network, info = transformers.AutoModel.from_pretrained(
                    os.fspath(directory),
                    attn_implementation="eager",
                    dtype=getattr(torch, dtype),
                    local_files_only=True,
                    use_safetensors=True,
                    output_loading_info=True,
                )
            except MemoryError:
                raise
            except Exception as error:  # whatever its own checks of a checkpoint raise
                found = f"transformers refuses the checkpoint: {one_line(error)}"
                _reject(directory, "a model that transformers loads", found)
        made_up = [name for name in info["missing_keys"] if not name.startswith("pooler.")]
        made_up += [str(key) for key in info["mismatched_keys"]]
        if made_up:
            _reject(directory, "every weight of the model", f"no fitting {', '.join(sorted(made_up))}")
        return cls(network.eval(), Path(directory))

    def run(
        self,
        token_ids: Any,
        mask: Any = None,
        token_types: Any = None,
        position_ids: Any = None,
        keep: Iterable[str] = STAGES,
    ) -> dict[str, Array]:
        """Run a batch; every argument is (batch, token), `mask` is True at real tokens.

        Returns the stages that `keep` names, batch first: "embeddings" (batch, token, d_model); "queries",
        "keys", "values" (batch, layer, head, token, d_head); "scores", "attention" (batch, layer, head,
        query, key); "hidden_states" (batch, layer + 1, token, d_model). Scores are what their softmax is
        given: padding keys stand at a large negative number there, and padding queries attend like others.
        Without `position_ids` they count from 0 at the first column, padding or not.
        """
        kept = set(keep)
        arguments = self._arguments(token_ids, mask, token_types, position_ids)
        found: dict[str, list[Any]] = {name: [] for name in STAGES}
        torch, _ = _libraries()
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if "scores" in kept:
                stack.enter_context(_captured_softmax(torch, found["scores"]))
            for module, name in self._hooked(kept):
                handle = module.register_forward_hook(lambda _m, _i, out, to=found[name]: to.append(out))
                stack.callback(handle.remove)
            output = self._network(**arguments, output_attentions=True, output_hidden_states=True)
        found["attention"] = list(output.attentions)
        found["hidden_states"] = list(output.hidden_states)
        layers, heads = self._network.config.num_hidden_layers, self._network.config.num_attention_heads
        stages = {}
        for name in (stage for stage in STAGES if stage in kept):
            wanted = {"embeddings": 1, "hidden_states": layers + 1}.get(name, layers)
            if len(found[name]) != wanted:
                raise Unavailable(
                    f"reference: {len(found[name])} arrays of {name} came out of transformers where {wanted} "
                    f"belong, so this release cannot be compared with. Install another transformers."
                )
            parts = [tensor.detach().numpy() for tensor in found[name]]
            if name in ("queries", "keys", "values"):
                parts = [p.reshape(*p.shape[:2], heads, -1).transpose(0, 2, 1, 3) for p in parts]
            stages[name] = parts[0] if name == "embeddings" else np.stack(parts, axis=1)
        return stages

    def caller(self, token_ids: Any) -> Callable[[], Any]:
        """A function that runs their plain forward pass, attention rows included: something to time."""
        torch, _ = _libraries()
        arguments, network = self._arguments(token_ids, None, None, None), self._network

        def call() -> Any:
            with torch.no_grad():
                return network(**arguments, output_attentions=True).attentions

        return call

    def _arguments(self, token_ids: Any, mask: Any, token_types: Any, position_ids: Any) -> dict[str, Any]:
        torch, _ = _libraries()
        given = {
            "input_ids": token_ids,
            "attention_mask": mask,
            "token_type_ids": token_types,
            "position_ids": position_ids,
        }
        arrays = {name: as_array(name, value) for name, value in given.items() if value is not None}
        shape = arrays["input_ids"].shape
        for name, array in arrays.items():
            if array.shape != shape or len(shape) != 2:
                reject(
                    name,
                    expected=f"one shape (batch, token) for all, {shape}",
                    found=f"{array.shape}",
                    todo="A single text is a batch of one.",
                )
        return {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}

    def _hooked(self, kept: set[str]) -> Iterator[tuple[Any, str]]:
        """Their own modules, and the stage that each puts out."""
        if "embeddings" in kept:
            yield self._network.embeddings, "embeddings"
        parts = {"queries": "query", "keys": "key", "values": "value"}
        for layer in self._network.encoder.layer:
            for name, part in parts.items():
                if name in kept:
                    yield getattr(layer.attention.self, part), name


def random_bert(directory: str | os.PathLike[str], seed: int, **config: Any) -> Path:
    """Write a randomly initialised BERT into `directory`, with real files, and return it.

    `config` overrides transformers' BertConfig fields. Every parameter is redrawn from `seed`: biases,
    matrices and tables normal with spread 0.5 (a fifth of that for matrices that write into the residual
    stream, or all tokens become alike within three layers), norm weights uniform from 0.5 to 1.5. Then, layer
    by layer, the queries grow by quarters until the mean largest weight of a row exceeds 0.5 on probe texts.
    """
    torch, transformers = _libraries()
    sizes = {
        "vocab_size": 101,
        "hidden_size": 30,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 37,
        "max_position_embeddings": 67,
        "type_vocab_size": 2,
        "layer_norm_eps": 3e-5,
        "hidden_act": "gelu",
        "cls_token_id": 1,
        "sep_token_id": 2,
    }
    settings = transformers.BertConfig(**(sizes | config), attn_implementation="eager")
    rng = np.random.default_rng(seed)
    with _quiet(torch, transformers), torch_threads(1):  # threads cost more than they save at this size
        network = transformers.BertModel(settings).eval()
        _redraw(torch, network, rng)
        length = min(_PROBE_LENGTH, settings.max_position_embeddings)
        _sharpen(network, rng.integers(settings.vocab_size, size=(_PROBES, length)))
        network.save_pretrained(os.fspath(directory))
    return Path(directory)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use `count` threads inside an operation, and set back what was there before."""
    torch, _ = _libraries()
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _redraw(torch: Any, network: Any, rng: np.random.Generator) -> None:
    for name, parameter in network.named_parameters():
        shape = tuple(parameter.shape)
        if name.endswith("LayerNorm.weight"):
            values = rng.uniform(0.5, 1.5, shape)
        else:
            values = rng.normal(0, 0.1 if name.endswith("output.dense.weight") else 0.5, shape)
        parameter.data = torch.from_numpy(values.astype(np.float32))


def _sharpen(network: Any, probes: Array) -> None:
    """Let the queries of each layer grow until its rows have a peak."""
    reference = Reference(network, Path())
    for index, layer in enumerate(network.encoder.layer):
        query = layer.attention.self.query
        for _ in range(_GROWTHS):
            rows = reference.run(probes, keep=("attention",))["attention"][:, index]
            if rows.max(axis=-1).mean() > 0.5:
                break
            query.weight.data *= 1.25
            query.bias.data *= 1.25
        else:
            reject(
                "config",
                expected="a model whose rows can have a peak",
                found=f"uniform rows in layer {index}",
                todo="Take fewer layers.",
            )


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise Unavailable(
            f"The reference needs torch and transformers ({error}). "
            'Install them: pip install "sinkscope[reference]"'
        ) from error
    return torch, transformers


@contextmanager
def _quiet(torch: Any, transformers: Any) -> Iterator[None]:
    """Neither log lines nor progress bars of theirs, and no draw from torch's own random numbers."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _captured_softmax(torch: Any, captured: list[Any]) -> Iterator[None]:
    """Keep a copy of what softmax is given, while it does its work; not for several threads at once."""
    functional = torch.nn.functional
    original = functional.softmax

    def softmax(scores: Any, *arguments: Any, **named: Any) -> Any:
        captured.append(scores.detach().clone())
        return original(scores, *arguments, **named)

    functional.softmax = softmax
    try:
        yield
    finally:
        functional.softmax = original


def _reject(directory: Any, expected: str, found: str) -> None:
    reject(
        str(directory),
        expected=expected,
        found=found,
        todo="Name a directory with config.json and model.safetensors that were saved together.",
    )
