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
from validation.reference_parts import (
    CAUSAL,
    blocks,
    captured_softmax,
    captured_states,
    captured_vectors,
    lifted,
    own_positions,
    query_parts,
    quiet,
    redraw,
    runs_of_blocks,
    skipped_rows,
    widen_buffers,
)

__all__ = ["LIFTED", "STAGES", "Reference", "random_bert", "random_network", "torch_threads"]

Array = NDArray[Any]

STAGES = ("embeddings", "queries", "keys", "values", "value_norm", "scores", "attention", "hidden_states")
"""What `Reference.run` returns, in the order of computation."""

LIFTED = "in float64 the steps that transformers always computes in float32 are lifted to float64 as well"
"""What has to be said where `Reference` runs in float64."""

_PROBES, _PROBE_LENGTH, _GROWTHS = 3, 61, 60  # what random_network looks at, and how long it tries
_FIRST_CAUSAL = 8  # rows of a causal model before this one have a peak of necessity


class Reference:
    """A checkpoint as transformers itself loads and runs it, in one dtype."""

    def __init__(self, network: Any, directory: Path) -> None:
        """Use `load`."""
        self._whole, self._network, self.directory = network, network.base_model, directory

    @classmethod
    def load(cls, directory: str | os.PathLike[str], dtype: str = "float32") -> Reference:
        """The model in `directory`, in "float32" or "float64", without dropout, its rows kept.

        The network is never asked and no code of the checkpoint runs. Raises Unavailable without the extra,
        and InputError where transformers cannot load the directory or would make up a weight that is missing.
        """
        torch, transformers = _libraries()
        if dtype not in ("float32", "float64"):
            reject("dtype", expected="float32 or float64", found=str(dtype), todo="Name one of the two.")
        path = os.fspath(directory)
        with quiet(torch, transformers):
            try:
                config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
                causal = config.model_type in CAUSAL
                kind = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
                network, info = kind.from_pretrained(
                    path,
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
        made_up = [name for name in info["missing_keys"] if not name.startswith(("pooler.", "lm_head."))]
        made_up += [str(key) for key in info["mismatched_keys"]]
        if made_up:
            _reject(directory, "every weight of the model", f"no fitting {', '.join(sorted(made_up))}")
        if dtype == "float64":
            widen_buffers(torch, network)
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
        "keys", "values" (batch, layer, head, token, d_head), turned where positions are rotary and repeated
        where heads share them; "value_norm" (batch, layer, head, token), of those values and in float64;
        "scores", "attention" (batch, layer, head, query, key); "hidden_states" (batch, layer + 1, token,
        d_model), without a final norm. Scores are what their softmax is given, -inf where they are masked;
        padding queries attend like others. Without `position_ids` they count from 0 at the first column,
        padding or not; RoBERTa and OPT always count for themselves, by padding id and mask.
        """
        kept = set(keep)
        arguments = self._arguments(token_ids, mask, token_types, position_ids)
        found: dict[str, list[Any]] = {name: [] for name in STAGES}
        torch, _ = _libraries()
        with ExitStack() as stack:
            stack.enter_context(self._as_asked(torch))
            if "scores" in kept:
                stack.enter_context(captured_softmax(torch, found["scores"]))
            if kept & {"queries", "keys", "values", "value_norm"}:
                stack.enter_context(captured_vectors(self._network, found))
            if kept & {"embeddings", "hidden_states"}:
                stack.enter_context(captured_states(self._network, found["hidden_states"]))
            found["attention"] = list(self._network(**arguments, output_attentions=True).attentions)
        found["embeddings"] = found["hidden_states"][:1]
        if "value_norm" in kept:
            norm = torch.linalg.vector_norm
            found["value_norm"] = [norm(each, dim=-1, dtype=torch.float64) for each in found["values"]]
        config = self._network.config
        layers = config.num_hidden_layers * getattr(config, "inner_group_num", 1)
        stages = {}
        for name in (stage for stage in STAGES if stage in kept):
            wanted = {"embeddings": 1, "hidden_states": layers + 1}.get(name, layers)
            if len(found[name]) != wanted:
                raise Unavailable(
                    f"reference: {len(found[name])} arrays of {name} came out of transformers where {wanted} "
                    f"belong, so this release cannot be compared with. Install another transformers."
                )
            parts = [tensor.detach().numpy() for tensor in found[name]]
            if name in ("keys", "values", "value_norm"):
                shared = config.num_attention_heads // parts[0].shape[1]
                parts = [np.repeat(part, shared, axis=1) for part in parts]
            stages[name] = parts[0] if name == "embeddings" else np.stack(parts, axis=1)
        if "scores" in stages:
            lowest = np.finfo(stages["scores"].dtype).min
            stages["scores"][stages["scores"] < lowest / 2] = -np.inf
        return stages

    def logits(self, token_ids: Any, mask: Any = None, position_ids: Any = None) -> Array:
        """Logits of a causal model, (batch, token, vocabulary); arguments as for `run`."""
        torch, _ = _libraries()
        if self._whole is self._network:
            _reject(self.directory, "a causal model", f"{self._network.config.model_type}, an encoder")
        with self._as_asked(torch):
            found = self._whole(**self._arguments(token_ids, mask, None, position_ids)).logits
        return np.asarray(found.detach().numpy())

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
        if own_positions(self._network):
            arrays.pop("position_ids", None)
        shape = arrays["input_ids"].shape
        for name, array in arrays.items():
            if array.shape != shape or len(shape) != 2:
                reject(
                    name,
                    expected=f"one shape (batch, token) for all, {shape}",
                    found=f"{array.shape}",
                    todo="A single text is a batch of one.",
                )
        if not hasattr(self._network.config, "type_vocab_size"):
            types = arrays.pop("token_type_ids", None)
            if types is not None and types.any():
                reject("token_types", expected="none", found="some", todo="This model has no token types.")
        return {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}

    @contextmanager
    def _as_asked(self, torch: Any) -> Iterator[None]:
        """Without gradients, and wholly in float64 where the network is."""
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if self._network.dtype == torch.float64:
                stack.enter_context(lifted(torch))
            yield


def random_bert(directory: str | os.PathLike[str], seed: int, **config: Any) -> Path:
    """Write a randomly initialised BERT into `directory`, with real files, and return it.

    `config` overrides transformers' BertConfig fields; the weights are those of `random_network`.
    """
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
    return random_network(directory, seed, "bert", **(sizes | config))


def random_network(directory: str | os.PathLike[str], seed: int, family: str, **config: Any) -> Path:
    """Write a randomly initialised model into `directory`, with real files, and return it.

    `config` holds the fields of transformers' configuration of that family, a `model_type`. Every parameter
    is redrawn from `seed`: biases, matrices and tables normal with spread 0.5 (a fifth of that for matrices
    that write into the residual stream, or all tokens become alike within three layers), norm weights uniform
    from 0.5 to 1.5. Then, layer by layer, the queries grow by quarters until the mean largest weight of a row
    exceeds 0.5 on probe texts.
    """
    torch, transformers = _libraries()
    kind = transformers.AutoModelForCausalLM if family in CAUSAL else transformers.AutoModel
    rng = np.random.default_rng(seed)
    with quiet(torch, transformers), torch_threads(1):  # threads cost more than they save at this size
        settings = transformers.AutoConfig.for_model(family, **config)
        network = kind.from_config(settings, attn_implementation="eager").eval()
        redraw(torch, network, rng)
        length = min(_PROBE_LENGTH, settings.max_position_embeddings - skipped_rows(network))
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


def _sharpen(network: Any, probes: Array) -> None:
    """Let the queries of each layer grow until its rows have a peak."""
    reference, config = Reference(network, Path()), network.config
    first = _FIRST_CAUSAL if config.model_type in CAUSAL else 0
    for runs, block in zip(runs_of_blocks(network), blocks(network), strict=True):
        parts = query_parts(block, config.model_type, config.num_attention_heads)
        for _ in range(_GROWTHS):
            rows = reference.run(probes, keep=("attention",))["attention"][:, runs, :, first:]
            if rows.max(axis=-1).mean() > 0.5:
                break
            for part in parts:
                part *= 1.25
        else:
            reject(
                "config",
                expected="a model whose rows can have a peak",
                found=f"uniform rows in layer {runs[0]}",
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


def _reject(directory: Any, expected: str, found: str) -> None:
    reject(
        str(directory),
        expected=expected,
        found=found,
        todo="Name a directory with config.json and model.safetensors that were saved together.",
    )
