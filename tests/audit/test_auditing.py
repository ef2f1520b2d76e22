"""What an audit says of rows whose answer is known, of what is missing in them, and of a real model."""

import re
from dataclasses import replace

import numpy as np
import pytest
from audit_rows import one_sink_share, only_the_sink_differs, pure_noise, sink_and_content_apart, with_sink
from text_models import by_key, small_model, width

import oracle
from oracle import InputError
from oracle.distances import METRICS
from validation.audit import audit, audit_arrays
from validation.audit.flips import ALL, MARGIN, WITHIN
from validation.audit.passages import load_passages
from validation.audit.rule import CANNOT_SAY, DEPENDS, SAFE, SINK_ALONE
from validation.metric_names import metric_name
from validation.report.document import Check, Note, Table
from validation.studies.invariances import invariance_table

LAYOUT = "batch layer head query key"
COMPARED = [metric for metric in METRICS if metric != "aitchison_sink"]


def audited(rows, **others):
    return audit_arrays(rows, **{"sink": "0", "layout": LAYOUT, **others})


def tables(found):
    return by_key(part for part in found.parts if isinstance(part, Table))


def notes(found, key):
    return [part.text for part in found.parts if isinstance(part, Note) and part.key == key]


def rates(found, scope=ALL):
    return {metric: flips[scope].rate for metric, flips in found.analysis.flips.items()}


def verdicts(found, scope=ALL):
    return {found.analysis.verdict(metric, scope) for metric in COMPARED}


# Rows with a known answer


def test_heads_that_differ_in_their_sink_alone_are_said_to():
    found = audited(only_the_sink_differs())
    for scope in (ALL, WITHIN, MARGIN, 0, 1):
        assert verdicts(found, scope) <= {SINK_ALONE} | ({CANNOT_SAY} if scope == MARGIN else set())
    assert {record["verdict"] for record in tables(found)["verdicts"].records()} == {SINK_ALONE}
    assert all("the heads differ in their sink alone" in said for said in notes(found, "closing"))
    (part,) = [note for note in tables(found)["distances"].notes if "is the sink's" in note]
    assert ">99.9% is the sink's" in part or "100.0% is the sink's" in part
    assert {cell for row in tables(found)["safety_map"].rows for cell in row[1:]} == {"sink"}


def test_nothing_stands_above_its_floor_in_pure_noise():
    for seed in range(3):
        found = audited(pure_noise(seed))
        for scope in (ALL, WITHIN, MARGIN, 0, 1):
            assert DEPENDS not in verdicts(found, scope)
        floors = [floor[ALL].median for floor in found.analysis.floors.values()]
        assert min(floors) > 0.35  # half the verdicts, less what the anchors have in common
        assert not any("depend on the sink" in said for said in notes(found, "closing"))


def test_one_and_the_same_sink_share_flips_only_what_it_can():
    flips = rates(audited(one_sink_share()))
    assert [flips[metric] for metric in ("jsd", "root_jsd", "hellinger", "l1", "entropy")] == [0] * 5
    assert flips["cosine"] > 0
    assert flips["aitchison"] > 0


def test_sinks_that_contradict_the_content_are_found():
    found = audited(sink_and_content_apart())
    assert verdicts(found) == {DEPENDS}
    said = dict(zip(COMPARED, notes(found, "closing"), strict=True))
    assert said["jsd"].startswith("JSD: ")
    assert "depend on the sink. Within a layer: depends in layers 0-1." in said["jsd"]
    for words in ("6 texts", "T 7", "36 rows of each of 16 heads", "content queries", "sink set position 0"):
        assert words in said["jsd"]


def test_safe_is_what_the_sink_does_not_change():
    rows = one_sink_share()
    rows[..., 0] = 1e-4  # hardly any sink, so hardly any difference
    rows /= rows.sum(axis=-1, keepdims=True)
    found = audited(rows)
    assert verdicts(found) - {DEPENDS, CANNOT_SAY} == {SAFE}  # the entropy is too noisy for an answer
    assert found.analysis.verdict("jsd", ALL) == SAFE
    assert "no more than other texts would" in notes(found, "closing")[COMPARED.index("jsd")]


