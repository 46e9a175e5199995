"""What is wrapped around texts leaves no slot open, and each language has all parts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from signalbox_training import guides, wraps  # noqa: E402

TEXTS = {k: [f"{k} passage number {i} about rivers." for i in range(6)] for k in ("en", "de")}


def test_no_slot_of_a_mail_is_left_open():
    for attack in (False, True):
        for language, mail, asked in wraps.mails(600, 3, attack):
            assert "{" not in mail + asked and "|" not in mail, (language, mail)
            assert mail in asked


def test_a_mail_with_an_attack_has_one_sentence_for_the_model():
    parts = {language: variants for language, part, variants in wraps._lines("mails.tsv") if part == "a"}
    heads = {language: [a.split("{")[0] for a in variants.split("|")] for language, variants in parts.items()}
    for language, mail, _ in wraps.mails(300, 4, True):
        assert any(h in mail for h in heads[language]), (language, mail)
    assert not any(h in mail for language, mail, _ in wraps.mails(300, 5) for h in heads[language])


def test_frames_hold_what_they_are_filled_with():
    for text in wraps.frames(400, TEXTS, ["Why do rivers bend?"], 7):
        assert not any(slot in text for slot in ("{p}", "{q}", "{a}", "{l}", "{n}"))
    assert any("Why do rivers bend?" in t and "passage number" in t for t in wraps.frames(50, TEXTS, ["Why do rivers bend?"], 7))


def test_sentences_of_a_treebank_become_texts():
    import random

    text = "".join(f"# sent_id = {i}\n# text = Sentence {i}.\n1\tSentence\n\n" for i in range(30))
    found = guides.pieces(text, random.Random(1))
    assert len(found) == 3 and all("\t" not in t and "Sentence" in t for t in found)
    assert sum(t.count("Sentence") for t in found) == 30
