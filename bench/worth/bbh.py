"""Makes outcomes of BIG-Bench Hard: one model that answers at once, and step by step.

python bench/worth/bbh.py CHECKOUT TOKENIZER.json > outcomes.jsonl

CHECKOUT is github.com/suzgunmirac/BIG-Bench-Hard (MIT), whose code-davinci-002-outputs have what a
model answered to 6,511 questions of 27 tasks in both ways (arXiv:2210.09261). An answer is right when
what follows "the answer is", or all of it, is the target, whatever its case and a full stop. Tokens
are counted with the tokenizer given, for the model's own is in no package.
"""

import json
import pathlib
import re
import sys

from tokenizers import Tokenizer


def outputs(folder: pathlib.Path, task: str) -> list[dict]:
    """The rows of a task."""
    return json.loads(next(folder.glob(f"{task}_few_shot_template_*.json")).read_text(encoding="utf-8"))["outputs"]


def plain(text: str) -> str:
    """An answer without what does not count."""
    return re.sub(r"\s+", " ", text).strip().rstrip(".").strip().lower()


def right(row: dict) -> bool:
    """Whether a row's answer is its target."""
    answer = row["prediction"].split("\n\nQ:")[0].split("the answer is")[-1]
    return plain(answer) == plain(row["target"])


def question(prompt: str) -> tuple[str, str]:
    """The instruction of a prompt, and its last question."""
    first, *_, last = prompt.split("\n\nQ: ")
    return first, last.rsplit("\nA:", 1)[0]


def main(checkout: str, tokenizer: str) -> None:
    """Prints the outcomes."""
    count = Tokenizer.from_file(tokenizer)
    root = pathlib.Path(checkout) / "code-davinci-002-outputs"
    ways = {"direct": root / "code-davinci-002-direct", "steps": root / "code-davinci-002-cot"}
    for file in sorted(ways["direct"].glob("*_few_shot_template_*[0-9].json")):
        task = file.name.split("_few_shot_template_")[0]
        both = {way: outputs(folder, task) for way, folder in ways.items()}
        for i, (direct, steps) in enumerate(zip(both["direct"], both["steps"], strict=True)):
            instruction, asked = question(direct["input"])
            if asked != question(steps["input"])[1]:
                raise SystemExit(f"{task} {i}: the two ways have other questions")
            out = {}
            for way, row in (("direct", direct), ("steps", steps)):
                said = row["prediction"].split("\n\nQ:")[0]
                out[way] = [int(right(row)), len(count.encode(said, add_special_tokens=False).ids)]
            print(json.dumps({"id": f"{task}-{i}", "src": "bbh", "task": task, "text": f"{instruction}\n\n{asked}", "out": out}))


if __name__ == "__main__":
    main(*sys.argv[1:])
