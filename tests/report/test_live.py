"""Progress: a moving line where somebody looks, a line now and then in a log."""

from __future__ import annotations

import io

import pytest

from validation.progress import silent
from validation.report import live
from validation.report.live import live_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_what_is_done_and_is_wiped_at_the_end(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    with live_progress(stream) as tell:
        tell("fetching [SEP]", 0, 0)
        tell("text [SEP]", 3, 14)
    shown = stream.getvalue()
    assert "text [SEP]" in shown
    assert "3/14" in shown
    assert "\x1b[2K" in shown[shown.rindex("3/14") :]  # the line is erased


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["log", "dumb"])
def test_a_log_gets_a_plain_line_now_and_then(monkeypatch, stream):
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(live, "_EVERY", 30.0)
    seconds = iter([0.0, 1.0, 31.0, 40.0, 62.0])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(seconds))
    with live_progress(stream) as tell:
        for done in range(1, 5):
            tell("text [SEP]", done, 14 if done < 4 else 0)
    assert stream.getvalue() == "sinkscope: text [SEP], 2 of 14 (31 s)\nsinkscope: text [SEP] (62 s)\n"


def test_without_a_stream_nobody_is_told():
    with live_progress(None) as tell:
        assert tell is silent


def test_an_error_inside_arrives_outside(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), live_progress(Terminal()):
        raise KeyboardInterrupt
