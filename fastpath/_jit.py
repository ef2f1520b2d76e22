"""The only owner of Numba flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from fastpath._guard import Guarded
from fastpath._kept import keep, warn_not_kept

__all__ = [
    "EXACT_MATH",
    "FAST_MATH",
    "compiled_parallel",
    "inlined",
    "inlined_exact",
    "prefetch",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be regrouped so that they vectorise. NaN and infinity keep their meaning: no "nnan", no "ninf".
FAST_MATH = frozenset({"reassoc", "contract", "arcp", "nsz"})

# The order of operations stands, as split constants need; only a product and a sum may round once together.
EXACT_MATH = frozenset({"contract"})


def compiled_parallel(function: Function) -> Function:
    """Compile with `numba.prange` over rows; no reduction crosses threads, so their count changes no bit.

    What was compiled is kept on disk between runs, where that can be; it is called through a `Guarded`.
    """
    options: dict[str, Any] = {
        "fastmath": set(FAST_MATH),
        "error_model": "numpy",
        "nogil": True,
        "parallel": True,
    }
    try:
        compiled = keep(numba.njit(function, cache=True, **options))
    except RuntimeError as error:  # Numba finds neither a writable source folder nor a home for its cache
        warn_not_kept(error)
        compiled = numba.njit(function, cache=False, **options)
    if not hasattr(compiled, "py_func"):  # without the JIT it is `function` itself
        return function
    guarded: Any = Guarded(compiled)
    return guarded


def inlined(function: Function) -> Function:
    """Compile as a leaf that callers inline, so that a loop around it vectorises."""
    return numba.njit(function, inline="always", fastmath=set(FAST_MATH), error_model="numpy")


def inlined_exact(function: Function) -> Function:
    """Compile as a scalar leaf whose sums are never regrouped, whatever the flags of its caller.

    `inlined` copies source into the caller, and the caller's flags with it; this one keeps its own, and the
    loop around it vectorises all the same.
    """
    return numba.njit(function, forceinline=True, fastmath=set(EXACT_MATH), error_model="numpy")


def _emit_prefetch(typing: Any, array: Any, batch: Any, query: Any, key: Any) -> Any:
    """Types and code of `prefetch`, as Numba asks for them."""

    def emit(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        layout, *kinds = signature.args
        place = [
            context.cast(builder, index, kind, types.intp)
            for index, kind in zip(given[1:], kinds, strict=True)
        ]
        view = arrayobj.make_array(layout)(context, builder, given[0])
        pointer = cgutils.get_item_pointer(context, builder, layout, view, place)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # to be read (0), soon and again (3), as data (1)
        builder.call(call, [builder.bitcast(pointer, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, batch, query, key), emit


def _no_prefetch(array: Any, batch: Any, query: Any, key: Any) -> None:
    """What stands for `prefetch` without the JIT."""


prefetch = _no_prefetch if numba.config.DISABLE_JIT else intrinsic(_emit_prefetch)
"""prefetch(array, batch, query, key) asks the memory for a place of a 3-D array, and does not wait for it.

The place may lie past the end: nothing is read.
"""