def test_a_single_layer_among_safe_ones_is_named():
    apart = sink_and_content_apart()
    rows = with_sink(0.4, apart[..., 1:])
    rows[:, 1] = apart[:, 1]
    found = audited(rows)
    assert found.analysis.verdict("jsd", 0) == SAFE
    assert found.analysis.verdict("jsd", 1) == DEPENDS
    said = notes(found, "closing")[COMPARED.index("jsd")]
    assert "Within a layer: depends in layer 1, safe in layer 0." in said


# What stands in the tables


def test_every_number_is_the_definitions():
    rows = sink_and_content_apart()
    found = audited(rows)
    masks = np.arange(7) == 0
    every = [text.reshape(16, 7, 7)[:, 1:] for text in rows]
    for metric in COMPARED:
        keep, drop = (
            oracle.head_distances(every, masks, metric, convention) for convention in ("keep", "drop")
        )
        layers = np.repeat([0, 1], 8)
        wanted = {
            ALL: oracle.verdict_flips(keep, drop),
            WITHIN: oracle.verdict_flips(keep, drop, groups=layers),
            MARGIN: oracle.verdict_flips(keep, drop, margin=0.1),
            1: oracle.verdict_flips(keep[8:, 8:], drop[8:, 8:]),
        }
        for scope, expected in wanted.items():
            got = found.analysis.flips[metric][scope]
            assert got[:1] + got[2:] == expected[:1] + expected[2:], (metric, scope)
            assert np.array_equal(got.per_anchor, expected.per_anchor), (metric, scope)
        record = tables(found)["verdicts"].records()[COMPARED.index(metric)]
        assert record["metric"] == metric_name(metric)
        assert record["flips"] == wanted[ALL].rate
        assert record["law"] == pytest.approx(oracle.gaussian_flip_rate(keep, drop).mean())
        assert record["floor_keep_low"] <= record["floor_keep"] <= record["floor_keep_high"]
        anchors = tables(found)["anchors"].records()[COMPARED.index(metric)]
        assert anchors["worst"] == wanted[ALL].per_anchor.max()
        worst = int(wanted[ALL].per_anchor.argmax())
        assert anchors["worst_head"] == f"L{worst // 8} H{worst % 8}"
        counts = tables(found)["verdict_counts"].records()[3 * COMPARED.index(metric)]
        assert (counts["triples"], counts["undefined"]) == (16 * 105, 0)


def test_the_floor_is_the_flips_between_halves_of_the_texts():
    rows = sink_and_content_apart(texts=8)
    floor = audited(rows, seed=3).analysis.floors["jsd", "drop"][ALL]
    masks = np.arange(7) == 0
    every = [text.reshape(16, 7, 7)[:, 1:] for text in rows]
    from validation.audit.halves import text_halves

    wanted = [
        oracle.verdict_flips(
            *(oracle.head_distances([every[text] for text in half], masks, "jsd", "drop") for half in pair)
        ).rate
        for pair in text_halves(8, 20, 3)
    ]
    assert np.allclose(floor.rates, wanted, rtol=0, atol=2e-3)  # other sums: a near tie may fall otherwise
    assert floor.median == pytest.approx(np.median(wanted), abs=2e-3)
    assert (audited(rows).analysis.floors["jsd", "drop"][ALL].rates != floor.rates).any()


def test_metrics_stand_against_each_other_with_their_floors():
    found = audited(sink_and_content_apart())
    square = tables(found)["between_drop"]
    jsd, cosine = found.distances.mean("jsd", "drop"), found.distances.mean("cosine", "drop")
    assert square.records()[0]["jsd"] == oracle.verdict_flips(cosine, jsd).rate
    assert square.records()[1]["jsd"] == found.analysis.floors["jsd", "drop"][ALL].median
    assert "aitchison_sink" not in {column.key for column in square.columns}
    listed = [part for part in found.parts if isinstance(part, Table) and part.key == "between"]
    assert len(listed[0].rows) == 8 * 7 // 2 + 7 * 6 // 2


