"""Claims as summaries make them of real documents: a sentence shortened, turned from active to passive and back, put in another
order or in other words, two put together; and the same claims with a mistake as models make it.

The mistake is put into a claim that was retold already, and the claim without it is a pair as well: how a claim is worded tells
nothing. Mistakes take names, numbers, subjects and nouns from the same document where it has them. Sentences are parsed by spaCy or by
nli_parse, and inflected by lemminflect, which are not among the requirements of a training: `python -m signalbox_training.nli_retold`
writes the pairs to a file in the work folder.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import defaultdict
from pathlib import Path

from . import data, nli_changes, nli_data
from .nli_data import SURE, UNSUPPORTED, Pair

YES, OPEN, EITHER = SURE["entailment"], SURE["neutral"], UNSUPPORTED
# Words for which another one says the same, of one kind; their forms follow.
SAME = {"VERB": "begin start | build construct | buy purchase | help assist | show demonstrate | show reveal | use employ | make produce | create produce | get obtain | receive get | need require | say state | "
                "explain describe | reduce lower | reduce decrease | increase raise | rise climb | grow expand | stop halt | end finish | choose select | keep retain | provide supply | provide offer | allow permit | "
                "cause trigger | happen occur | examine study | find discover | gather collect | change alter | change modify | replace substitute | join enter | reject refuse | "
                "reject turn | accept approve | attack assault | kill slay | fight battle | destroy ruin | damage harm | protect guard | protect shield | contain include | comprise include | consist comprise | "
                "lead guide | teach instruct | learn study | own possess | earn make | sell market | hire employ | demand require | ask request | answer reply | argue claim | believe think | think consider | "
                "know understand | see observe | measure gauge | test check | fix repair | improve enhance | improve better | weaken undermine | strengthen reinforce | connect link | join connect | separate divide | "
                "move shift | travel journey | return go | arrive come | leave depart | enter penetrate | live reside | die perish | found establish | found set | establish create | form create | shape mould | "
                "rely depend | depend rely | influence affect | affect influence | determine decide | control regulate | govern rule | enable allow | prevent stop | avoid evade | limit restrict | ban forbid | forbid prohibit",
        "NOUN": "company firm | physician doctor | job post | work labour | money funds | country nation | state nation | city town | child kid | area region | region zone | way manner | method approach | "
                "method technique | goal aim | aim objective | purpose aim | problem difficulty | problem issue | result outcome | effect consequence | cause reason | change shift | growth increase | decline decrease | "
                "rule regulation | law statute | leader head | ruler sovereign | war conflict | battle fight | soldier fighter | weapon arm | student pupil | teacher instructor | scientist researcher | study investigation | "
                "author writer | book volume | idea notion | concept idea | belief conviction | answer response | question query | kind type | type sort | group set | portion share | amount quantity | "
                "size extent | shape form | speed rate | power strength | sickness illness | illness disease | drug medication | customer client | buyer purchaser | seller vendor | price cost | wage pay | profit gain | "
                "worker employee | employee worker | owner proprietor | error mistake | fault flaw | danger risk | advantage benefit | benefit advantage | drawback disadvantage | start beginning | end close | example instance",
        "ADJ": "large big | big large | small little | important significant | significant important | main primary | primary main | difficult hard | hard difficult | easy simple | fast quick | quick rapid | "
               "rapid fast | whole entire | entire whole | numerous many | various different | different distinct | similar alike | common widespread | rare uncommon | usual normal | typical usual | "
               "strange odd | rich wealthy | wealthy rich | poor needy | strong powerful | powerful strong | famous well-known | dangerous hazardous | safe secure | wrong incorrect | right correct | correct right | "
               "enough sufficient | sufficient enough | necessary needed | required needed | new novel | ancient old | annual yearly | huge enormous | tiny minute | crucial vital | vital essential | essential crucial",
        "ADV": "often frequently | frequently often | usually normally | generally usually | typically usually | quickly rapidly | rapidly quickly | approximately roughly | about roughly | "
               "mainly mostly | mostly mainly | primarily mainly | largely mostly | almost nearly | nearly almost | initially first | originally initially | eventually finally | currently now | "
               "recently lately | immediately at-once | however but | therefore thus | thus therefore | together jointly | entirely completely | completely fully | especially particularly"}
PAGE_SENTENCES = 14  # of a part of a page
SKIP = {"reject", "found", "cause", "consist", "return", "replace"}  # whose partner does not fit its place everywhere
CAREFUL = {"if", "unless", "only", "without", "few", "hardly", "rarely", "seldom", "never", "no", "none", "nor", "neither", "not", "n't", "barely", "whether", "would", "least", "every", "any"}
HEDGES = {"only", "nearly", "hardly", "rarely", "barely", "possibly", "probably", "allegedly", "supposedly", "likely", "potentially", "partially", "virtually", "almost", "seemingly",
          "reportedly", "apparently", "presumably", "formerly", "theoretically", "seldom", "falsely"}
PRIVATE = {"fake", "former", "alleged", "false", "potential", "possible", "future", "artificial", "so-called", "would-be", "first", "second", "third", "last", "other", "few", "little", "many", "only", "same", "such"}
CLAUSES = {"because", "while", "although", "though", "since", "after", "before", "whereas", "so"}
PREPOSITIONS = {"in", "on", "at", "during", "after", "before", "for", "throughout", "within", "since", "with", "from", "through", "under", "around"}
REPORTS = {"argue", "claim", "believe", "think", "suggest", "contend", "allege", "propose", "hope", "expect", "assume", "fear", "suspect", "predict", "say", "insist", "maintain", "speculate"}
LABELS = {"PERSON", "ORG", "GPE", "NORP", "LOC", "DATE", "FAC", "EVENT", "WORK_OF_ART", "CARDINAL", "MONEY", "PERCENT", "ORDINAL", "TIME", "QUANTITY"}
MODALS = {"may": ["will", "must"], "might": ["will", "must"], "could": ["will", "did"], "can": ["must", "cannot", "always"], "should": ["do", "must not"], "will": ["may", "will not"], "must": ["may", "must not"]}
AMOUNTS = {"some": ["all", "no"], "many": ["all", "few", "no"], "most": ["all", "few"], "several": ["all", "hundreds of"], "all": ["most", "few", "some but not all"], "both": ["neither of the", "one of the"],
           "often": ["always", "rarely"], "usually": ["always", "rarely"], "sometimes": ["always", "never"], "always": ["sometimes", "rarely"], "few": ["many", "all"], "typically": ["always", "rarely"], "every": ["some"]}
LEADS = ["According to the text, ", "The passage says that ", "In short, ", "The text explains that ", "The author notes that "]
SYNONYMS: dict[tuple[str, str], list[str]] = defaultdict(list)
for kind, text in SAME.items():
    for one in text.split(" | "):
        left, right = one.split()
        if left not in SKIP:
            SYNONYMS[kind, left].append(right.replace("-once", " once"))


def tidy(text: str) -> str:
    """The text as a sentence, after words were taken out or put in."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\(\s*\)", "", text)
    text = re.sub(r"\s+([,.;:!?)])", r"\1", text)
    text = re.sub(r"([,;:])(\s*[,;:])+", r"\1", text)
    text = re.sub(r"[,;:]+\s*([.?!])", r"\1", text)
    text = re.sub(r"^[\s,;:]+", "", text).strip()
    text = re.sub(r"\b([Tt]he|[Aa]n?) [Tt]he\b", r"\1", text)
    return (text[:1].upper() + text[1:]).rstrip(" ,;") + ("" if text[-1:] in ".?!\"”" else ".") if text else text


