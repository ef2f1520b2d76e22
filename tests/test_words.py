from __future__ import annotations

import math
import time

import naive
import numpy as np
import pytest
from oracle_models import letter_tokenizer, random_model, random_rows
from wording import refused

from oracle import (
    InputTypeError,
    Unit,
    forward,
    group_words,
    merge_words,
    open_merged_rows,
    open_rows,
    sink_share,
    weighted_rows,
)

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')


@pytest.fixture(scope="module")
def model():
    return random_model(tokenizer=letter_tokenizer(), max_positions=211)


def units_of(model, text, sink="special"):
    return group_words(forward(model, text, sink=sink, keep=()))


def described(units):
    """Labels of the units between the outer special tokens, with a mark on what is no word."""
    marks = {"word": "", "punctuation": "~", "sink": "@"}
    return [marks[unit.kind] + unit.label for unit in units][1:-1]


# --- grouping -------------------------------------------------------------------------------------


def test_units_cover_every_token_once_and_in_order(model):
    trace = forward(model, "The doctor, who couldn't (really!) wait...", keep=())
    units = group_words(trace)
    assert [token for unit in units for token in unit.tokens] == list(range(len(trace.tokens)))
    assert units[0] == Unit("[CLS]", "sink", (0,))
    assert units[-1] == Unit("[SEP]", "sink", (len(trace.tokens) - 1,))
    assert described(units) == [
        "The",
        "doctor",
        "~,",
        "who",
        "couldn't",
        "~(",
        "really",
        "~!)",
        "wait",
        "~...",
    ]
    assert units[5] == Unit("couldn't", "word", tuple(range(14, 22)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("   ", []),
        ("...!!!", ["~...!!!"]),
        ("don't", ["don't"]),
        ("'tis well-known.", ["~'", "tis", "well-known", "~."]),
        ("a\tb\n\nc", ["a", "b", "c"]),
        ("“quoted” — dash", ["~“", "quoted", "~”", "~—", "dash"]),
        ("$5 is €5", ["~$", "5", "is", "€5"]),
        ("x" * 130, ["x" * 130]),
    ],
)
def test_words_are_runs_without_white_space_and_without_outer_punctuation(model, text, expected):
    assert described(units_of(model, text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("😀", ["😀"]),
        ("😀😀 😀!", ["😀😀", "😀", "~!"]),
        ("👍🏽 👩\u200d🚀", ["👍🏽", "👩\u200d🚀"]),
        ("#\ufe0f\u20e3 a", ["#\ufe0f\u20e3", "a"]),
        ("\u203c\ufe0f a", ["\u203c\ufe0f", "a"]),
        ("# a", ["~#", "a"]),
        ("\u203c a", ["~\u203c", "a"]),
    ],
)
def test_an_emoji_is_a_word(model, text, expected):
    assert described(units_of(model, text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cafe\u0301!", ["cafe\u0301", "~!"]),
        ("ok!\u0301 b", ["ok", "~!\u0301", "b"]),
        ("a\u200db c", ["a\u200db", "c"]),
        ("ab\u200b. c", ["ab\u200b", "~.", "c"]),
        ('\ufeff"a" b', ['~\ufeff"', "a", '~"', "b"]),
        ("\u200d", []),
        ("a \u200d b", ["a", "b"]),
    ],
)
def test_marks_and_joiners_go_with_the_character_before_them(model, text, expected):
    assert described(units_of(model, text)) == expected


def test_a_script_without_white_space_is_one_word_up_to_its_outer_punctuation(model):
    units = units_of(model, "你好，世界。 ab")
    assert described(units) == ["你好，世界", "~。", "ab"]
    assert units[1].tokens == (1, 2, 3, 4, 5)


def test_a_special_token_that_the_writer_typed_is_a_sink_and_parts_words(model):
    assert described(units_of(model, "ab [SEP] c")) == ["ab", "@[SEP]", "c"]
    units = units_of(model, "ab.[SEP]c")
    assert described(units) == ["ab", "~.", "@[SEP]", "c"]
    assert [unit.tokens for unit in units] == [(0,), (1, 2), (3,), (4,), (5,), (6,)]


