"""How an input error must read: one line that names the argument, what was expected and found, what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from oracle import InputError, InputTypeError


@contextmanager
def refused(
    argument: str, *words: str, error: type[InputError] | type[InputTypeError] = InputError
) -> Iterator[None]:
    """The body must raise `error` about `argument`, in the one voice, with every one of `words` in it."""
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    assert re.fullmatch(rf"{re.escape(argument)}: expected .+; found .+\. [A-Z\"'].+[.)]", message), message
    for word in words:
        assert word in message