def told(tokens) -> str:
    return "".join(t.text_with_ws for t in tokens).strip()


def lower(tokens) -> str:
    """The words as they stand inside a sentence."""
    text = told(tokens)
    first = tokens[0]
    return text if first.ent_type_ or first.tag_ in ("NNP", "NNPS") or first.text == "I" or len(first) > 1 and first.text.isupper() else text[:1].lower() + text[1:]


def part(head) -> list:
    """The words that hang on one, if they stand together."""
    found = list(head.subtree)
    return found if found[-1].i - found[0].i + 1 == len(found) else []


def bare(tokens) -> list:
    tokens = list(tokens)
    while tokens and tokens[-1].is_punct and tokens[-1].text not in ")\"”":
        tokens.pop()
    return tokens


def without(sent, gone: set[int], put: dict[int, str] | None = None) -> str:
    put = put or {}
    return tidy("".join(put.get(t.i, t.text) + (" " if t.i + 1 in gone else t.whitespace_) for t in sent if t.i not in gone))


def free(token) -> bool:
    """Whether a word stands by itself: in no compound with a hyphen, and not written large as a name is."""
    doc, i = token.doc, token.i
    joined = i and doc[i - 1].text in "-–" or i + 1 < len(doc) and doc[i + 1].text in "-–"
    return not joined and (token.is_lower or token.is_sent_start)


def child(token, *deps):
    return next((c for c in token.children if c.dep_ in deps), None)


def plural(head) -> bool:
    return head.tag_ in ("NNS", "NNPS") or any(c.dep_ == "conj" for c in head.children) and any(c.dep_ == "cc" and c.lower_ == "and" for c in head.children)


def form(lemma: str, tag: str) -> str | None:
    from lemminflect import getInflection

    found = getInflection(lemma, tag) or getInflection(lemma, tag, inflect_oov=True)
    return found[0] if found else None


