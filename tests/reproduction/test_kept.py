"""Results as files: what is read is what was written, or nothing."""

from __future__ import annotations

import pytest

from oracle import InputError
from validation.reproduction.kept import Kept, load_result, read_kept, write_kept
from validation.reproduction.runs import read_runs

RUN = read_runs()[0]


def test_a_result_comes_back_as_it_was(tmp_path, report):
    kept = Kept({"code": "abc"}, 12.3, report)
    write_kept(RUN, tmp_path / "new" / "folder", kept)
    assert read_kept(RUN, tmp_path / "new" / "folder") == kept
    assert load_result(RUN.name, tmp_path / "new" / "folder") == report


def test_a_row_has_a_line_of_its_own(tmp_path, report):
    write_kept(RUN, tmp_path, Kept({}, 1, report))
    lines = (tmp_path / f"{RUN.name}.json").read_text().splitlines()
    assert '{"metric":"cosine","flips":0.27,"n":1200},' in lines


def spoil_end(text):
    return text[:-20]


def spoil_figure(text):
    return text.replace("0.27", "0.28")


def spoil_name(text):
    return text.replace('"run":"validate"', '"run":"bench"')


def spoil_shape(text):
    return "[]"


@pytest.mark.parametrize("spoil", [spoil_end, spoil_figure, spoil_name, spoil_shape, str.upper])
def test_a_file_that_is_not_what_was_written_is_no_result(tmp_path, report, spoil):
    write_kept(RUN, tmp_path, Kept({}, 1, report))
    place = tmp_path / f"{RUN.name}.json"
    changed = spoil(place.read_text())
    assert changed != place.read_text()
    place.write_text(changed)
    assert read_kept(RUN, tmp_path) is None
    with pytest.raises(InputError, match="found a file that is not what was written"):
        load_result(RUN.name, tmp_path)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match=r"the result of bench: expected bench\.json .* found none"):
        load_result("bench", tmp_path)
    with pytest.raises(InputError, match="NAME: expected some of validate"):
        load_result("nothing", tmp_path)


def test_a_place_that_cannot_be_written_is_refused(tmp_path, report):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--out: expected a folder that can be written to"):
        write_kept(RUN, tmp_path / "file" / "folder", Kept({}, 1, report))