def test_map_tables_and_sentences_show_the_same_floors():
    found = audited(sink_and_content_apart())
    flips, floors = found.analysis.flips["l1"], found.analysis.floors
    ends = {scope: max(floors["l1", c][scope].high for c in ("keep", "drop")) for scope in (ALL, WITHIN, 1)}
    place = COMPARED.index("l1")
    cells = {row[0]: row[1 + place] for row in tables(found)["safety_map"].rows}
    for scope, end in ends.items():
        shown, floor = cells[str(scope)].split(">")
        assert float(shown) == pytest.approx(100 * flips[scope].rate, abs=0.5)
        assert float(floor) == pytest.approx(100 * end, abs=0.51 if end >= 0.0995 else 0.051)
    for key, scope in (("verdicts", ALL), ("verdicts_within", WITHIN), ("verdicts_margin", MARGIN)):
        record = tables(found)[key].records()[place]
        for convention in ("keep", "drop"):
            floor = floors["l1", convention][scope]
            cell = [record[f"floor_{convention}{end}"] for end in ("", "_low", "_high")]
            assert cell == [floor.median, floor.low, floor.high]
    (listed,) = [
        record
        for record in tables(found)["safety"].records()
        if (record["metric"], record["scope"]) == ("l1", "layer 1")
    ]
    assert (listed["floor_drop"], listed["flips"]) == (floors["l1", "drop"][1].median, flips[1].rate)
    assert (listed["verdict"], listed["triples"]) == (DEPENDS, 168)
    said = notes(found, "closing")[place]
    assert said.startswith(f"L1: {flips[ALL].rate:.1%} of 1,680 verdicts")
    assert f"{max(floors['l1', c][ALL].median for c in ('keep', 'drop')):.1%} flip (median of 10" in said
    assert f"{ends[ALL]:.1%} at most" in said


def without_context(parts, *words):
    """Shown tables and closing sentences without one of the words that must stand with every figure."""
    said = {part.key: part.notes for part in parts if isinstance(part, Table) and part.shown}
    closing = [part for part in parts if isinstance(part, Note) and re.match("closing|clustering_", part.key)]
    said |= {f"{part.key}: {part.text}": (part.text,) for part in closing}
    return [key for key, notes in said.items() if not all(word in " ".join(notes) for word in words)]


def test_tables_of_texts_and_of_invariances_say_what_they_are_of():
    texts = ["The doctor saw the nurse.", "A donkey sleeps!", "She walks."]
    found = audit(small_model(), texts, cluster="jsd")
    words = (
        "3 texts",
        "T ",
        "rows of each of 6 heads",
        "content queries",
        "sink set [CLS], [SEP]",
        "undefined",
    )
    assert not without_context(found.parts, *words)
    study = invariance_table(small_model(), texts)
    assert not without_context(study, "3 texts", "T ", "pairs of rows", "content queries", "one", "undefined")


def test_every_table_says_what_it_is_of_and_fits_the_screen():
    found = audited(pure_noise(), cluster="all")
    words = ("6 texts", "T 7", "36 rows", "content queries", "sink set position 0", "0 of")
    assert not without_context(found.parts, *words)
    shown = {key: width(table) for key, table in tables(found).items() if table.shown}
    assert max(shown.values()) <= 80, shown
    assert len(notes(found, "T")) == len(notes(found, "selection")) == len(notes(found, "undefined")) == 1


# Few texts, odd rows


def test_of_one_text_nothing_is_concluded():
    found = audited(sink_and_content_apart(texts=1))
    assert verdicts(found) == {CANNOT_SAY}
    assert all("so nothing is concluded" in said for said in notes(found, "closing"))
    assert all(np.isnan(record["floor_keep"]) for record in tables(found)["verdicts"].records())
    assert any("one text cannot be split" in note for note in tables(found)["verdicts"].notes)
    assert rates(found)["jsd"] > 0.2  # still shown


def test_few_texts_have_few_different_splits():
    found = audited(sink_and_content_apart(texts=3))
    assert found.analysis.drawn == 3
    said = tables(found)["verdicts"].notes
    assert any("3 different splits of the texts, too few to conclude anything" in note for note in said)
    assert verdicts(found) == {CANNOT_SAY}
    assert all("3 texts can be halved in 3 different splits only" in said for said in notes(found, "closing"))