def drops(sent) -> list[set[int]]:
    """Sets of words that can be left out of a sentence that stays true."""
    if CAREFUL & {t.lower_ for t in sent}:
        return []
    out, last = [], sent.end - 1
    for t in sent:
        piece = None
        if t.dep_ in ("appos", "relcl", "advcl", "acl", "prep") and t.i > sent.start:
            tokens = part(t)
            if tokens and tokens[0].i > sent.start and sent.doc[tokens[0].i - 1].text == ",":
                after = tokens[-1].i + 1
                if after > last or sent.doc[after].is_punct:
                    piece = {x.i for x in tokens} | {tokens[0].i - 1}
                    piece |= {after} if after <= last and sent.doc[after].text == "," else set()
        if not piece and t.dep_ == "advcl" and t.head == sent.root and (m := child(t, "mark")) is not None and m.lower_ in CLAUSES:
            piece = {x.i for x in part(t)}
        if not piece and t.dep_ == "prep" and t.head == sent.root and t.lower_ in PREPOSITIONS and child(t, "pobj") is not None:
            tokens = part(t)
            led = tokens and tokens[0].i == sent.start and tokens[-1].i + 1 <= last and sent.doc[tokens[-1].i + 1].text == ","
            settled = child(sent.root, "dobj", "nsubjpass", "attr", "acomp")
            if led or tokens and settled is not None and tokens[0].i > sent.root.i and t.i > settled.i:
                piece = {x.i for x in tokens} | ({tokens[-1].i + 1} if led else set())
        if not piece and t.dep_ == "advmod" and t.lower_.endswith("ly") and t.lower_ not in HEDGES and not list(t.children):
            piece = {t.i}
        if not piece and t.dep_ == "amod" and t.tag_ == "JJ" and t.lower_ not in PRIVATE and not list(t.children) and (d := child(t.head, "det")) is not None and d.lower_ in ("a", "an") and d.i + 1 == t.i \
                and t.head.tag_ == "NN" and (d.lower_ == "an") == (sent.doc[t.i + 1].lower_[0] in "aeiou"):
            piece = {t.i}
        if piece and sent.root.i not in piece and len(piece) < 0.7 * len(sent):
            out.append(piece)
    for o in [t for t in sent if t.text == "("]:
        c = next((t for t in sent if t.text == ")" and t.i > o.i), None)
        if c is not None:
            out.append({t.i for t in sent if o.i <= t.i <= c.i})
    return out


def shortened(sent, rng) -> str | None:
    sets = drops(sent)
    if not sets:
        return None
    picked = rng.sample(sets, min(len(sets), rng.choice([1, 1, 2, 2, 3])))
    return without(sent, set().union(*picked))


def sides(sent):
    """(verb, words before, subject, object, words after) of a plain active or passive sentence, or None."""
    root = sent.root
    s, o = child(root, "nsubj", "nsubjpass"), child(root, "dobj")
    agent = child(root, "agent")
    if s is None or child(root, "neg", "prt", "aux", "conj", "expl", "dative", "xcomp", "ccomp") is not None or s.pos_ in ("PRON", "DET"):
        return None
    passive = s.dep_ == "nsubjpass" and agent is not None and (o := child(agent, "pobj")) is not None
    if not passive and (s.dep_ == "nsubjpass" or o is None or root.tag_ not in ("VBD", "VBZ", "VBP") or s.i > root.i):
        return None
    if o.pos_ in ("PRON", "DET") or o.tag_ == "VBG":
        return None
    subject, other = part(s), part(o)
    if not subject or not other or len(subject) > 9 or len(other) > 12:
        return None
    used = {t.i for t in subject} | {t.i for t in other} | {root.i}
    be = child(root, "auxpass")
    if passive:
        if be is None or be.lower_ not in ("is", "are", "was", "were"):
            return None
        used |= {be.i, agent.i}
    before = [t for t in sent if t.i < subject[0].i]
    between = [t for t in sent if subject[-1].i < t.i < sent.end and t.i not in used]
    return root, s, o, passive, be, before, subject, other, between


def agreed(root, head, past: bool) -> str:
    if past:
        return form(root.lemma_, "VBD") or root.text
    return (root.lemma_ if plural(head) else form(root.lemma_, "VBZ")) or root.text


def voice(sent, rng, swap: bool = False) -> str | None:
    """The sentence in the other voice; with `swap` in the same one, with the parts exchanged."""
    found = sides(sent)
    if not found:
        return None
    root, s, o, passive, be, before, subject, other, between = found
    past = be.lower_ in ("was", "were") if passive else root.tag_ == "VBD"
    if swap:
        head = o
        if passive:
            verb = ("were" if plural(head) else "was") if past else ("are" if plural(head) else "is")
            text = [told(before), lower(other), verb, root.text, "by", lower(subject), told(between)]
        else:
            text = [told(before), lower(other), agreed(root, head, past), lower(subject), told(between)]
        return tidy(" ".join(text))
    if passive:
        return tidy(" ".join([told(before), lower(other), agreed(root, o, past), lower(subject), told(between)]))
    done = form(root.lemma_, "VBN")
    if not done or root.lemma_ in ("have", "be", "become", "cost", "equal", "resemble", "lack", "fit", "contain", "mean"):
        return None
    verb = ("were" if plural(o) else "was") if past else ("are" if plural(o) else "is")
    return tidy(" ".join([told(before), lower(other), verb, done, "by", lower(subject), told(between)]))


