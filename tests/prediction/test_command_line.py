"""`sinkscope predict` as it is called, on MiniLM and a few short texts, and on a small model out of range."""

import json

import pytest
from text_models import small_model

from validation.audit.passages import load_passages
from validation.cli import main
from validation.prediction import command, frozen
from validation.prediction.frozen import FROZEN_SHA256

COMPILING = "sinkscope: compiling the fast path (first use) ...\n"
METRICS = ["cosine", "JSD", "root JSD", "Hellinger", "L1", "entropy", "Aitchison"]


@pytest.fixture
def call(capsys):
    """Runs the command in this process; (exit code, standard output, standard error)."""

    def run(*arguments):
        code = main(["predict", *(str(argument) for argument in arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err.replace(COMPILING, "")

    return run


@pytest.fixture
def texts(tmp_path):
    """A file with the beginnings of six passages."""
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(" ".join(text.split()[:24]) for text in load_passages()[:6]) + "\n")
    return path


def parts(path):
    document = json.loads(path.read_text())
    tables = {part["key"]: part["rows"] for part in document["parts"] if part["kind"] == "table"}
    return document["provenance"], tables


def test_minilm_is_predicted_and_then_observed(call, texts, tmp_path):
    out = tmp_path / "prediction.json"
    code, shown, err = call("--file", texts, "--layers", "2-3", "--json", out)
    assert (code, err) == (0, "")
    about, tables = parts(out)
    assert about["frozen_sha256"] == FROZEN_SHA256
    assert (about["sink"], about["convention"], about["layers"]) == ("special", "keep against drop", "2-3")
    assert len(about["T"]) == 6
    rows = tables["prediction_details"]
    assert [row["metric"] for row in rows] == METRICS
    for row in rows:
        assert row["triples"] == 24 * 23 * 22 // 2
        within = abs(row["observed"] - row["predicted"]) <= row["tolerance"]
        withheld = row["predicted"] <= max(row["floor_keep_high"], row["tolerance"])
        assert row["verdict"] == ("abstained" if withheld else "confirmed" if within else "failed")
        assert bool(row["why_not"]) == withheld
        assert 0 <= row["law"] < 0.6
    assert len({row["verdict"] for row in rows}) > 1
    assert {row["inside"] for row in tables["statistics"]} == {"yes"}
    words = " ".join(shown.split())
    assert "fitted on this very model" in words
    assert f"SHA-256 {FROZEN_SHA256[:16]}" in words
    assert "6 texts, T" in words
    assert "sink set [CLS], [SEP]" in words


def test_a_model_out_of_range_is_abstained_from(call, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "load", lambda *_: small_model())
    out = tmp_path / "prediction.json"
    code, shown, err = call(
        "--text", "the doctor saw the nurse", "--text", "she saw a donkey sleep .", "--json", out
    )
    assert (code, err) == (0, "")
    assert "7 abstained" in " ".join(shown.split())
    assert "fitted on this very model" not in " ".join(shown.split())
    _, tables = parts(out)
    assert all("content_keys" in row["why_not"] for row in tables["prediction_details"])
    assert {row["statistic"]: row["inside"] for row in tables["statistics"]}[
        "n, content keys of a row"
    ] == "no"


def test_a_changed_predictor_is_refused_before_a_model_is_loaded(call, monkeypatch):
    monkeypatch.setattr(command, "load", lambda *_: pytest.fail("a model was loaded"))
    shipped = frozen._bytes(None)
    monkeypatch.setattr(
        frozen, "_bytes", lambda _: shipped.replace(b'"tolerance": 0.08', b'"tolerance": 0.8')
    )
    code, shown, err = call("--text", "a")
    assert (code, shown) == (2, "")
    assert "predictor: expected the frozen file" in err
    assert err.count("\n") == 1


def test_without_texts_the_passages_are_taken(call, monkeypatch):
    seen = []

    def predict_texts(name, texts, **_):
        seen.append((name, texts.source, len(texts.texts)))
        raise SystemExit(0)

    monkeypatch.setattr(command, "predict_texts", predict_texts)
    assert call()[0] == 0
    assert seen == [("minilm-l6", "the bundled passages", 20)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--text", "a", "--file", "b"), "--text and --file: expected one of the two"),
        (("--text", "a", "--layers", "9"), "layers: expected layers from 0 to 1"),
        (("--text", "a", "--engine", "torch"), "engine: expected oracle or fastpath"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_two(call, monkeypatch, arguments, message):
    monkeypatch.setattr(command, "load", lambda *_: small_model())
    code, shown, err = call(*arguments)
    assert (code, shown) == (2, "")
    assert message in err
    assert err.count("\n") == 1
