"""The parts of the NLI training that a figure would not show to be wrong."""

import datetime
import random
import re

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from signalbox_training import batches, model, nli_changes, nli_course, nli_data, nli_evaluate, nli_facts, nli_fusion, nli_long, nli_model, nli_order, nli_plain, nli_product, nli_retold, nli_train, nli_values, nli_written


def test_a_long_premise_is_cut_before_the_claim():
    row = nli_model.pair(list(range(1000, 1100)), list(range(2000, 2010)), 64)
    assert len(row) == 64 and row[-11:-1] == list(range(2000, 2010))
    row = nli_model.pair(list(range(1000, 1100)), list(range(2000, 2100)), 63)
    assert len(row) == 63 and len([t for t in row if 1000 <= t < 1100]) == 15


def test_types_are_one_for_the_claim_and_its_separator_alone():
    ids = torch.tensor([nli_model.pair([7, 8], [9], 16) + [0, 0]])
    assert nli_model.types_of(ids, (ids > 0).long()).tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]


def test_a_row_that_only_says_unsupported_allows_both_labels():
    logits = torch.tensor([[-9.0, 0.0, 9.0], [-9.0, 9.0, 0.0]])
    may = torch.tensor([[False, True, True]] * 2)
    assert nli_train.pair_losses(logits, may, 0).max() < 1e-3
    assert nli_train.pair_losses(-logits, may, 0).min() > 1
    assert not nli_train.pair_losses(logits, torch.ones_like(may)).any()


def test_a_teacher_counts_beside_the_labels_of_what_it_has_read():
    row = lambda taught: nli_data.Pair("p", "c", nli_data.ANY, "pages", taught=taught)
    logits = torch.tensor([[2.0, 0.0, -1.0], [0.0, 0.0, 3.0]])
    same, weight = nli_train.taught_loss(logits, [row([3.0, 1.0, 0.0]), row(None)])
    assert same.abs() < 1e-6 and weight.tolist() == [nli_train.LABELS_WEIGHT, 1.0]
    other, _ = nli_train.taught_loss(logits, [row([0.0, 1.0, 3.0]), row(None)])
    assert other > 0.5


def test_changes_mark_the_words_that_the_premise_does_not_have():
    claim = "The tower is 250 metres tall."
    assert [claim[a:b] for a, b in nli_data.changes("It is old. The tower is 330 metres tall.", claim)] == ["250"]


def test_windows_hold_the_sentence_that_was_asked_for():
    text = " ".join(f"Sentence number {i} speaks of thing{i} and of little else." for i in range(40))
    for window in nli_data.best_windows(text, "thing17 is spoken of", 1):
        assert "thing17" in window and len(window.split()) <= nli_data.WINDOW_WORDS


def test_false_values_are_no_roundings_of_true_ones():
    rng = random.Random(5)
    for _ in range(3000):
        value = float(rng.choice([rng.randint(2, 30), rng.randint(30, 5000), rng.randint(5000, 10**8)]))
        assert abs(nli_values.false_value(value, rng) - value) > 0.04 * value


def test_true_forms_say_how_they_are_rounded():
    rng = random.Random(5)
    for _ in range(3000):
        value = float(rng.randint(100, 99999))
        form = nli_values.true_form(value, rng)
        number = re.search(r"[\d,.]*\d", form)
        if number and "thousand" not in form and "million" not in form:
            exact = float(number[0].replace(",", "")) == value
            assert exact or not form[0].isdigit(), form


def test_dates_that_are_false_are_other_days():
    rng, day = random.Random(5), datetime.date(2019, 3, 31)
    assert all(nli_values.false_date(day, rng) != day for _ in range(500))


def test_made_claims_carry_marks_inside_the_text():
    for p in nli_facts.build(2000):
        assert p.marks is None or all(0 <= a < b <= len(p.claim) for a, b in p.marks)
        assert not (p.may == nli_data.SURE["entailment"] and p.marks)


def test_a_led_in_claim_keeps_its_marks():
    rng = random.Random(1)
    for _ in range(200):
        p = nli_changes.led_in(nli_data.Pair("", "the tower has 9 floors", nli_data.SURE["contradiction"], "", "", [(14, 15)]), rng)
        assert [p.claim[a:b] for a, b in p.marks] == ["9"]


def test_auc_counts_ties_as_half():
    assert nli_evaluate.auc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([0, 0, 1, 1], bool)) == 0.875