def moved(sent, rng) -> str | None:
    """What leads in put at the end, or a phrase or clause of the end put first."""
    root, ways = sent.root, []
    for t in root.children:
        if t.dep_ not in ("prep", "advcl", "npadvmod"):
            continue
        tokens = part(t)
        if not tokens or len(tokens) > 14:
            continue
        if tokens[0].i == sent.start and tokens[-1].i + 1 < sent.end and sent.doc[tokens[-1].i + 1].text == ",":
            rest = bare(list(sent)[len(tokens) + 1 :])
            if rest:
                ways.append(told(rest) + " " + lower(tokens))
        elif tokens[-1].i >= sent.end - 2 and tokens[0].i > root.i and (t.dep_ == "advcl" or t.lower_ in PREPOSITIONS):
            rest = bare([x for x in sent if x.i < tokens[0].i])
            if len(rest) > 3:
                ways.append(told(bare(tokens)) + ", " + lower(rest))
    return tidy(rng.choice(ways)) if ways else None


def reworded(sent, rng) -> str | None:
    found = [t for t in sent if SYNONYMS.get((t.pos_, t.lemma_.lower())) and not t.ent_type_ and free(t)]
    if not found:
        return None
    put = {}
    for t in rng.sample(found, min(len(found), rng.choice([1, 2, 3]))):
        word = rng.choice(SYNONYMS[t.pos_, t.lemma_.lower()])
        shown = form(word, t.tag_) if t.pos_ in ("VERB", "NOUN") else word if t.tag_ in ("JJ", "RB") else None
        if shown:
            put[t.i] = shown.title() if t.is_title else shown
    return without(sent, set(), put) if put else None


def taken(sent, rng) -> str | None:
    """What an apposition, a relative clause or the second verb of a sentence says, as a sentence of its own."""
    words = {t.lower_ for t in sent}
    if CAREFUL & words:
        return None
    ways, past = [], sent.root.tag_ in ("VBD", "VBN")
    for t in sent:
        if t.dep_ == "appos" and t.head.i < t.i and t.pos_ in ("NOUN", "PROPN"):
            head, tokens = [x for x in part(t.head) if x.i < part(t)[0].i - 1] if part(t) and part(t.head) else [], part(t)
            if head and tokens and tokens[0].lower_ in ("a", "an", "the") and len(head) < 8:
                be = "were" if plural(t.head) and past else "are" if plural(t.head) else "was" if past else "is"
                ways.append(f"{told(bare(head))} {be} {told(tokens)}")
        if t.dep_ == "relcl" and t.tag_ in ("VBD", "VBZ", "VBP", "VBN"):
            who = child(t, "nsubj", "nsubjpass")
            tokens, whole = part(t), part(t.head)
            if who is not None and who.tag_ in ("WP", "WDT") and tokens and whole and tokens[0] == who:
                head = bare([x for x in whole if x.i < who.i])
                if head and len(head) < 9 and head[0].lower_ not in ("those", "something", "anyone", "people", "one"):
                    ways.append(told(head) + " " + told(tokens[1:]))
        if t.dep_ == "conj" and t.head == sent.root and t.tag_ == sent.root.tag_ and t.pos_ in ("VERB", "AUX") and child(t, "nsubj", "nsubjpass") is None:
            s, tokens = child(sent.root, "nsubj", "nsubjpass"), part(t)
            be = child(sent.root, "auxpass", "aux")
            if s is not None and tokens and part(s):
                own = child(t, "aux", "auxpass")
                ways.append(told(part(s)) + " " + (be.text + " " if be is not None and own is None else "") + told(tokens))
    ways = [w for w in ways if len(w.split()) > 4]
    return tidy(rng.choice(ways)) if ways else None


def named(sent, before, rng) -> str | None:
    """The sentence with its first pronoun replaced by the one person of the sentence before."""
    s = child(sent.root, "nsubj", "nsubjpass")
    if before is None or s is None or s.lower_ not in ("he", "she"):
        return None
    people = {e.text for e in before.ents if e.label_ == "PERSON"}
    first = child(before.root, "nsubj", "nsubjpass")
    if len(people) != 1 or first is None or first.ent_type_ != "PERSON" or any(e.label_ == "PERSON" for e in sent.ents):
        return None
    return without(sent, set(), {s.i: people.pop()})


