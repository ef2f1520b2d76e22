"""Fields of a model's configuration, read with their types and ranges checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from oracle._checks import reject

__all__ = ["Fields", "shown"]

_REQUIRED: Any = object()
# A configuration's names to those of oracle.activations.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_pytorch_tanh": "gelu_pytorch_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_LONGEST = 60  # characters
_NO_SIZE = 1 << 31


def shown(value: Any) -> str:
    """`value` as an error message may hold it: one line, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python converts
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


class Fields:
    """Checked access to a configuration; `source` is how errors name it (the path of config.json).

    A field that is absent takes `default`; without a default its absence is an InputError.
    """

    def __init__(self, config: Mapping[str, Any], source: str) -> None:
        """Keep `config`, which must be a mapping with text keys."""
        if not isinstance(config, Mapping):
            reject(
                source,
                expected="an object of named fields",
                found=shown(config),
                todo="Take the config.json that was saved with the model.",
            )
        self._config = config
        self.source = source

    def refuse(self, field: str, *, expected: str, todo: str) -> NoReturn:
        """Raise InputError about `field` and what stands there."""
        found = shown(self._config[field]) if field in self._config else "no such field"
        reject(f"{self.source}: {field}", expected=expected, found=found, todo=todo)

    def get(self, field: str, default: Any = None) -> Any:
        """The field as it stands."""
        return self._config.get(field, default)

    def integer(self, field: str, default: int = _REQUIRED, *, minimum: int = 1) -> int:
        """A whole number from `minimum` to what a size of an array can be."""
        value = self._config.get(field, default)
        if type(value) is not int or not minimum <= value < _NO_SIZE:
            self.refuse(
                field,
                expected=f"a whole number from {minimum} to {_NO_SIZE - 1}",
                todo="Correct it, or take the config.json that was saved with the model.",
            )
        return value

    def layers(self, field: str, n_tensors: int) -> int:
        """How many layers there are, refused before a list of names is made that no file could hold."""
        count = self.integer(field)
        if count > n_tensors:
            self.refuse(
                field,
                expected=f"no more layers than the weights hold tensors ({n_tensors})",
                todo="Take the weights and the config.json that were saved together.",
            )
        return count

    def per_head(self, width: str, heads: str) -> int:
        """Entries of one head, where `width` is shared among `heads`."""
        d_model, n_heads = self.integer(width), self.integer(heads)
        if d_model % n_heads:
            self.refuse(width, expected=f"a multiple of {heads} ({n_heads})", todo="Correct one.")
        return d_model // n_heads

    def flag(self, field: str, default: bool) -> bool:
        """True or false."""
        value = self._config.get(field, default)
        if type(value) is not bool:
            self.refuse(field, expected="true or false", todo="Correct it.")
        return value

    def token_id(self, field: str, default: int | None, *, vocab_size: int) -> int | None:
        """A row of the embedding table, or None where the model has no such token."""
        value = self._config.get(field, default)
        if value is not None and (type(value) is not int or not 0 <= value < vocab_size):
            self.refuse(field, expected=f"null or a token id from 0 to {vocab_size - 1}", todo="Correct it.")
        return value

    def number(self, field: str, default: float = _REQUIRED) -> float:
        """A positive, finite number."""
        value = self._config.get(field, default)
        if type(value) not in (int, float) or not 0 < value < math.inf:
            self.refuse(
                field,
                expected="a positive number",
                todo="Correct it, or take the config.json that was saved with the model.",
            )
        return float(value)

    def optional_number(self, field: str, default: float | None) -> float | None:
        """A positive, finite number, or None where the field is null."""
        return None if self._config.get(field, default) is None else self.number(field, default or _REQUIRED)

    def optional_integer(self, field: str, default: int | None) -> int | None:
        """A whole number from one, or None where the field is null."""
        return None if self._config.get(field, default) is None else self.integer(field, default or _REQUIRED)

    def choice(self, field: str, default: str, allowed: Mapping[str, str]) -> str:
        """What `allowed` gives for the field's text."""
        value = self._config.get(field, default)
        if not isinstance(value, str) or value not in allowed:
            self.refuse(
                field,
                expected=" or ".join(allowed),
                todo="The others are not implemented, and nothing near is put in their place.",
            )
        return allowed[value]

    def activation(self, field: str, default: str) -> str:
        """An activation under the name that `oracle.activations` has for it."""
        return self.choice(field, default, _ACTIVATIONS)

    def absent(self, field: str, why: str) -> None:
        """Refuse a field that switches on something unsupported (absent, null, false and empty are fine)."""
        if self._config.get(field):
            self.refuse(field, expected="it to be off or absent", todo=why)

    def alike(self, field: str, other: str, value: Any) -> None:
        """Refuse a field that says something else than `other`, whose value is `value`; null says nothing."""
        if self._config.get(field) not in (None, value):
            expected = f"what {other} says ({shown(value)}), or no such field"
            self.refuse(field, expected=expected, todo="Correct one.")

    def with_aliases(self, aliases: Mapping[str, str]) -> Fields:
        """The same, each absent field taken from its second name (second name: field); both must agree."""
        taken = {}
        for alias, field in aliases.items():
            if self._config.get(field) is not None:
                self.alike(alias, field, self._config[field])
            elif self._config.get(alias) is not None:
                taken[field] = self._config[alias]
        return Fields({**self._config, **taken}, self.source)

    def on(self, field: str, why: str) -> None:
        """Refuse anything but true for a field that is on where it is absent: null switches it off."""
        if self._config.get(field, True) is not True:
            self.refuse(field, expected="true, or no such field", todo=why)