def test_too_few_triples_say_nothing():
    found = audited(sink_and_content_apart()[:, :1, :5])
    assert verdicts(found) == {CANNOT_SAY}
    assert all("fewer than 100 triples" in said for said in notes(found, "closing"))


@pytest.mark.parametrize("heads", [1, 2])
def test_one_or_two_heads_have_no_verdicts(heads):
    found = audited(sink_and_content_apart()[:, :1, :heads])
    assert verdicts(found) == {CANNOT_SAY}
    assert np.isnan(list(rates(found).values())).all()


def test_layers_by_themselves_are_judged_by_pairs_of_one_layer():
    """The content is each layer's, so that only heads of different layers differ in it."""
    apart = sink_and_content_apart()
    rows = with_sink(apart[..., 0], np.broadcast_to(apart[:, :, :1, :, 1:], apart[..., 1:].shape))
    assert verdicts(audited(rows), WITHIN) == {SINK_ALONE}
    assert SINK_ALONE not in verdicts(audited(rows))


def test_rows_of_float16_are_as_equal_as_float16_is():
    rows = only_the_sink_differs().astype(np.float16)
    found = audited(rows)
    assert found.distances.precision == 2.0**-10
    assert verdicts(found) == {SINK_ALONE}
    half = np.float16(sink_and_content_apart())
    assert SINK_ALONE not in verdicts(audited(half))


def test_undefined_rows_are_left_out_and_counted():
    rows = sink_and_content_apart()
    whole = audited(rows)
    rows[2, 1, 3, 4] = np.eye(7)[0]  # all on the sink: no content, but an entropy and a JSD under keep
    rows[3, 0, 0, 5] = 0
    found = audited(rows, zeros="refuse")
    assert "2 of 576 rows undefined" in found.context.words
    counts = {
        record["metric"]: (record["rows_left_out_keep"], record["rows_left_out_drop"])
        for record in tables(found)["verdict_counts"].records()
    }
    assert counts["JSD"] == (15, 30)
    assert counts["Aitchison"] == (30, 30)
    assert whole.distances.left_out("jsd", "drop") == 0
    assert found.distances.found.counts["jsd", "drop"][2, 11, 0] == 5
    said = "Not looked at: 2 rows with no weight on any content key, undefined whatever is chosen."
    assert notes(found, "zeros") == [f"Zeros: none among the parts of the rows that count. {said}"]


def test_a_row_without_mass_lowers_no_mean():
    rows = sink_and_content_apart()
    whole = audited(rows).distances
    rows[:, 0, 3, 1:5] = 0
    rows[:, 1, 2] = 0
    found = audited(rows).distances
    assert found.sink_share[3] == pytest.approx(rows[:, 0, 3, 5:, 0].mean())
    assert np.isnan(found.sink_share[10])
    assert np.array_equal(np.delete(found.sink_share, [3, 10]), np.delete(whole.sink_share, [3, 10]))


def test_clark2019_counts_the_rows_that_it_added_up():
    rows = sink_and_content_apart()
    rows[0, 0, 3, 1:5] = 0
    rows[1, 0, 3, 4] = np.eye(7)[0]
    found = audited(rows, cluster="clark2019").distances.found
    for convention, lost in (("keep", 4), ("drop", 5)):
        counts = found.counts["clark2019", convention].sum(axis=0)
        assert (counts[3, 5], counts[1, 5]) == (36 - lost, 36)
    content = rows[2, :, :, 1:, 1:].reshape(16, 6, 6)
    closed = content / content.sum(axis=-1, keepdims=True)
    wanted = oracle.clark2019_distances(closed)
    np.testing.assert_allclose(found.sums["clark2019", "drop"][2], wanted, rtol=1e-10, atol=1e-13)


def test_padding_changes_nothing():
    rows = sink_and_content_apart()
    wide = np.pad(rows, [(0, 0)] * 3 + [(0, 2), (0, 2)])
    plain, padded = audited(rows), audited(wide)
    for key, sums in plain.distances.found.sums.items():
        np.testing.assert_allclose(padded.distances.found.sums[key], sums, rtol=1e-12, atol=1e-15)
    assert padded.context.words == plain.context.words
    assert any("columns are zero" in note for note in notes(padded, "arrays"))