def known(sent) -> bool:
    """Whether a claim can be made of a sentence: it states something by itself."""
    count = sum(1 for t in sent if t.is_alpha)
    text = sent.text
    s = child(sent.root, "nsubj", "nsubjpass")
    return 6 <= count <= 34 and sent.root.pos_ in ("VERB", "AUX") and text[:1].isupper() and text.rstrip()[-1:] in ".”\"" and "?" not in text and s is not None \
        and s.lower_ not in ("you", "i", "we", "this", "these", "that", "they", "it", "which", "who", "your") and not re.search(r"[=<>{}|\[\]#_`]|\b(Figure|Table|Chapter|Example|Link)\b|&|et al|\(\d{4}\)\.", text)


def retold(sent, before, nlp, rng) -> str:
    """A true claim out of a sentence, in one to three steps."""
    text, wanted = named(sent, before, rng), rng.choice([0, 1, 1, 2, 2, 3])
    ways = [voice, voice, moved, shortened, shortened, reworded, taken]
    for way in rng.sample(ways, len(ways)):
        if wanted <= 0:
            break
        new = way(next(nlp(text).sents) if text is not None else sent, rng)
        if new:
            text, wanted = new, wanted - 1
    return text or tidy(sent.text)


# Mistakes. Each gets the parsed claim, what the document has, and gives (claim, labels), or None.
class Stock:
    """What a document and its book have to take wrong things from."""

    def __init__(self):
        self.ents, self.nouns, self.subjects, self.verbs, self.phrases = defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list), []

    def add(self, doc) -> None:
        for e in doc.ents:
            if e.label_ in LABELS and "\n" not in e.text:
                self.ents[e.label_].append(e.text)
        for t in doc:
            if t.tag_ in ("NN", "NNS") and t.is_alpha and len(t) > 2:
                self.nouns[t.tag_].append(t.text)
            elif t.tag_ in ("VBD", "VBZ", "VBP", "VBN") and t.pos_ == "VERB" and t.is_alpha:
                self.verbs[t.tag_, child(t, "dobj") is not None].append(t.text)
            if t.dep_ in ("nsubj", "nsubjpass") and t.pos_ in ("NOUN", "PROPN") and len(part(t)) in range(1, 6):
                self.subjects[plural(t)].append(lower(part(t)))
            if t.dep_ == "prep" and t.lower_ in PREPOSITIONS and t.head.pos_ == "VERB" and 2 <= len(part(t)) <= 6 and part(t)[-1].is_alpha:
                self.phrases.append(lower(part(t)))


def pick(near: list[str], far: list[str], claim: str, rng) -> str | None:
    said = claim.lower()
    for pool in (near, far):
        found = [x for x in dict.fromkeys(pool) if x.lower() not in said and not set(nli_data.words(x)) <= set(nli_data.words(said))]
        if found:
            return rng.choice(found)
    return None


def wrong_name(c, near, far, rng):
    found = [e for e in c.ents if e.label_ in LABELS]
    if not found:
        return None
    e = rng.choice(found)
    other = pick(near.ents[e.label_], far.ents[e.label_] if rng.random() < 0.5 else [], c.text, rng)
    return (tidy(c.text[: e.start_char] + other + c.text[e.end_char :]), EITHER) if other else None


def wrong_number(c, near, far, rng):
    found = nli_changes.number_changed(c.text, rng)
    return (found[0], SURE["contradiction"]) if found else None


def wrong_roles(c, near, far, rng):
    sent = next(c.sents)
    text = voice(sent, rng, swap=True)
    if text and rng.random() < 0.4:
        return text, EITHER
    other = voice(next(c.sents), rng)
    if other and rng.random() < 0.5:  # in the other voice with the verb turned back: "A beat B" - "A was beaten by B"
        found = sides(sent)
        root, s, o, passive, be, before, subject, rest, between = found
        if not passive:
            past, done = root.tag_ == "VBD", form(root.lemma_, "VBN")
            verb = ("were" if plural(s) else "was") if past else ("are" if plural(s) else "is")
            return tidy(" ".join([told(before), lower(subject), verb, done, "by", lower(rest), told(between)])), EITHER
    return (text, EITHER) if text else None


def wrong_subject(c, near, far, rng):
    s = child(next(c.sents).root, "nsubj", "nsubjpass")
    if s is None or s.pos_ == "PRON" or not part(s):
        return None
    other = pick(near.subjects[plural(s)], [], c.text, rng)
    tokens = part(s)
    return (tidy(c.text[: tokens[0].idx] + other + c.text[tokens[-1].idx + len(tokens[-1]) :]), EITHER) if other else None


def wrong_noun(c, near, far, rng):
    found = [t for t in c if t.tag_ in ("NN", "NNS") and t.dep_ in ("dobj", "pobj", "attr", "nsubj", "nsubjpass", "conj") and t.is_alpha and not t.ent_type_]
    if not found:
        return None
    t = rng.choice(found)
    other = pick(near.nouns[t.tag_], [], c.text, rng)
    return (tidy(c.text[: t.idx] + other + c.text[t.idx + len(t) :]), EITHER) if other else None