def test_a_tree_of_the_fusion_sums_as_the_fitted_one_does():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(600, 4))
    y = x[:, 0] - x[:, 1] * x[:, 2] > 0
    model = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=7).fit(x, y)
    total = np.full(len(x), 0.5 * np.ravel(model._baseline_prediction)[0])
    for step in model._predictors:
        t = nli_fusion.tree(step[0].nodes, 0.5, [3, 2, 1, 0])
        assert all(t[side][i] > i for side in ("left", "right") for i, f in enumerate(t["feature"]) if f >= 0)
        for n, row in enumerate(x[:, ::-1]):
            at = 0
            while t["feature"][at] >= 0:
                at = t["left"][at] if row[t["feature"][at]] <= t["threshold"][at] else t["right"][at]
            total[n] += t["value"][at]
    assert np.abs(total - 0.5 * model.decision_function(x)).max() < 1e-3


def test_what_is_gathered_holds_a_claim_that_stands_in_several_places():
    filler = [f"Visitor number {i} walked along the river and looked at the boats." for i in range(60)]
    ours = ["Anna Berg was born in Lund.", "The Astra harbour opened in 1962."]
    page = " ".join([*filler[:20], ours[0], *filler[20:40], ours[1], *filler[40:]])
    found = nli_data.gathered(page, "Anna Berg of Lund opened the Astra harbour.")
    assert found.index(ours[0]) < found.index(ours[1])
    assert len(found.split()) <= nli_data.GATHERED_WORDS
    assert nli_data.gathered(page, "Bananas ripen.") == ""


def test_parts_of_a_claim_are_known():
    whole = "In 2014 Anna Berg, who was born in Lund, opened the Astra harbour."
    assert nli_data.part_of("Anna Berg was born in Lund.", whole)
    assert not nli_data.part_of("Anna Berg closed a museum in Paris.", whole)


def test_words_that_another_window_may_bear_out_are_not_learnt():
    claim = "Anna Berg opened the harbour."
    spans = nli_data.elsewhere("The harbour is old.", claim, [(10, 16)])
    assert [claim[a:b] for a, b in spans] == ["Anna", "Berg"]
    example = nli_train.examples([nli_data.Pair("The harbour is old.", claim, nli_data.ANY, "wice_tokens", "", [(10, 16)], spans)])[0]
    known = nli_train.targets([example], len(example.ids))
    inside = slice(example.start, example.start + len(example.marks))
    assert known[2][0, inside].tolist() == [0, 0, 1, 1, 1, 1] and known[1][0, inside].tolist() == [0, 0, 1, 0, 0, 0]


def test_pages_choose_in_folds_alone():
    assert not any(nli_data.held_out(nli_data.Pair(f"premise {i}", "c", nli_data.UNSUPPORTED, "wice", root="c")) for i in range(200))
    assert any(nli_data.held_out(nli_data.Pair(f"premise {i}", "c", nli_data.UNSUPPORTED, "begin")) for i in range(200))


def test_what_is_added_beside_long_evidence_adds_to_the_log_odds():
    rng = np.random.default_rng(4)
    x = rng.random((400, 3))
    model = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=5).fit(x, x[:, 0] + 0.3 * x[:, 1] > 0.6)
    fusion = {"features": ["a", "b", "c"], "base": 0.2, "trees": [], "calibration": {"slope": 1.7, "offset": -0.4}, "thresholds": {"supported": 0.5, "unsupported": 0.3}}
    out = nli_long.added(fusion, model)
    long = out["long"]
    odds = long["calibration"]["slope"] * (fusion["base"] + long["base"] + nli_product.total(long["trees"], x)) + long["calibration"]["offset"]
    np.testing.assert_allclose(odds, nli_long.CURVE * (1.7 * 0.2 - 0.4 + model.decision_function(x)), atol=1e-4)
    assert out["thresholds"]["supported"] == nli_long.CUTS["supported"] and fusion["thresholds"]["supported"] == 0.5 and "long" not in fusion
    assert out["thresholds_short"] == {"supported": 0.5, "unsupported": 0.3, "alone": nli_long.SHORT_ALONE}


def test_of_a_false_answer_the_claim_in_doubt_counts_alone():
    rows = nli_long.Rows.__new__(nli_long.Rows)
    rows.names, rows.wrong, rows.row = ["entail_max"], np.array([True, False]), np.array([0, 0, 1, 1])
    rows.x = np.array([[0.9], [0.2], [0.3], [0.8]])
    assert rows.counted(np.array([True, True])).tolist() == [False, True, True, True]
    assert rows.counted(np.array([False, True])).tolist() == [False, False, True, True]


def test_claims_in_plain_words_are_no_copies_and_as_often_true_as_false():
    rows = nli_plain.build(6000)
    for kind in nli_plain.FAMILIES:
        of = [r for r in rows if r.kind == kind]
        true = sum(r.may == nli_data.SURE["entailment"] for r in of) / len(of)
        assert 0.35 < true < 0.75, kind
        assert not any(r.claim in r.premise for r in of if r.may != nli_data.SURE["entailment"]), kind