def test_an_empty_text_is_skipped_and_counted():
    rows = sink_and_content_apart()
    plain, found = audited(rows), audited(np.insert(rows, 1, 0, axis=0))
    for key, sums in plain.distances.found.sums.items():
        np.testing.assert_array_equal(found.distances.found.sums[key], sums)
    assert found.context == plain.context
    assert notes(found, "texts") == ["Texts: 6 measured, 1 without tokens skipped."]


def test_without_a_sink_nothing_can_flip():
    found = audited(sink_and_content_apart(), sink="none")
    assert set(rates(found).values()) == {0}
    assert "keep and drop are the same" in notes(found, "no_sink")[0]
    assert "sink set empty" in found.context.words


def test_lengths_that_differ_are_said():
    model = small_model()
    found = audit(model, ["The doctor saw the nurse.", "A donkey sleeps!", "She walks"])
    assert "T 5-8" in found.context.words
    assert "equal T only" in notes(found, "pooled")[0]
    assert not notes(audited(pure_noise()), "pooled")


def test_texts_beyond_the_blocks_are_pooled_into_them(monkeypatch):
    from validation.audit import distances

    rows = sink_and_content_apart()
    whole = audited(rows)
    monkeypatch.setattr(distances, "BLOCKS", 4)
    found = audited(rows)
    assert found.distances.found.sums["jsd", "keep"].shape == (4, 16, 16)
    assert len(found.distances.texts) == 6
    np.testing.assert_allclose(found.distances.mean("jsd", "keep"), whole.distances.mean("jsd", "keep"))
    assert notes(found, "blocks") == ["Splits: 6 texts are split as 4 blocks."]


# Zeros


def zeroed():
    rows = sink_and_content_apart()
    rows[1, 0, 2, 3, 4] = 0
    rows[4, 1, 1, 2, 5] = 0
    return rows / rows.sum(axis=-1, keepdims=True)


def test_zeros_are_refused_with_their_count_and_place_and_the_rest_is_there():
    found = audited(zeroed())
    assert set(found.distances.metrics) == set(METRICS) - {"aitchison", "aitchison_sink"}
    why = "2 zeros, the first at text 2, layer 0, head 2, query 3, key 4; choose --zeros"
    for key in ("distances", "verdicts"):
        table = tables(found)[key]
        assert table.rows[-1][0] == "Aitchison"
        assert f"Aitchison not computed: {why}" in table.notes
    assert tables(found)["verdicts"].records()[-1]["verdict"] == "not computed"
    assert notes(found, "closing")[-1] == f"Aitchison: not computed, so nothing is said of it ({why})."
    assert "2 parts of the rows that count, the first at text 2, layer 0" in notes(found, "zeros")[0]
    plain = audited(sink_and_content_apart())
    assert rates(found)["jsd"] == pytest.approx(rates(plain)["jsd"], abs=0.01)


def test_zeros_in_layers_that_are_not_asked_for_do_not_matter():
    found = audited(zeroed()[:, ::-1], layers="0")
    assert "the first at text 5, layer 0, head 1, query 2, key 5" in notes(found, "zeros")[0]
    rows = zeroed()
    rows[4, 1] = sink_and_content_apart()[4, 1]
    assert "aitchison" in audited(rows, layers="1").distances.metrics


def test_common_support_and_replacement_are_choices():
    rows = zeroed()
    common = audited(rows, zeros="common-support")
    assert set(common.distances.metrics) == set(METRICS)
    assert "zeros_sensitivity" not in tables(common)
    replaced = audited(rows, zeros="replace:1e-5")
    table = tables(replaced)["zeros_sensitivity"].records()
    assert [record["delta"] for record in table] == [1e-3, 1e-5, 1e-6, 1e-9]
    chosen = table[1]
    assert (chosen["flips_keep"], chosen["flips_drop"]) == (0, 0)
    assert chosen["flips"] == rates(replaced)["aitchison"]
    every = [text.reshape(16, 7, 7)[:, 1:] for text in rows]
    masks = np.arange(7) == 0
    wanted = oracle.head_distances(every, masks, "aitchison", "drop", zeros="replace", delta=1e-9)
    assert table[-1]["median_drop"] == pytest.approx(np.median(wanted[np.triu_indices(16, 1)]))
    assert len({record["median_keep"] for record in table}) == 4