def wrong_verb(c, near, far, rng):
    root = next(c.sents).root
    if root.pos_ != "VERB":
        return None
    other = pick(near.verbs[root.tag_, child(root, "dobj") is not None], [], c.text, rng)
    return (tidy(c.text[: root.idx] + other + c.text[root.idx + len(root) :]), EITHER) if other else None


OPPOSITE: dict[str, list[str]] = {}


def opposites() -> dict[str, list[str]]:
    if not OPPOSITE:
        for line in (Path(__file__).resolve().parents[2] / "stream" / "check" / "opposites.txt").read_text().splitlines():
            both = line.split()
            if line[:1] != "#" and len(both) == 2:
                OPPOSITE.setdefault(both[0], []).append(both[1])
                OPPOSITE.setdefault(both[1], []).append(both[0])
        for a, others in nli_changes.OTHER.items():
            OPPOSITE.setdefault(a, []).extend(others)
    return OPPOSITE


def wrong_way(c, near, far, rng):
    """A word turned into its opposite."""
    table = opposites()
    found = [t for t in c if t.pos_ in ("VERB", "ADJ", "ADV", "NOUN", "ADP", "SCONJ") and (t.lower_ in table or t.lemma_.lower() in table) and not t.ent_type_ and free(t)]
    if not found:
        return None
    t = rng.choice(found)
    if t.lower_ in nli_changes.OTHER:
        other = rng.choice(nli_changes.OTHER[t.lower_])
    elif t.lower_ in table and t.tag_ not in ("VBD", "VBN", "VBZ", "NNS"):
        other = rng.choice(table[t.lower_])
    else:
        other = form(rng.choice(table.get(t.lemma_.lower(), table.get(t.lower_))), t.tag_)
    return (tidy(c.text[: t.idx] + other + c.text[t.idx + len(t) :]), EITHER) if other else None


def denied(c, near, far, rng):
    """A "not" more or less, with the verb in its place."""
    sent = next(c.sents)
    root = sent.root
    no = child(root, "neg")
    aux = child(root, "aux", "auxpass")
    if no is not None:
        if aux is not None and aux.lemma_ == "do":
            verb = form(root.lemma_, {"did": "VBD", "does": "VBZ"}.get(aux.lower_, "VBP"))
            return (without(sent, {no.i, aux.i}, {root.i: verb}), SURE["contradiction"]) if verb else None
        return without(sent, {no.i}), SURE["contradiction"]
    at = aux or (root if root.lemma_ == "be" else None)
    if at is not None:
        return without(sent, set(), {at.i: at.text + rng.choice([" not", " not", " never"])}), SURE["contradiction"]
    help_ = {"VBD": "did not", "VBZ": "does not", "VBP": "do not"}.get(root.tag_)
    return (without(sent, set(), {root.i: f"{help_} {root.lemma_}"}), SURE["contradiction"]) if help_ else None


def stronger(c, near, far, rng):
    """More or less certain, or of more or fewer, than it was."""
    found = [t for t in c if t.lower_ in MODALS and t.tag_ == "MD" and t.whitespace_ and t.nbor().lower_ != "not" or t.lower_ in AMOUNTS and t.dep_ in ("amod", "det", "advmod", "nsubj")]
    if found:
        t = rng.choice(found)
        other = rng.choice(MODALS[t.lower_] if t.tag_ == "MD" else AMOUNTS[t.lower_])
        return tidy(c.text[: t.idx] + other + c.text[t.idx + len(t) :]), EITHER
    root = next(c.sents).root
    if root.tag_ in ("VBZ", "VBP") and not CAREFUL & {t.lower_ for t in c} and rng.random() < 0.4:
        at = root.idx + len(root) if root.lemma_ == "be" else root.idx
        return tidy(c.text[:at] + rng.choice([" always ", " never ", " rarely ", " only rarely "]) + c.text[at:]), EITHER
    return None


def invented(c, near, far, rng):
    """A detail of another text at the end."""
    more = pick(far.phrases, [], c.text, rng)
    text = c.text.rstrip(" .")
    return (tidy(rng.choice([f"{text} {more}", f"{more}, {text[:1].lower() + text[1:] if not c[0].ent_type_ else text}"])), OPEN) if more else None


MISTAKES = {"name": (wrong_name, 4), "number": (wrong_number, 2), "roles": (wrong_roles, 6), "subject": (wrong_subject, 3), "noun": (wrong_noun, 2.5), "verb": (wrong_verb, 1),
            "opposite": (wrong_way, 3), "denied": (denied, 0.8), "stronger": (stronger, 2.5), "invented": (invented, 1)}


def mistaken(c, near, far, rng) -> tuple[str, frozenset, str] | None:
    kinds = list(MISTAKES)
    for _ in range(6):
        kind = rng.choices(kinds, [MISTAKES[k][1] for k in kinds])[0]
        found = MISTAKES[kind][0](c, near, far, rng)
        if found and found[0] and found[0] != c.text:
            return *found, kind
    return None