def test_a_sentence_stays_one_when_words_are_taken_out():
    assert nli_retold.tidy("the rat is a big species ( ) , of rats ,.") == "The rat is a big species, of rats."
    assert nli_retold.tidy("it lies on the the north side , ") == "It lies on the north side."


def test_what_the_model_was_trained_on_decides_by_words_alone():
    names = ["entail_max", "words_missing"]
    lines = [{"row": i, "features": [float(i % 2), float(i % 3)]} for i in range(12)]
    given = [{"label": "supported" if i % 2 else "unsupported", "group": "wice" if i < 4 else "own", "fold": 0} for i in range(12)]
    fit = nli_fusion.gather(names, lines, given, ("wice",))
    assert fit.known.tolist() == [True] * 4 + [False] * 8
    assert nli_fusion.fair(names, fit).tolist() == (~fit.known).tolist() and nli_fusion.fair(names[1:], fit).all()


def test_twins_are_taken_together_and_stay_beside_each_other():
    rows = nli_order.build(400)
    assert all(nli_data.twins(a, b) for a, b in zip(rows[::2], rows[1::2]))
    taken = nli_data.mix(rows, {"own/order": 0.5}, random.Random(3))
    assert 100 < len(taken) < 300 and all(a + 1 == b and a % 2 == 0 for a, b in zip(taken[::2], taken[1::2]))
    lengths = [len(rows[i].premise + rows[i].claim) for i in taken]
    groups = batches.by_length(lengths, 2000, 9, random.Random(4), [n % 2 == 1 for n in range(len(taken))])
    places = {i: (g, n) for g, group in enumerate(groups) for n, i in enumerate(group)}
    close = [places[i][0] == places[i + 1][0] and places[i][1] + 1 == places[i + 1][1] for i in range(0, len(taken), 2)]
    assert np.mean(close) > 0.8  # the others stand at the border of two batches


def test_the_loss_of_twins_wants_the_true_one_to_be_entailed_more():
    rows = nli_order.build(2)
    right = torch.tensor([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    assert nli_train.twin_loss(right, rows) < 0.01 < 1 < nli_train.twin_loss(right.flip(0), rows)
    assert nli_train.twin_loss(right[:1], rows[:1]) == 0


def test_a_start_has_no_limits_and_keeps_its_weights():
    net = nli_model.Pair()
    net.layers[0].up.limit.fill_(3.0)
    net.layers[0].up.smooth.fill_(2.0)
    net.load_state_dict(nli_course.free(net.state_dict()))
    assert all(not m.limit.isfinite() and (m.smooth == 1).all() for m in net.modules() if hasattr(m, "limit"))
    assert net.layers[0].up.weight.any()


def test_what_a_teacher_reads_is_not_what_rules_made():
    rows = [nli_data.Pair("p", "c", nli_data.ANY, src) for src in ("own/order", "nli_synthetic", "stsb", "pages", "mnli_dev")]
    assert [r.src for r in rows if not r.src.startswith(nli_course.TAUGHT)] == ["pages", "mnli_dev"]


def test_training_begins_with_the_base_weights():
    state, trunk = nli_model.from_base().state_dict(), model.load_file(model.base_folder() / "model.safetensors")
    assert torch.equal(state["layers.0.up.weight"], next(t for n, t in trunk.items() if n.endswith("encoder.layer.0.intermediate.dense.weight")))


def test_twins_about_own_texts_are_read_with_their_text():
    found = nli_written.read({})
    assert len(found) > 1500 and not any("===" in t.text or not t.text or t.true == t.false for t in found)
    rows = nli_written.pairs(found[:40])
    for i, r in enumerate(rows):
        beside = rows[i - 1 : i] + rows[i + 1 : i + 2]
        assert r.may == nli_data.SURE["entailment"] or r.kind == "opposite" or r.may == nli_data.UNSUPPORTED
        assert r.may != nli_data.SURE["entailment"] or any(nli_data.twins(r, b) for b in beside), r.claim


def test_texts_are_found_by_their_words_and_reference():
    whole = "one two\n\nthree four five\n\nsix"
    assert list(nli_written.cuts(whole, {3, 5})) == ["one two\n\nthree four five", "three four five"]
    assert nli_written.reference("one two\n\nthree four five") in map(nli_written.reference, nli_written.cuts(whole, {5}))


def test_markdown_is_read_without_front_matter_code_and_addresses():
    assert nli_written.clean("---\ntitle: x\n---\nSee [the page](a.md) and [b][1].\n\n```\ncode\n```\n<b>Bold</b> {{< x >}}") == "See the page and b.\n\n\nBold".replace("\n\n\n", "\n\n")
