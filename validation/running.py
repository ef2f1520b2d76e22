"""How a command runs: its result to the screen and to a file, and every way to end as an exit code."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

if TYPE_CHECKING:
    from validation.progress import Progress
    from validation.report.document import Document

__all__ = [
    "BUG",
    "INTERRUPTED",
    "NOT_RUN",
    "WRONG_CALL",
    "calm_threads",
    "guarded",
    "one_blas_thread",
    "own_environment",
    "run",
]

WRONG_CALL, NOT_RUN, INTERRUPTED = 2, 3, 130
BUG = 70  # an error of ours: neither "a check failed" nor "wrong input" would be true
_SET: dict[str, str] = {}


def calm_threads() -> None:
    """Let idle threads of compiled loops sleep, unless the user says otherwise; before they are started.

    Many short loops on busy CPUs cost three times their own work in threads that spin for the next one.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        _set("OMP_WAIT_POLICY", "PASSIVE")


def one_blas_thread() -> None:
    """One thread for NumPy's BLAS in this process, unless the user has said how many, or NumPy is loaded.

    Products here are small, and OpenBLAS threads spin while they wait for each other: on cores that others
    keep busy, 0.6 s become 24 s. OMP_NUM_THREADS and MKL_NUM_THREADS would bind PyTorch and Numba too.
    """
    said = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
    if "numpy" not in sys.modules and not any(os.environ.get(name) for name in said):
        _set("OPENBLAS_NUM_THREADS", "1")


def own_environment() -> dict[str, str]:
    """The environment as the user gave it: without what this process has set for itself alone."""
    return {name: value for name, value in os.environ.items() if _SET.get(name) != value}


def _set(name: str, value: str) -> None:
    os.environ[name] = _SET[name] = value


def run(
    json: str | None,
    work: Callable[[Progress], Document],
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> int:
    """Do `work`, show its Document (as JSON for `json` "-") and write it to a file; the exit code.

    `inputs` are files and directories that `work` reads: `json` must be none of them.
    """
    from validation.commands import exit_code
    from validation.report import as_json, files, terminal
    from validation.report.live import live_progress

    files.forget_written()
    if json is not None and json != "-":
        as_json.check_target(json, inputs)
    with live_progress(sys.stderr) as tell:
        try:
            document = work(tell)
        except BrokenPipeError as error:  # not our output: nothing is printed before the work is done
            raise RuntimeError("a pipe broke during the work") from error
    problem = _show(as_json.dumps(document) if json == "-" else terminal.for_stream(document, sys.stdout))
    if json is not None and json != "-":
        as_json.write(document, json)
    if problem:
        _refuse_output(problem)
    return exit_code(document)


def _refuse_output(problem: str) -> NoReturn:
    from oracle._checks import reject

    reject(
        "standard output",
        expected="a place that can be written to",
        found=problem,
        todo="Free some space, or send it somewhere else.",
    )


def _show(text: str) -> str:
    """Write `text` to standard output; what went wrong, in words, or nothing."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; what was asked for is done all the same
        _drop(sys.stdout)
    except OSError as error:
        _drop(sys.stdout)
        return error.strerror or str(error)
    return ""


def guarded(call: Callable[[], Any]) -> int:
    """The exit code of `call`, with one line on standard error for everything that the caller can mend.

    Anything else keeps its traceback and gives BUG. Warnings of libraries are not shown unless Python was
    told to (-W, PYTHONWARNINGS), but for one: that compiled code cannot be kept. A standard stream that is
    closed swallows what is written to it.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # else its number goes to the next file, for libraries to write into
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    try:
        return _code_of(call)
    finally:
        _flush_messages()


def _code_of(call: Callable[[], Any]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a character is no error
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", "compiled code cannot be kept", RuntimeWarning)
            warnings.showwarning = _warn
        try:
            code = call()
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        except SystemExit as ending:
            return _ended(ending)
        except Exception as error:
            return _explain(error)
    if code == INTERRUPTED:
        _say(f"interrupted; {_written()} written.")
    return code if isinstance(code, int) else 0


def _written() -> str:
    """What the command has written before it was stopped, as the start of a sentence."""
    from validation.report.files import written

    names = ", ".join(written())
    return f"{names} {'were' if len(written()) > 1 else 'was'}" if names else "nothing was"


def _ended(ending: SystemExit) -> int:
    """Its code; words go to standard error with code 1, as Python does it.

    The argument parser ends so when its help meets a broken pipe: then the reader has seen enough.
    """
    if isinstance(ending.__context__, BrokenPipeError):
        _drop(sys.stdout)
        return 0
    if ending.code is None or isinstance(ending.code, int):
        return ending.code or 0
    _say(str(ending.code))
    return 1


def _explain(error: Exception) -> int:
    from oracle._checks import InputError, InputTypeError, Unavailable
    from validation.progress import Interrupted

    if isinstance(error, OSError) and _is_of_echo(error):
        _drop(sys.stdout)
        try:
            _refuse_output(error.strerror or str(error))
        except InputError as refusal:
            error = refusal
    if isinstance(error, FileNotFoundError) and _is_nowhere():  # libraries ask where they are
        _say("the current folder has been deleted. Go to one that is there.")
        return WRONG_CALL
    if isinstance(error, (InputError, InputTypeError)):
        _say(str(error))
        return WRONG_CALL
    if isinstance(error, Interrupted):
        _say(str(error))
        return INTERRUPTED
    if isinstance(error, Unavailable):
        _say(str(error))
        return NOT_RUN
    if hasattr(error, "format_message"):  # a usage error, whichever parser typer brings
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "sinkscope"
        _say(f"{error.format_message().rstrip('.')}. Try '{command} --help'.")
        return WRONG_CALL
    if isinstance(error, MemoryError):
        _say(f"not enough memory ({error}). Take fewer layers, or shorter texts.")
        return NOT_RUN
    with suppress(OSError):
        traceback.print_exception(error)
    return BUG


def _is_of_echo(error: OSError) -> bool:
    """Whether it comes from the argument parser as it prints its help or the version."""
    return any(frame.f_code.co_name == "echo" for frame, _ in traceback.walk_tb(error.__traceback__))


def _is_nowhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    _say(f"warning: {message}.")


def _say(message: str) -> None:
    """One line on standard error."""
    from validation.report._layout import plain

    with suppress(OSError):  # nobody can be told; the exit code still says it
        print("sinkscope:", plain(" ".join(message.split())), file=sys.stderr)


def _flush_messages() -> None:
    """Let nothing stay behind on a standard error that cannot be written: Python would end with code 120."""
    try:
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that Python does not complain at its own end."""
    try:
        output = stream.fileno()
    except (OSError, ValueError):  # not a real file: nothing is buffered
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, output)
    os.close(nowhere)