def said(sent, rng) -> list[tuple[str, frozenset, str]]:
    """Of a sentence that tells an opinion or a condition: the same said otherwise, and without what it hangs on."""
    root = sent.root
    clause, s = child(root, "ccomp"), child(root, "nsubj")
    if root.lemma_ in REPORTS and clause is not None and s is not None and s.pos_ in ("NOUN", "PROPN") and part(s) and part(clause) and root.i > s.i and child(root, "neg") is None:
        inner = bare([t for t in part(clause) if not (t.dep_ == "mark" and t.lower_ == "that")])
        who, what = lower(part(s)), told(inner)
        if len(inner) >= 5 and clause.i > root.i and inner[0].lower_ not in ("he", "she", "it", "they"):
            true = rng.choice([f"according to {who}, {what}", f"{who} are of the opinion that {what}" if plural(s) else f"{who} is of the opinion that {what}", f"{what}, in the view of {who}"])
            return [(tidy(true), YES, "said"), (tidy(rng.choice([what, what, f"it is certain that {what}"])), OPEN, "fact")]
    for t in root.children:
        if t.dep_ == "advcl" and (m := child(t, "mark")) is not None and m.lower_ in ("if", "unless") and part(t):
            rest = bare([x for x in sent if x not in set(part(t))])
            if len(rest) > 4:
                main = told(rest)
                lead = tidy(f"{told(bare(part(t)))}, {main.lstrip(' ,')}") if part(t)[0].i > root.i else tidy(f"{main.lstrip(' ,')} {lower(part(t))}")
                return [(lead, YES, "condition"), (tidy(main), OPEN, "unconditional")]
    return []


def crossed(a, b, rng) -> list[tuple[str, frozenset, str]]:
    """Two sentences as one, and with their subjects exchanged."""
    s, t = child(a.root, "nsubj", "nsubjpass"), child(b.root, "nsubj", "nsubjpass")
    if s is None or t is None or part(s) == [] or part(t) == [] or s.lemma_ == t.lemma_ or plural(s) != plural(t) or "PRON" in (s.pos_, t.pos_):
        return []
    if part(s)[0].i != a[0].i or part(t)[0].i != b[0].i or len(a) + len(b) > 44:
        return []
    x, y, p, q = lower(part(s)), lower(part(t)), told(bare([w for w in a if w.i > part(s)[-1].i])), told(bare([w for w in b if w.i > part(t)[-1].i]))
    link = rng.choice([", and ", ", while ", "; ", ", and at the same time "])
    true, false = (f"{x} {p}", f"{y} {q}"), (f"{y} {p}", f"{x} {q}")
    order = lambda two: tidy(link.join(two if rng.random() < 0.6 else two[::-1]))
    return [(order(true), YES, "fused"), (rng.choice([order(false), tidy(rng.choice(false))]), EITHER, "crossed")]


def premise(text: str, claim: str, needed: list[str], rng) -> str | None:
    """What the guard would read of the document; None if it lacks a sentence that a true claim was made of."""
    found = nli_data.gathered(text, claim) if rng.random() < 0.5 else nli_data.best_windows(text, claim, 1, rng.randint(20, nli_data.WINDOW_WORDS))[0]
    return found if found and all(n in found for n in needed) else None


def documents(folder: Path, count: int, rng) -> list[tuple[str, str]]:
    """(source, text): paragraphs of books with the one before and after, encyclopedia sentences, documentation, parts of web pages."""
    banned, out = nli_data.dev_keys(folder), []
    books = [r for r in data.read(folder, "openstax_text") if r["lang"] == "en"]
    calm = ("history", "sociology", "government", "political", "psychology", "business", "marketing", "anatomy", "micro", "philosophy", "econom", "property")
    for i in range(1, len(books) - 1):
        near = [r["text"] for r in books[i - 1 : i + 2] if r["src"] == books[i]["src"]]
        text = " ".join(near if rng.random() < 0.5 else near[1:2] or near)
        many = 50 <= len(text.split()) <= 330
        if many and (any(c in books[i]["src"] for c in calm) or rng.random() < 0.25) and all(data.key(t) not in banned for t in near):
            out.append((books[i]["src"], text))
    out = rng.sample(out, min(len(out), int(0.45 * count)))
    split = [nli_changes.untokenised(r["b"]) for r in data.read(folder, "wiki_split")]
    out += [("wiki", t) for t in rng.sample(split, min(len(split), int(0.14 * count))) if data.key(t) not in banned]
    prose = [r["text"] for r in data.read(folder, "real_benign") if r["kind"] == "readme and docs" and r.get("lang", "en") in ("en", None)]
    for text in rng.sample(prose, len(prose)):
        lines = [l for l in text.split("\n") if len(l.split()) > 12 and re.match(r"[A-Z][^|<{}]*[.]$", l.strip())]
        if len(out) < 0.65 * count and len(lines) > 2 and sum(map(len, lines)) < 1.01 * len("".join(lines).encode("ascii", "ignore")):
            out.append(("docs", " ".join(lines[:10])[:2000]))
    whole, parts = nli_data.pages(folder, banned)
    pages = []
    for text in dict.fromkeys([r["premise"] for r in whole] + [r["evidence"] for r in parts]):
        sents = nli_data.sentences(text)
        pages += [p for a in range(0, len(sents), PAGE_SENTENCES) if 60 <= len((p := " ".join(sents[a : a + PAGE_SENTENCES])).split()) <= 400]
    out += [("pages", p) for p in rng.sample(pages, min(len(pages), count - len(out)))]
    rng.shuffle(out)
    return out