def test_a_delta_that_leaves_nothing_is_a_line_of_the_table_and_stops_nothing():
    rows = np.zeros((1, 2, 2, 1010, 1010))  # all but a corner is padding
    rows[0, :, :, :5, :4] = np.random.default_rng(0).dirichlet(np.ones(4), (2, 2, 5))
    visible = np.zeros((1, 1010, 1010), dtype=bool)
    visible[:, :5] = True
    given = {"attention": rows, "visible": visible}
    found = audit_arrays(given, sink="0", layout=LAYOUT, zeros="replace:1e-6")
    table = tables(found)["zeros_sensitivity"]
    by_delta = {row[0]: row for row in table.rows}
    assert by_delta[1e-3][1:] == (None,) * 5
    assert by_delta[1e-9][1] > 0
    (why,) = [note for note in table.notes if note.startswith("1e-03 is not possible")]
    assert "zeros at text 1, layer 0, head 0, query 1 of" in why
    with pytest.raises(InputError, match=r"delta: .* zeros at text 1, layer 1, head 0, query 1 of"):
        audit_arrays(given, sink="0", layout=LAYOUT, zeros="replace:1e-3", layers="1")


def test_a_replacement_without_zeros_needs_no_table():
    found = audited(sink_and_content_apart(), zeros="replace:1e-6")
    assert "zeros_sensitivity" not in tables(found)


@pytest.mark.parametrize(
    "text", ["", "replace", "replace:", "replace:0", "replace:2", "replace:x", "refuse:1"]
)
def test_other_words_for_zeros_are_refused(text):
    with pytest.raises(InputError, match="zeros: expected refuse, common-support"):
        audited(zeroed(), zeros=text)


# Engines, verification, models


def test_the_engines_say_the_same():
    fast, slow = (
        audited(sink_and_content_apart(texts=3), engine=engine) for engine in ("fastpath", "oracle")
    )
    for metric, flips in slow.analysis.flips.items():
        assert fast.analysis.flips[metric][ALL].flipped == flips[ALL].flipped
    for key, sums in slow.distances.found.sums.items():
        np.testing.assert_allclose(fast.distances.found.sums[key], sums, rtol=1e-11, atol=1e-12)
    assert notes(fast, "closing") == notes(slow, "closing")


def test_drawn_pairs_are_computed_again():
    found = audited(sink_and_content_apart(), verify=7, verify_seed=1)
    (check,) = [part for part in found.parts if isinstance(part, Check)]
    assert check.ok
    assert check.expected.startswith("7 of 720 sums over the rows of a text and a pair of heads")
    assert "drawn with seed 1" in check.expected
    with pytest.raises(InputError, match="verify: expected at least one pair"):
        audited(sink_and_content_apart(), verify=0)
    with pytest.raises(InputError, match="verify: expected the engine fastpath"):
        audited(sink_and_content_apart(), verify=3, engine="oracle")
    with pytest.raises(InputError, match="verify_seed: expected verify beside it"):
        audited(sink_and_content_apart(), verify_seed=3)


@pytest.mark.parametrize("place", ["sums", "counts"])
def test_a_wrong_engine_is_noticed(monkeypatch, place):
    right = oracle.distance_sums

    class Wrong:
        row_measures, verdict_flips = staticmethod(oracle.row_measures), staticmethod(oracle.verdict_flips)

        @staticmethod
        def distance_sums(*arguments, **named):
            found = right(*arguments, **named)
            getattr(found, place)["hellinger", "drop"][:, 3, 5] += 1
            return found

    monkeypatch.setattr("validation.audit.auditing.load_engine", lambda *_: Wrong)
    found = audited(sink_and_content_apart(), verify=720)
    (check,) = [part for part in found.parts if isinstance(part, Check)]
    assert not check.ok
    assert check.found.startswith("6 pairs outside their bound")
    assert "L0 H3 and L0 H5, hellinger drop" in check.found


