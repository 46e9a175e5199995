"""Makes questions that have one right answer, for `go run ./bench/real -only worth -prompts FILE`.

python3 bench/real/prompts.py --each 60 --gsm8k DIR --cruxeval DIR --snips DIR --mmlu-pro DIR > FILE

The folders are checkouts of the repositories openai/grade-school-math (MIT),
facebookresearch/cruxeval (MIT), sonos/nlu-benchmark (CC0) and TIGER-AI-Lab/MMLU-Pro (Apache-2.0).
Of each the questions are drawn evenly, in the order of its file. One line a question:
{"id", "src", "text", "answer", "kind"}, where kind says how an answer is compared: number, literal
or word.
"""

import argparse
import json
import pathlib
import sys
import zipfile
from collections.abc import Iterator

INTENTS = (
    "AddToPlaylist",
    "BookRestaurant",
    "GetWeather",
    "PlayMusic",
    "RateBook",
    "SearchCreativeWork",
    "SearchScreeningEvent",
)
Row = tuple[str, str, str]  # the question, its answer, how an answer is compared


def gsm8k(root: pathlib.Path) -> Iterator[Row]:
    """Word problems of primary school, the test part."""
    with (root / "grade_school_math/data/test.jsonl").open(encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            answer = row["answer"].rsplit("####", 1)[1].strip().replace(",", "")
            yield f"{row['question']}\n\nEnd with a line `Answer: N`, where N is a number.", answer, "number"


def cruxeval(root: pathlib.Path) -> Iterator[Row]:
    """What a Python function returns."""
    with (root / "data/cruxeval.jsonl").open(encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            text = (
                f"What does f({row['input']}) return?\n\n```python\n{row['code']}\n```\n\n"
                "End with a line `Answer: V`, where V is the value as a Python literal."
            )
            yield text, row["output"], "literal"


def snips(root: pathlib.Path) -> Iterator[Row]:
    """What a user of a voice assistant wants: the validation parts, one of each intent in turn."""
    parts = []
    for intent in INTENTS:
        path = root / "2017-06-custom-intent-engines" / intent / f"validate_{intent}.json"
        rows = json.loads(path.read_bytes().decode("utf-8", "replace"))[intent]
        parts.append(["".join(piece["text"] for piece in row["data"]).strip() for row in rows])
    for texts in zip(*parts, strict=False):
        for intent, said in zip(INTENTS, texts, strict=True):
            text = (
                f'A user of a voice assistant says: "{said}"\n\nWhich of these is wanted: '
                f"{', '.join(INTENTS)}?\n\nEnd with a line `Answer: NAME`, with one of these names."
            )
            yield text, intent, "word"


def mmlu_pro(root: pathlib.Path) -> Iterator[Row]:
    """Questions of 14 subjects with up to ten options."""
    archive = root / "eval_results/model_outputs_Llama-2-13b-hf_5shots.zip"
    with zipfile.ZipFile(archive) as z:
        name = next(n for n in z.namelist() if n.endswith(".json") and "/." not in n)
        rows = json.loads(z.read(name))
    for row in sorted(rows, key=lambda r: r["question_id"]):
        options = "\n".join(f"{letter}. {o}" for letter, o in zip("ABCDEFGHIJ", row["options"], strict=False))
        text = f"{row['question']}\n\n{options}\n\nEnd with a line `Answer: X`, where X is one of the letters."
        yield text, row["answer"], "word"


def main() -> None:
    """Writes the questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=60, help="questions of each source")
    sources = {"gsm8k": gsm8k, "cruxeval": cruxeval, "snips": snips, "mmlu-pro": mmlu_pro}
    for name in sources:
        parser.add_argument(f"--{name}", type=pathlib.Path)
    args = parser.parse_args()
    for name, read in sources.items():
        root = getattr(args, name.replace("-", "_"))
        if root is None:
            continue
        rows = list(read(root))
        n = min(args.each, len(rows))
        for i in range(n):
            text, answer, kind = rows[i * len(rows) // n]
            row = {"id": f"{name}-{i * len(rows) // n}", "src": name, "text": text, "answer": answer, "kind": kind}
            sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