def parser(model: str):
    """A spaCy pipeline, or that of nli_parse."""
    if model.startswith("clearnlp:"):
        from . import nli_parse

        return nli_parse.Parser(int(model.split(":")[1]))
    import spacy

    return spacy.load(model)


def build(folder: Path, count: int, model: str, seed: int = 37) -> list[Pair]:
    """The pairs of `count` documents."""
    rng, nlp, out = random.Random(seed), parser(model), []
    texts = documents(folder, count, rng)
    stocks: dict[str, Stock] = defaultdict(Stock)
    nlp.max_length = 10_000

    def add(text, claim, may, kind, needed, marks=None):
        claim = tidy(claim)
        if not 4 <= len(claim.split()) <= 48:
            return
        seen = premise(text, claim, needed, rng)
        if seen:
            out.append(Pair(seen, claim, may, "own/retold", kind, marks))

    before = None
    for (src, text), doc in zip(texts, nlp.pipe((t for _, t in texts), batch_size=32)):
        near, far = Stock(), stocks[src]
        near.add(doc)
        sents = list(doc.sents)
        good = [i for i, s in enumerate(sents) if known(s) or (i and named(s, sents[i - 1], rng))]
        made = []
        for i in rng.sample(good, min(len(good), 3 if src != "wiki" else 1)):
            s, own = sents[i], sents[i].text.strip()
            extra = said(s, rng)
            for claim, may, kind in extra:
                add(text, claim, may, kind, [own], [] if may == YES else None)
            if extra:
                continue
            claim = retold(s, sents[i - 1] if i else None, nlp, rng)
            parsed = nlp(claim)
            made.append((i, parsed))
            lead = rng.choice(LEADS) if rng.random() < 0.08 else ""
            put = lambda c: lead + (c if not lead or parsed[0].ent_type_ or parsed[0].tag_ in ("NNP", "NNPS") else c[:1].lower() + c[1:])
            if rng.random() < 0.9:
                add(text, put(claim), YES, "kept", [own], [])
            for _ in range(rng.choice([1, 1, 2])):
                wrong = mistaken(parsed, near, far, rng)
                if wrong:
                    marks = nli_data.changes(claim, put(wrong[0])) if wrong[2] in ("name", "number", "noun", "verb", "opposite", "subject") and not lead else None
                    add(text, put(wrong[0]), wrong[1], wrong[2], [], marks)
            if before and before[0] == src and rng.random() < 0.08:
                add(text, before[1], EITHER, "elsewhere", [])
            before = (src, claim)
        if len(made) > 1 and rng.random() < 0.7:
            (i, a), (j, b) = made[:2]
            needed = [sents[i].text.strip(), sents[j].text.strip()]
            for claim, may, kind in crossed(next(a.sents), next(b.sents), rng):
                add(text, claim, may, kind, needed if may == YES else [], [] if may == YES else None)
        far.add(doc)
        for pool in [*far.ents.values(), *far.nouns.values(), *far.subjects.values(), far.phrases]:
            del pool[:-200]
    return out


def write(rows: list[Pair], file: Path) -> None:
    file.write_text("".join(json.dumps({"premise": r.premise, "claim": r.claim, "may": sorted(r.may), "kind": r.kind, "marks": r.marks}) + "\n" for r in rows))


def read(file: Path) -> list[Pair]:
    rows = map(json.loads, file.read_text().splitlines())
    return [Pair(r["premise"], r["claim"], frozenset(r["may"]), "own/retold", r["kind"], r["marks"] and [tuple(m) for m in r["marks"]]) for r in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/retold.jsonl"))
    parser.add_argument("--count", type=int, default=9000, help="documents")
    parser.add_argument("--model", default="en_core_web_sm", help="of spaCy: a package or a folder; or clearnlp:PORT, see nli_parse")
    parser.add_argument("--seed", type=int, default=37)
    args = parser.parse_args()
    write(build(args.data, args.count, args.model, args.seed), args.out)


if __name__ == "__main__":
    main()