def test_a_model_is_audited_from_its_scores():
    model = small_model()
    texts = ["The doctor saw the nurse.", "", "A donkey sleeps!", "[SEP]"]
    found = audit(model, texts, layers="0-1")
    assert notes(found, "texts") == ["Texts: 3 measured, 1 without tokens skipped."]
    assert notes(found, "no_content") == ["Texts whose tokens are all sinks, so that no row counts: 1."]
    assert found.distances.texts == (0, 2)
    traces = [oracle.forward(model, texts[text]) for text in (0, 2)]
    wanted = oracle.head_distances(
        [trace.attention for trace in traces],
        [trace.sink_mask for trace in traces],
        "aitchison",
        "drop",
        scores=[trace.scores for trace in traces],
        queries=[~trace.sink_mask for trace in traces],
    )
    np.testing.assert_allclose(found.distances.mean("aitchison", "drop"), wanted, rtol=1e-12)
    shares = [oracle.sink_share(t.attention, t.sink_mask)[:, :, ~t.sink_mask].reshape(6, -1) for t in traces]
    np.testing.assert_allclose(found.distances.sink_share, np.concatenate(shares, axis=1).mean(axis=1))
    entropies = [
        oracle.entropy_split(t.attention, t.sink_mask).content[:, :, ~t.sink_mask].reshape(6, -1)
        for t in traces
    ]
    np.testing.assert_allclose(
        found.distances.content_entropy, np.concatenate(entropies, axis=1).mean(axis=1)
    )


def windowed(*windows):
    model = small_model()
    return replace(model, config=replace(model.config, causal=True, windows=windows))


def test_layers_whose_windows_differ_are_refused_before_any_text_is_run(monkeypatch):
    text = "the doctor saw the nurse and a donkey walks, the nurse sleeps."
    given = {"sink": "first", "min_content_keys": 2}
    assert audit(windowed(5, None), [text], layers="0", **given).context.heads == 3
    assert audit(windowed(5, None), [text], layers="1", **given).context.heads == 3
    assert audit(windowed(25, None), [text], **given).context.heads == 6  # no text is that long
    monkeypatch.setattr(oracle, "forward", lambda *_, **__: pytest.fail("a text was run"))
    with pytest.raises(InputError, match=r"layers: expected layers that all see the same keys.*such as 0\."):
        audit(windowed(5, None), [text], **given)


def test_texts_without_content_are_refused():
    with pytest.raises(InputError, match="texts: expected a text with a token beside the sinks"):
        audit(small_model(), ["[SEP]"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.tile(np.eye(7)[0], (2, 2, 3, 7, 1)), "no content query in 2 texts.* an array `visible` says"),
        (np.zeros((2, 2, 4, 0, 0)), "attention: expected at least one query; found none"),
    ],
)
def test_rows_without_a_content_key_are_refused_in_words(rows, message):
    with pytest.raises(InputError, match=message):
        audited(rows)


def test_causal_rows_count_from_enough_content_keys_on():
    rng = np.random.default_rng(0)
    rows = np.tril(rng.uniform(0.1, 1, (3, 2, 4, 12, 12)))
    rows /= rows.sum(axis=-1, keepdims=True)
    found = audited(rows, min_content_keys=5)
    assert found.distances.rows == 3 * 7
    assert "content queries from 5 content keys on" in found.context.words
    with pytest.raises(InputError, match="rows: expected causal rows that see at least 12 content keys"):
        audited(rows, min_content_keys=12)


def test_three_passages_of_the_real_model(minilm):
    found = audit(minilm, load_passages()[:3], layers="0,5", verify=2)
    assert found.context.heads == 24
    assert set(found.distances.metrics) == set(METRICS)
    assert all(part.ok for part in found.parts if isinstance(part, Check))
    by_name = rates(found)
    assert all(0 < rate < 0.5 for rate in by_name.values()), by_name
    assert len(notes(found, "closing")) == 7
