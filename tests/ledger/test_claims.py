"""Reading claims.toml: what is refused, and what every row must have."""

import tomllib

import pytest
from wording import refused

from validation.claims import _FILE, figure, read_claims
from validation.ledger.judges import JUDGES
from validation.ledger.judging import check_claims, runs_of

CLAIMS = read_claims()
WHOLE = """
[source.x]
part = "A"
title = "a paper"

[[claim]]
id = "one"
source = "x"
says = "so"
figures = [{ key = "k", name = "n", value = 2 }, { key = "c", name = "m", count = 1, of = 4 }]
model = "theirs"
rule = "Holds if within {within:.1f}."
given = { within = 0.25 }
judge = "port"
runs = ["validate"]
here = ["ours"]
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "claims.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_claim_is_read_with_its_figures_and_the_numbers_of_its_rule(written):
    (claim,) = read_claims(written(WHOLE))
    assert (claim.id, claim.source.part, claim.source.title) == ("one", "A", "a paper")
    assert (claim.figure("k").value, claim.figure("c").value) == (2.0, 0.25)
    assert (claim.figure("c").count, claim.figure("c").of) == (1, 4)
    assert claim.rule == "Holds if within 0.2."
    assert claim.number("within") == 0.25
    assert (claim.runs, claim.here, claim.needs) == (("validate",), ("ours",), "")
    with pytest.raises(LookupError, match="no figure 'other'"):
        claim.figure("other")
    with pytest.raises(LookupError, match="no 'other'"):
        claim.number("other")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id = "one"\n', "", "claim without an id: no id"),
        ('rule = "Holds if within {within:.1f}."\n', "", "claim one: no rule"),
        ('rule = "Holds if within {within:.1f}."', 'rule = ""', "claim one: no rule"),
        ("given = { within = 0.25 }\n", "", "a rule with 'within', which `given` lacks"),
        ('judge = "port"\n', "", "claim one: no judge"),
        ('source = "x"', 'source = "y"', "source 'y', which is not described"),
        ('part = "A"', 'part = "C"', "source x"),
        ('runs = ["validate"]\n', "", "neither runs nor a command, or both"),
        ('runs = ["validate"]\n', 'runs = ["validate"]\ncommand = "sinkscope"\n', "neither runs nor"),
        ('here = ["ours"]', 'here = ["ours"]\nverdict = "holds"', "claim one: verdict, which nobody reads"),
        ("value = 2", "value = 2, count = 1", "claim one: a figure"),
        ("of = 4", "of = 0", "claim one: a figure"),
        ('key = "c"', 'key = "k"', "figures that come twice: k"),
        ('[source.x]\npart = "A"', 'title = "top"\n[source.x]\npart = "A"', "title at the top"),
        ('says = "so"', "says = so", "Invalid value"),
    ],
)
def test_a_wrong_file_is_refused_with_the_claim_and_the_entry(written, old, new, said):
    assert old in WHOLE
    with refused("claims.toml", said, "Mend the file."):
        read_claims(written(WHOLE.replace(old, new, 1)))


SHARED = """
[criterion.c]
rule = "In both of {two}."
given = { two = 2 }
needs = "another model"
"""


def test_a_criterion_gives_its_words_and_numbers_to_every_claim_that_names_it(written):
    text = SHARED + WHOLE.replace('judge = "port"', 'criterion = "c"\njudge = "port"')
    (claim,) = read_claims(written(text))
    assert claim.rule == "Holds if within 0.2. In both of 2."
    assert (claim.number("two"), claim.number("within"), claim.needs) == (2, 0.25, "another model")
    (claim,) = read_claims(written(text + 'needs = "its own"\n'))
    assert claim.needs == "its own"
    (claim,) = read_claims(written(SHARED + WHOLE))
    assert (claim.rule, claim.needs) == ("Holds if within 0.2.", "")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('criterion = "c"', 'criterion = "d"', "claim one: criterion 'd', which is not described"),
        ("{ two = 2 }", "{ two = 2, within = 1 }", "claim one: within, which its criterion gives"),
        ('rule = "In both of {two}."\n', "", "criterion c"),
        ('needs = "another model"', 'verdict = "holds"', "criterion c"),
        ("{ two = 2 }", "{ three = 3 }", "a rule with 'two', which `given` lacks"),
    ],
)
def test_a_wrong_criterion_is_refused(written, old, new, said):
    text = SHARED + WHOLE.replace('judge = "port"', 'criterion = "c"\njudge = "port"')
    assert old in text
    with refused("claims.toml", said, "Mend the file."):
        read_claims(written(text.replace(old, new, 1)))


def test_an_id_that_comes_twice_is_refused(written):
    again = WHOLE[WHOLE.index("[[claim]]") :].replace('"k"', '"k2"').replace('"c"', '"c2"')
    with refused("claims.toml", "claims that come twice: one"):
        read_claims(written(WHOLE + again))


def test_a_missing_file_is_refused(tmp_path):
    with refused("claims.toml", "No such file"):
        read_claims(tmp_path / "claims.toml")


def test_an_unknown_judge_and_an_unknown_run_are_refused(written):
    (claim,) = read_claims(written(WHOLE.replace('"port"', '"nobody"')))
    with refused("claim one", "a judge from", "'nobody'"):
        check_claims([claim], ["validate"])
    (claim,) = read_claims(written(WHOLE.replace('["validate"]', '["other"]')))
    with refused("claim one", "runs from validate", "'other'"):
        check_claims([claim], ["validate"])


def test_every_judge_is_one_that_a_claim_names():
    assert {claim.judge for claim in CLAIMS} == JUDGES.keys()


def test_verdicts_stand_in_no_file_that_people_write():
    data = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    assert not {"found", "floor", "verdict"} & {key for claim in data["claim"] for key in claim}


def test_a_figure_is_had_by_its_key():
    assert figure("hundredfold").value == 100
    assert figure("worse_value_norm").count == 31
    with refused("claims.toml", "no published figure 'none'"):
        figure("none")


@pytest.mark.parametrize("text", ["", "# nothing but words\n", "claim = []\n"])
def test_a_file_without_claims_is_said_to_hold_none(written, text):
    with refused("claims.toml", "found no claims in it", "Mend the file"):
        read_claims(written(text))


def test_runs_are_named_once():
    names = runs_of(CLAIMS)
    assert len(set(names)) == len(names)
    assert names[0] == "validate"
    assert runs_of([]) == ()
