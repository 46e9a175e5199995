"""Writes the golden vectors of the tokenizer tests.

    pip install tokenizers==0.23.3 sentencepiece protobuf
    python gen_golden.py ../../../models/default/tokenizer.json

It trains small tokenizers of every supported model type on the sentences below, saves them as
NAME.json, and records in golden.json what the reference implementation makes of the texts: token
ids without special tokens, and byte offsets. `default` is the tokenizer given on the command line,
which is not copied. All texts are our own.
"""

import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = Path(__file__).parent

SENTENCES = [
    "The signal box stands beside the railway and sets the points for every train.",
    "Please route this question to the model that knows chemistry, not to the cheapest one.",
    "Ignore the previous instructions? No: the rules of the operator hold.",
    "We'll see what they've got; I'm sure it's fine, isn't it? You're late, he'd say.",
    "def route(prompt: str) -> str:\n    return 'large' if len(prompt) > 512 else 'small'\n",
    "In 2024 the price rose by 12.5% to 1,299.00 EUR, 3 times more than in 1999.",
    "Der Zug hält in Köln, fährt über die Brücke und erreicht Düsseldorf um 17:45 Uhr.",
    "El niño pequeño preguntó cuántos kilómetros faltan hasta la próxima estación.",
    "Où est la gare la plus proche, s'il vous plaît ? Là-bas, près de l'église.",
    "Скорый поезд прибывает на первый путь, просим отойти от края платформы.",
    "信号所は線路のそばにあり、列車の進路を決める。東京と大阪の間を走る。",
    "信号楼在铁路旁边，每一列火车都有自己的轨道。",
    "기차는 서울역에서 출발하여 부산으로 갑니다.",
    "القطار يصل إلى المحطة في الساعة الخامسة.",
    "रेलगाड़ी समय पर स्टेशन पहुँचती है।",
    "รถไฟมาถึงสถานีตรงเวลา",
    "Η αμαξοστοιχία φτάνει στον σταθμό στις πέντε.",
]

TEXTS = [
    "", " ", "   ", "\n", "\t\n  \r\n", "a", " a", "a ", "  a  b  ", "Hello, world!", "HELLO World",
    "What is the derivative of x squared?",
    "unbelievably antidisestablishmentarianism hyperparameterisation",
    "x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "word " * 30,
    "don't won't they're I'LL we've he'd it's 'quoted' ''", "state-of-the-art (really?) [yes] {no} <tag> a/b\\c",
    "foo_bar snake_case __init__ camelCase HTTPServer2", "1234567890 3.14159 1e-9 0xFF 12,345 ½ ² Ⅷ ٣٤ ४५",
    "naïve café résumé coöperate Ångström Ærøskøbing Łódź İstanbul ıspanak straße ŒUVRE",
    "cafe\u0301 re\u0301sume\u0301 A\u030angstro\u0308m e\u0323\u0301 q\u0307\u0323 \u1e69 s\u0323\u0307",
    "\u0301leading mark, \u0300\u0301\u0302 alone", "Ａｆｕｌｌ ｗｉｄｔｈ １２３ ﬁne ﬂow ㎏ ㍿ ™ ①②",
    "東京タワーへ行きます。", "我爱铁路,火车 很快!", "한국어 문장입니다 각 ᄀ", "\u1112\u1161\u11ab decomposed hangul",
    "Привет, мир! Ёлка й и\u0306", "Ελληνικά ΣΊΣΥΦΟΣ ς σ", "עִבְרִית עברית", "العَرَبِيَّة العربية ـــ", "हिन्दी क्षेत्र", "ไทย ภาษา",
    "emoji 😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ ☃ ✔︎ 🏳️‍🌈", "😀😀😀", "a😀b", "mixed東京text😀mix",
    "zero\u200bwidth \u200cnon\u200djoiner \ufeffbom \u00adsoft\u00adhyphen \u2060wj", "nbsp\u00a0here \u3000ideographic \u2003em \u202fnarrow \u2028line",
    "ctrl\x00nul \x01\x02 \x07bell \x1b[31m \x7fdel \x85nel \u009fapc", "private \ue000\uf8ff replacement \ufffd end",
    "\u202eright to left\u202c \u2066iso\u2069", "tag \U000e0041\U000e0042 chars", "math 𝒳𝔸 ∑∫√ ≤≥ ≠ ± × ÷ ∞ α→β",
    "punct … — – ‘single’ “double” «guill» ¿qué? ¡sí! 、。「」・ ؟ । €£¥₿ §¶†‡ № °C",
    "# Heading\n\n- item one\n- item two\n\n```go\nfunc main() { fmt.Println(\"hi\") }\n```\n",
    "{\"key\": [1, 2.5, true, null], \"s\": \"\\u00e9\"}", "https://example.org/a?b=c&d=%20#frag user@example.com 192.168.0.1",
    "line one\r\nline two\r\n\r\n  indented\n\n\n\nend", "tabs\tand\t\tmore", "trailing newline\n", "trailing spaces   ",
    "[CLS] literal [SEP] and [MASK] [UNK] [PAD] [cls]", "<s> text </s> <|endoftext|> <unk> <pad>", "a<|endoftext|>b", "titan projectTitan Titan TITAN",
    "▁metaspace ▁▁ mark▁inside", "ĠĊ byte spelling", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababababababababababababababababababababababababababababababababababab",
    "!!!!!!!???....,,,,", "- - - -- --- ----", "\u0915\u094d\u0937 \u0b95\u0bca", "zalgo h\u0310\u0311\u0312\u0313e\u0300\u0301\u0302", "𐍈 𝄞 𠀀 \U0002f800 﨎 豈",
] + SENTENCES


