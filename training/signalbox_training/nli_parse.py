"""Parsed English text as spaCy has it, by ClearNLP (Apache-2.0), whose models Maven Central has.

    cd clearnlp && mvn -q dependency:copy-dependencies -DoutputDirectory=lib && javac -cp 'lib/*' Parse.java
    java -Xmx9g -cp 'lib/*:.' Parse 7099

Labels are those that spaCy's English models were trained on too, but for a few names. Words and sentences are split by spaCy's rules.
"""

from __future__ import annotations

import socket

import spacy
from spacy.tokens import Doc

KINDS = {"NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "NNPS": "PROPN", "PRP": "PRON", "PRP$": "PRON", "WP": "PRON", "WP$": "PRON", "WDT": "PRON", "EX": "PRON",
         "DT": "DET", "PDT": "DET", "JJ": "ADJ", "JJR": "ADJ", "JJS": "ADJ", "RB": "ADV", "RBR": "ADV", "RBS": "ADV", "WRB": "SCONJ", "IN": "ADP", "RP": "ADP",
         "TO": "PART", "POS": "PART", "CC": "CCONJ", "CD": "NUM", "MD": "AUX", "UH": "INTJ", "SYM": "SYM", "$": "SYM", "FW": "X",
         "VB": "VERB", "VBD": "VERB", "VBZ": "VERB", "VBP": "VERB", "VBN": "VERB", "VBG": "VERB"}
LABELS = {"possessive": "case", "num": "nummod", "number": "compound", "nn": "compound", "hmod": "compound", "hyph": "punct", "infmod": "acl", "partmod": "acl",
          "vmod": "acl", "rcmod": "relcl", "complm": "mark", "abbrev": "appos", "iobj": "dative"}


class Parser:
    """Parses texts, in the shape of a spaCy pipeline."""

    def __init__(self, port: int):
        self.split = spacy.blank("en")
        self.split.add_pipe("sentencizer")
        self.file = socket.create_connection(("127.0.0.1", port)).makefile("rw", encoding="utf-8")

    def pipe(self, texts, batch_size: int = 0):
        return map(self, texts)

    def __call__(self, text: str) -> Doc:
        doc = self.split(text)
        for sent in doc.sents:
            self.file.write(" ".join("".join(t.text.split()) or "·" for t in sent) + "\n")
        self.file.write("\n")
        self.file.flush()
        columns: dict[str, list] = {k: [] for k in ("tags", "pos", "lemmas", "heads", "deps", "ents")}
        begin = 0
        while (line := self.file.readline().rstrip("\n")) != "#":
            if not line:
                begin = len(columns["tags"])
                continue
            lemma, tag, head, label, name = line.split("\t")
            label, kind = "ROOT" if head == "0" else LABELS.get(label, label), KINDS.get(tag, "PUNCT")
            if kind == "VERB" and (label in ("aux", "auxpass") or lemma == "be"):
                kind = "AUX"
            ent = "O" if name in ("null", "O") else ("B-" if name[0] in "BU" else "I-") + name[2:]
            at = len(columns["tags"]) if head == "0" else begin + int(head) - 1
            for k, v in zip(columns, (tag, "SCONJ" if label == "mark" else kind, lemma, at, label, ent)):
                columns[k].append(v)
        return Doc(self.split.vocab, [t.text for t in doc], [bool(t.whitespace_) for t in doc], **columns)
