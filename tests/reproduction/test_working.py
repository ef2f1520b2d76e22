"""Runs: done if they have to be, kept at once, gone on with after a stop, alone in their folder."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from oracle import InputError
from validation.progress import Interrupted, silent
from validation.reproduction import stamp, working
from validation.reproduction.kept import load_result
from validation.reproduction.lock import alone
from validation.reproduction.runs import Run
from validation.reproduction.working import FAILED, KEPT, NEW, NOT_RUN, run_named, state_of


def states(outcomes):
    return {one.run.name: one.state for one in outcomes}


def said(outcome):
    return outcome.report["parts"][0]["text"]


def test_a_second_call_takes_what_the_first_has_kept(program, tmp_path):
    program.offer(one=["say", "first"], two=["say", "second"])
    assert states(run_named(["one"], folder=tmp_path)) == {"one": NEW}
    outcomes = run_named(folder=tmp_path)
    assert states(outcomes) == {"one": KEPT, "two": NEW}
    assert list(map(said, outcomes)) == ["first", "second"]
    assert program.calls == ["say first", "say second"]
    assert states(run_named(["two"], fresh=True, folder=tmp_path)) == {"two": NEW}
    assert program.calls[2:] == ["say second"]
    assert "a line of say" in (tmp_path / "two.log").read_text()
    assert load_result("one", tmp_path) == outcomes[0].report


def test_by_default_results_stand_in_the_users_cache(program, tmp_path, monkeypatch):
    monkeypatch.setenv("SINKSCOPE_CACHE", str(tmp_path))
    program.offer(one=["say", "first"])
    run_named()
    assert (tmp_path / "reproduction" / "one.json").is_file()


@pytest.mark.parametrize("what", ["code", "versions", "command"])
def test_what_other_code_libraries_or_commands_made_is_made_again(program, tmp_path, monkeypatch, what):
    program.offer(one=["say", "first"])
    (before,) = run_named(folder=tmp_path)
    assert state_of(before.run, tmp_path) == KEPT
    if what == "code":
        monkeypatch.setattr(stamp, "code_digest", lambda: "other")
    elif what == "versions":
        monkeypatch.setattr(stamp, "_versions", lambda: {"numpy": "9"})
    else:
        program.offer(one=["say", "changed"])
    (run,) = working.choose_runs([])
    assert state_of(run, tmp_path) == f"out of date ({what})"
    assert states(run_named(folder=tmp_path)) == {"one": NEW}
    assert len(program.calls) == 2


def test_what_was_made_while_the_code_changed_is_not_kept(program, tmp_path, monkeypatch):
    program.offer(one=["say", "first"])
    digests = iter("ab")
    monkeypatch.setattr(stamp, "code_digest", lambda: next(digests))
    (outcome,) = run_named(folder=tmp_path)
    assert (outcome.state, outcome.said) == (FAILED, "the code or a library was changed while it ran")
    assert not (tmp_path / "one.json").exists()


def test_a_result_that_was_cut_short_is_made_again(program, tmp_path):
    program.offer(one=["say", "first"])
    (outcome,) = run_named(folder=tmp_path)
    place = tmp_path / "one.json"
    place.write_bytes(place.read_bytes()[:-30])
    assert state_of(outcome.run, tmp_path) == "none"
    assert states(run_named(folder=tmp_path)) == {"one": NEW}


def test_a_run_that_fails_is_told_and_the_others_go_on(program, tmp_path, capsys):
    extras = Run("two", ("fail", "3"), "a run", 1, needs=("gguf", "hub"))
    program.offer_runs(Run("one", ("fail", "1"), "a run", 1), extras, Run("three", ("say", "x"), "a run", 1))
    first, second, third = run_named(folder=tmp_path)
    assert (first.state, second.state, third.state) == (FAILED, NOT_RUN, NEW)
    assert first.said == "code 1, after a line of fail / a last line"
    assert first.report is None
    assert second.said.endswith('It needs: pip install "sinkscope[gguf,hub]".')
    assert "sinkscope: one failed, 0 s: code 1, after" in capsys.readouterr().err
    assert not (tmp_path / "one.json").exists()
    run_named(folder=tmp_path)
    assert program.calls == ["fail 1", "fail 3", "say x", "fail 1", "fail 3"]


def test_a_run_that_ends_well_without_a_report_has_failed(program, tmp_path):
    (program.place / "__main__.py").write_text("print('nothing')")
    program.offer(one=["say", "x"])
    (outcome,) = run_named(folder=tmp_path)
    assert (outcome.state, outcome.said) == (FAILED, "no report, after nothing")


def stop_at(words):
    """A progress that is interrupted from the keyboard once the program has begun its work."""

    def tell(what, done, total):
        if words in what and any(place.exists() for place in tell.watched()):
            raise KeyboardInterrupt

    return tell


def test_a_stop_keeps_what_is_done_and_the_run_goes_on_where_it_was(program, tmp_path):
    program.offer(one=["say", "first"], two=["step", "{keep}"], three=["say", "x"])
    tell = stop_at("two, usually")
    tell.watched = lambda: (tmp_path / "unfinished").glob("two-*/half")
    with pytest.raises(Interrupted, match="the results of 1 run of 3 are kept: the same command goes on"):
        run_named(progress=tell, folder=tmp_path)
    (half,) = tell.watched()
    with pytest.raises(ProcessLookupError):
        os.kill(int(half.read_text()), 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "one.json", "one.log", "unfinished"]
    outcomes = run_named(folder=tmp_path)
    assert states(outcomes) == {"one": KEPT, "two": NEW, "three": NEW}
    assert said(outcomes[1]) == "whole"
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_what_a_run_has_kept_for_itself_is_not_used_by_other_code(program, tmp_path, monkeypatch):
    program.offer(two=["step", "{keep}"])
    tell = stop_at("two, usually")
    tell.watched = lambda: (tmp_path / "unfinished").glob("two-*/half")
    for digest in ("this", "that"):
        monkeypatch.setattr(stamp, "code_digest", lambda digest=digest: digest)
        with pytest.raises(Interrupted):
            run_named(progress=tell, folder=tmp_path)
        assert len(list(tell.watched())) == 1
    assert len(program.calls) == 2
    with pytest.raises(Interrupted):
        run_named(progress=tell, fresh=True, folder=tmp_path)


def test_two_processes_do_a_run_once(program, tmp_path, capsys):
    program.offer(one=["slow", "first"])
    found = []
    threads = [threading.Thread(target=lambda: found.extend(run_named(folder=tmp_path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.state for one in found) == [KEPT, NEW]
    assert found[0].report == found[1].report
    assert program.calls == ["slow first"]
    assert "sinkscope: one waits for another process that is at work in" in capsys.readouterr().err


def test_what_is_kept_is_taken_while_another_process_is_at_work(program, tmp_path):
    program.offer(one=["say", "first"])
    run_named(folder=tmp_path)
    with alone(tmp_path, lambda: None):
        assert states(run_named(folder=tmp_path)) == {"one": KEPT}


def test_a_process_has_the_users_own_settings(program, tmp_path, monkeypatch):
    from validation import running

    monkeypatch.setattr(running, "_SET", {"OPENBLAS_NUM_THREADS": "1"})
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    program.offer(one=["say", "x"])
    (outcome,) = run_named(folder=tmp_path)
    assert outcome.report["provenance"] == {"OPENBLAS_NUM_THREADS": "", "OMP_WAIT_POLICY": "ACTIVE"}


def test_large_tables_are_left_out(program, tmp_path):
    program.offer_runs(Run("one", ("say", "x"), "a run", 1, leave_out=("large",)))
    (outcome,) = run_named(folder=tmp_path)
    assert [part["key"] for part in outcome.report["parts"]] == ["said"]


def test_an_unknown_name_and_a_place_that_cannot_be_are_refused_before_any_work(program, tmp_path):
    program.offer(one=["say", "x"])
    with pytest.raises(InputError, match="NAME: expected some of one; found 'two'"):
        run_named(["one", "two"], silent, folder=tmp_path)
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "folder", Path("a\0b")):
        with pytest.raises(
            InputError, match="the folder of results: expected one that can be written to; found"
        ):
            run_named(folder=place)
    assert program.calls == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(program, tmp_path):
    tmp_path.chmod(0o500)
    program.offer(one=["say", "x"])
    with pytest.raises(InputError, match="Permission denied"):
        run_named(folder=tmp_path)


def test_a_run_whose_check_fails_keeps_its_report_and_has_failed(program, tmp_path):
    program.offer(one=["doubt", "x"])
    for _ in range(2):
        (outcome,) = run_named(folder=tmp_path)
        assert (outcome.state, outcome.said) == (FAILED, "1 check failed (sums)")
        assert outcome.report["parts"][-1]["found"] == "2"
    assert program.calls == ["doubt x"]


def test_an_outcome_has_the_stamp_of_its_making(program, tmp_path):
    program.offer(one=["say", "x"])
    (made,) = run_named(folder=tmp_path)
    (kept,) = run_named(folder=tmp_path)
    assert made.stamp == kept.stamp == json.loads((tmp_path / "one.json").read_text())["stamp"]