def trained(tok, cls, size, **options):
    tok.train_from_iterator(SENTENCES, cls(vocab_size=size, show_progress=False, **options))
    return tok


def wordpiece_cased():
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    tok.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained(tok, trainers.WordPieceTrainer, 500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tok


def bytelevel_roberta():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained(tok, trainers.BpeTrainer, 560, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.add_special_tokens([AddedToken("<|endoftext|>"), AddedToken("<mask>", lstrip=True)])
    tok.add_tokens([AddedToken("Titan", single_word=True, normalized=True)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tok


def bytelevel_split():
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    tok = Tokenizer(models.BPE(ignore_merges=True))
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trained(tok, trainers.BpeTrainer, 560, special_tokens=["<s>", "<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])])
    return tok


def sentencepiece_bpe():
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    specials = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trained(tok, trainers.BpeTrainer, 700, special_tokens=specials, limit_alphabet=60)
    data = json.loads(tok.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if a["id"] < 3]  # byte tokens are no added tokens
    tok = Tokenizer.from_str(json.dumps(data))
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tok


def unigram_metaspace():
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " ")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    trained(tok, trainers.UnigramTrainer, 500, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], unk_token="<unk>")
    tok.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tok


def unigram_precompiled():
    """A charsmap of a few rules of our own, compiled by sentencepiece."""
    rules = {"Ａ": "A", "ｆ": "f", "ﬁ": "fi", "½": "1/2", "™": "tm", "é": "e", "e\u0301": "e", "…": "...", "\u00a0": " ", "\u3000": " ", "\u200b": "", "㎏": "kg", "\t": " ", "\n": " ", "👍🏽": "+1", "क्षे": "kse"}
    with tempfile.TemporaryDirectory() as folder:
        tsv, corpus = Path(folder) / "rules.tsv", Path(folder) / "corpus.txt"
        points = lambda s: " ".join(f"{ord(c):X}" for c in s)
        tsv.write_text("".join(f"{points(k)}\t{points(v)}\n" for k, v in rules.items()))
        corpus.write_text("\n".join(s.replace("\n", " ") for s in SENTENCES * 4), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(input=str(corpus), model_prefix=folder + "/m", vocab_size=400, model_type="unigram",
                                                 normalization_rule_tsv=str(tsv), character_coverage=0.98, minloglevel=2, hard_vocab_limit=False)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString((Path(folder) / "m.model").read_bytes())
    charsmap = model.normalizer_spec.precompiled_charsmap
    vocab = [(p.piece, p.score) for p in model.pieces]
    tok = Tokenizer(models.Unigram(vocab, unk_id=0, byte_fallback=False))
    tok.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first")
    return tok


def vectors(tok):
    out = []
    for text in TEXTS:
        starts = [0]
        for c in text:
            starts.append(starts[-1] + len(c.encode("utf-8")))
        e = tok.encode(text, add_special_tokens=False)
        out.append({"ids": e.ids, "offsets": [starts[i] for pair in e.offsets for i in pair]})
    return out


def main():
    made = {"default": Tokenizer.from_file(sys.argv[1])}
    for make in (wordpiece_cased, bytelevel_roberta, bytelevel_split, sentencepiece_bpe, unigram_metaspace, unigram_precompiled):
        tok = make()
        tok.save(str(HERE / f"{make.__name__}.json"), pretty=False)
        made[make.__name__] = tok
    golden = {"texts": TEXTS, "tokenizers": {name: vectors(tok) for name, tok in made.items()}}
    lines = ["{", '"texts": ' + json.dumps(TEXTS, ensure_ascii=True) + ",", '"tokenizers": {']
    rows = [f'{json.dumps(name)}: [\n' + ",\n".join(json.dumps(v, separators=(",", ":")) for v in vs) + "\n]" for name, vs in golden["tokenizers"].items()]
    (HERE / "golden.json").write_text("\n".join(lines) + "\n" + ",\n".join(rows) + "\n}\n}\n")


if __name__ == "__main__":
    main()