def test_sinks_of_the_users_own_are_units_by_themselves(model):
    assert [unit.kind for unit in units_of(model, "ab c", sink="first")] == [
        "sink",
        "word",
        "word",
        "punctuation",
    ]
    units = units_of(model, "abc d", sink="1")
    assert [(unit.label, unit.kind) for unit in units[1:4]] == [("a", "sink"), ("bc", "word"), ("d", "word")]


def test_special_tokens_that_are_no_sink_are_no_word(model):
    assert [unit.kind for unit in units_of(model, "ab", sink="none")] == [
        "punctuation",
        "word",
        "punctuation",
    ]


def test_padding_belongs_to_no_unit(model):
    mask = [False, True, True, True, True]
    trace = forward(model, "a bc", keep=(), mask=mask)
    assert [token for unit in group_words(trace) for token in unit.tokens] == [1, 2, 3, 4]


def test_a_trace_of_ids_has_no_words(model):
    with refused("trace", "a trace of a string", "token ids"):
        group_words(forward(model, [2, 9, 3], keep=()))


# --- merging --------------------------------------------------------------------------------------

GROUPS = [(0,), (1, 2), (3,), (6, 4)]


@pytest.fixture
def rng():
    return np.random.default_rng(41)


def test_merging_against_the_definition(rng):
    weights = rng.uniform(0, 5, (2, 3, 7, 7))
    merged = merge_words(weights, GROUPS)
    assert merged.shape == (2, 3, 4, 4)
    for layer, head in np.ndindex(2, 3):
        np.testing.assert_allclose(merged[layer, head], naive.merge(weights[layer, head], GROUPS), rtol=1e-14)


def test_merged_rows_of_all_tokens_still_sum_to_one(rng):
    merged = merge_words(random_rows(rng, 2, 3, 7, 7), [(0, 1), (2,), (3, 4, 5), (6,)])
    np.testing.assert_allclose(merged.sum(axis=-1), 1, rtol=1e-14)


def test_single_pieces_change_nothing(rng):
    weights = rng.uniform(0, 5, (3, 7, 7))
    np.testing.assert_array_equal(merge_words(weights, [(i,) for i in range(7)]), weights)


