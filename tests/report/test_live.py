"""Progress: visible where somebody looks, silent everywhere else."""

from __future__ import annotations

import io

import pytest

from validation.progress import silent
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


def test_nothing_is_shown_off_a_terminal():
    stream = io.StringIO()
    with live_progress(stream) as tell:
        assert tell is silent
        tell("text", 3, 14)
    assert stream.getvalue() == ""


def test_a_dumb_terminal_is_left_alone(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with live_progress(Terminal()) as tell:
        assert tell is silent


def test_an_error_inside_arrives_outside(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyboardInterrupt), live_progress(Terminal()):
        raise KeyboardInterrupt