def test_normalising_pieces_first_is_another_number():
    weights = np.array([[8.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    groups = [(0, 1), (2,)]
    merged = merge_words(weights, groups)
    normalised_first = merge_words(weights / weights.sum(axis=-1, keepdims=True), groups)
    assert merged[0, 1] / merged[0].sum() == pytest.approx(0.25 / 4.5)
    assert normalised_first[0, 1] == 0.25


@pytest.mark.parametrize(
    ("given", "wide"), [("float16", "float64"), ("float32", "float64"), ("longdouble", "longdouble")]
)
def test_merged_dtype(given, wide):
    assert merge_words(np.ones((3, 3), given), [(0, 1), (2,)]).dtype == wide
    assert merge_words(np.ones((3, 3), given), []).dtype == wide


def test_merging_reads_any_array_and_changes_none(rng):
    weights = rng.uniform(0, 5, (7, 7))
    before = weights.copy()
    weights.flags.writeable = False
    expected = merge_words(weights, GROUPS)
    np.testing.assert_array_equal(weights, before)
    for given in (torch.tensor(before), before.tolist(), np.repeat(before, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(merge_words(given, [list(group) for group in GROUPS]), expected)


def test_no_words_and_no_tokens():
    assert merge_words(np.ones((2, 3, 3)), []).shape == (2, 0, 0)
    assert merge_words(np.ones((2, 0, 0)), []).shape == (2, 0, 0)


@pytest.mark.parametrize("groups", [[()], [(0,), (3,)], [(-1,)], [(0.5,)], [0, 1], [[(0,)]], [[True, False]]])
def test_groups_that_are_no_positions_are_refused(groups):
    with refused("groups", "positions from 0 to 2"):
        merge_words(np.ones((3, 3)), groups)


@pytest.mark.parametrize("shape", [(3,), (3, 4), ()])
def test_weights_that_are_not_square_are_refused(shape):
    with refused("weights", "(..., token, token)", f"{shape}"):
        merge_words(np.ones(shape), [(0,)])


# --- the row that a viewer opens ------------------------------------------------------------------


def opened_by_hand(weights, units, layers):
    """The protocol as loops: for each word, its head, its link and the shares there; None without a row."""
    groups = [unit.tokens for unit in units]
    sinks = [unit.kind == "sink" for unit in units]
    words = [place for place, unit in enumerate(units) if unit.kind == "word"]
    merged = {
        name: {
            (layer, head): naive.merge(w[layer, head], groups)
            for layer in layers
            for head in range(w.shape[1])
        }
        for name, w in weights.items()
    }
    result = []
    for word in words:
        heads = {}
        for name, rows in merged.items():
            best = None
            for place, matrix in rows.items():
                content = math.fsum(x for x, sink in zip(matrix[word], sinks, strict=True) if not sink)
                for key in words:
                    if key != word and content > 0:
                        shown = matrix[word][key] / content
                        if best is None or shown > best[0]:
                            best = (shown, place, key)
            heads[name] = best
        if any(best is None for best in heads.values()):
            result.append(None)
            continue
        shown, place, key = heads["attention"]
        row = merged["attention"][place][word]
        result.append(
            {
                "word": units[word].label,
                "link": units[key].label,
                "weight": shown,
                "mass": row[key] / math.fsum(row),
                "heads": {name: best[1] for name, best in heads.items()},
                "shares": {name: naive.share(rows[place][word], sinks) for name, rows in merged.items()},
            }
        )
    return result


def assert_opened(opened, expected):
    found = [row for row in expected if row is not None]
    assert opened.undefined == len(expected) - len(found)
    assert opened.words == tuple(row["word"] for row in found)
    assert opened.links == tuple(row["link"] for row in found)
    np.testing.assert_allclose(opened.link_weight, [row["weight"] for row in found], rtol=1e-12)
    np.testing.assert_allclose(opened.link_mass, [row["mass"] for row in found], rtol=1e-12)
    for name in opened.heads:
        assert [tuple(pair) for pair in opened.heads[name].tolist()] == [row["heads"][name] for row in found]
        np.testing.assert_allclose(opened.shares[name], [row["shares"][name] for row in found], rtol=1e-12)


@pytest.mark.parametrize("layers", [[0], [1], [1, 0], [0, 1]])
def test_opened_rows_against_the_definition(model, layers):
    trace = forward(model, "The nurse, she can't go!")
    weights = {
        "attention": trace.attention,
        "value_norm": weighted_rows(trace.attention, trace.value_norm),
        "transformed_norm": weighted_rows(trace.attention, trace.transformed_norm),
    }
    units = group_words(trace)
    opened = open_rows(weights, units, layers)
    assert opened.words == ("The", "nurse", "she", "can't", "go")
    assert_opened(opened, opened_by_hand(weights, units, layers))
    assert ((opened.link_weight > 0) & (opened.link_weight <= 1)).all()
    assert (opened.link_mass <= opened.link_weight).all()


def merged_of(model, text):
    trace = forward(model, text)
    norms = {"attention": None, "value_norm": trace.value_norm}
    weights = {name: weighted_rows(trace.attention, norm) for name, norm in norms.items()}
    units = group_words(trace)
    return weights, {n: merge_words(w, [u.tokens for u in units]) for n, w in weights.items()}, units


def test_merged_rows_open_as_those_of_pieces_do(model):
    """The same bits; `layers` are the names of what stands on the first axis."""
    weights, merged, units = merged_of(model, "The nurse, she can't go!")
    whole, one = open_rows(weights, units, [0, 1]), open_rows(weights, units, [1])
    for opened, wanted, shift in (
        (open_merged_rows(merged, units, [4, 7]), whole, np.array([4, 7])),
        (open_merged_rows({n: w[1:] for n, w in merged.items()}, units, [1]), one, np.arange(2)),
    ):
        assert (opened.words, opened.links, opened.undefined) == (
            wanted.words,
            wanted.links,
            wanted.undefined,
        )
        np.testing.assert_array_equal(opened.link_weight, wanted.link_weight)
        np.testing.assert_array_equal(opened.link_mass, wanted.link_mass)
        for name in merged:
            np.testing.assert_array_equal(opened.shares[name], wanted.shares[name])
            np.testing.assert_array_equal(opened.heads[name][:, 0], shift[wanted.heads[name][:, 0]])
            np.testing.assert_array_equal(opened.heads[name][:, 1], wanted.heads[name][:, 1])


def test_merged_rows_that_do_not_fit_are_refused(model):
    _, merged, units = merged_of(model, "The nurse")
    with refused("merged", "(2 layers, head, 4 units, 4 units)", "found attention (2, 3, 3, 4)"):
        open_merged_rows({"attention": merged["attention"][:, :, 1:]}, units, [0, 1])
    with refused("merged", "(1 layers, head,"):
        open_merged_rows(merged, units, [0])
    with refused("merged", 'an entry "attention"', "found value_norm"):
        open_merged_rows({"value_norm": merged["value_norm"]}, units, [0, 1])
    with refused("layers", "rising", "[1, 0]"):
        open_merged_rows(merged, units, [1, 0])


@pytest.mark.timing
def test_a_long_text_opens_in_a_moment(model):
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 1, 12, 500, 500)
    units = [Unit(str(place), "word" if place else "sink", (place,)) for place in range(500)]
    start = time.perf_counter()
    open_merged_rows({"attention": rows}, units, [0])
    assert time.perf_counter() - start < 0.5


def test_the_share_of_a_row_is_that_of_its_head_when_words_are_single_tokens(model):
    trace = forward(model, "a b c d")
    opened = open_rows({"attention": trace.attention}, group_words(trace), [1])
    shares = sink_share(trace.attention, trace.sink_mask)
    for place, (layer, head) in enumerate(opened.heads["attention"]):
        assert opened.shares["attention"][place] == pytest.approx(shares[layer, head, place + 1], rel=1e-14)


UNITS = (
    Unit("[CLS]", "sink", (0,)),
    Unit("a", "word", (1,)),
    Unit("!", "punctuation", (2,)),
    Unit("b", "word", (3,)),
    Unit("c", "word", (4,)),
)


def test_ties_go_to_the_lowest_layer_head_and_key():
    opened = open_rows({"attention": np.full((3, 2, 5, 5), 0.2)}, UNITS, [2, 1])
    assert opened.heads["attention"].tolist() == [[1, 0]] * 3
    assert opened.links == ("b", "a", "a")
    assert (
        open_rows({"attention": np.full((3, 2, 5, 5), 0.2)}, UNITS, [0, 1]).heads["attention"].tolist()
        == [[0, 0]] * 3
    )


def test_self_and_punctuation_stay_in_the_row_but_are_no_link():
    rows = np.array([[0.5, 0.2, 0.2, 0.06, 0.04]] * 5)[None, None]
    opened = open_rows({"attention": rows}, UNITS, [0])
    assert opened.links == ("b", "a", "a")
    np.testing.assert_allclose(opened.link_weight, [0.06 / 0.5, 0.2 / 0.5, 0.2 / 0.5])
    np.testing.assert_allclose(opened.link_mass, [0.06, 0.2, 0.2])
    np.testing.assert_allclose(opened.shares["attention"], 0.5)


def test_rows_that_are_not_closed_give_the_same_links_and_masses():
    rows = random_rows(np.random.default_rng(43), 1, 2, 5, 5)
    closed, wide = (open_rows({"attention": factor * rows}, UNITS, [0]) for factor in (1, 1.004))
    for name in ("link_weight", "link_mass"):
        np.testing.assert_allclose(getattr(wide, name), getattr(closed, name), rtol=1e-14)


def test_a_word_whose_rows_are_all_sink_has_no_row_and_is_counted():
    rows = np.full((1, 2, 5, 5), 0.2)
    rows[:, :, 3] = [1, 0, 0, 0, 0]
    opened = open_rows({"attention": rows}, UNITS, [0])
    assert opened.words == ("a", "c")
    assert opened.undefined == 1


def test_a_head_without_content_or_without_mass_is_passed_over():
    rows = np.full((1, 3, 5, 5), 0.2)
    rows[0, 0, 1] = [1, 0, 0, 0, 0]
    rows[0, 1, 1] = np.nan
    opened = open_rows({"attention": rows}, UNITS, [0])
    assert opened.heads["attention"].tolist() == [[0, 2], [0, 0], [0, 0]]
    assert opened.undefined == 0


def test_a_weighting_without_mass_on_the_opened_head_has_no_share_there():
    rows = np.full((1, 2, 5, 5), 0.2)
    weighted = rows.copy()
    weighted[0, 0] = 0
    opened = open_rows({"attention": rows, "value_norm": weighted}, UNITS, [0])
    assert opened.heads["attention"].tolist() == [[0, 0]] * 3
    assert opened.heads["value_norm"].tolist() == [[0, 1]] * 3
    assert np.isnan(opened.shares["value_norm"]).all()
    np.testing.assert_allclose(opened.shares["attention"], 0.2)


@pytest.mark.parametrize("text", ["", "...!!!", "one", "[SEP] [SEP]", "ab!"])
def test_a_text_without_two_words_opens_no_row(model, text):
    trace = forward(model, text)
    units = group_words(trace)
    opened = open_rows({"attention": trace.attention}, units, [0, 1])
    assert opened.words == opened.links == ()
    assert opened.undefined == sum(unit.kind == "word" for unit in units)
    assert opened.link_weight.shape == opened.link_mass.shape == opened.shares["attention"].shape == (0,)
    assert opened.heads["attention"].shape == (0, 2)


def test_opening_rows_changes_no_input():
    rows = random_rows(np.random.default_rng(42), 2, 3, 5, 5)
    before = rows.copy()
    rows.flags.writeable = False
    first = open_rows({"attention": rows}, UNITS, (0, 1))
    second = open_rows({"attention": torch.tensor(before)}, UNITS, np.array([0, 1]))
    np.testing.assert_array_equal(first.link_weight, second.link_weight)
    np.testing.assert_array_equal(rows, before)


def test_attention_must_be_among_the_weightings():
    with refused("weights", 'an entry "attention"', "value_norm"):
        open_rows({"value_norm": np.ones((1, 1, 5, 5))}, UNITS, [0])
    with refused("weights", 'an entry "attention"', "nothing"):
        open_rows({}, UNITS, [0])


@pytest.mark.parametrize("shape", [(1, 5, 5), (2, 1, 5, 5), (1, 1, 4, 4)])
def test_weightings_of_different_shapes_are_refused(shape):
    with refused("weights", "one shape (layer, head, query, key)", f"value_norm {shape}"):
        open_rows({"attention": np.ones((1, 1, 5, 5)), "value_norm": np.ones(shape)}, UNITS, [0])
    with refused("weights"):
        open_rows({"attention": np.ones((5, 5))}, UNITS, [0])


@pytest.mark.parametrize("layers", [[], [2], [-1], [0, 5], [0.0], [True]])
def test_layers_that_are_not_there_are_refused(layers):
    with refused("layers", "from 0 to 1"):
        open_rows({"attention": np.full((2, 1, 5, 5), 0.2)}, UNITS, layers)


def test_layers_in_words_are_a_type_error():
    with refused("layers", error=InputTypeError):
        open_rows({"attention": np.full((2, 1, 5, 5), 0.2)}, UNITS, "0,1")


def test_units_of_another_text_are_refused():
    with refused("groups", "positions from 0 to 3"):
        open_rows({"attention": np.full((1, 1, 4, 4), 0.25)}, UNITS, [0])


@pytest.mark.parametrize("choice", ["neither", "sink", "word"])
def test_outer_punctuation_is_what_the_caller_says(model, choice):
    mark = {"neither": "~", "sink": "@", "word": ""}[choice]
    units = group_words(forward(model, "ab, (cd)", keep=()), punctuation=choice)
    assert described(units) == ["ab", f"{mark},", f"{mark}(", "cd", f"{mark})"]


def test_an_unknown_choice_of_punctuation_is_refused(model):
    with refused("punctuation", "neither or sink or word"):
        group_words(forward(model, "ab", keep=()), punctuation="none")


def test_a_group_that_names_a_position_twice_is_refused():
    with refused("groups", "each position once in a word", "[1, 1]"):
        merge_words(np.eye(3), [[0], [1, 1]])
