"""Runs the Python of the README and of docs/ with the official SDKs, as it is written there.

A block is run with `client` in place where it makes none itself: that of the SDK it is about. The
address 127.0.0.1:8080 is that of SIGNALBOX_URL. Exits with 1 when a block raises, or prints or
returns nothing.
"""

import contextlib
import io
import os
import pathlib
import re
import sys
import traceback

import anthropic
import openai

URL = os.environ.get("SIGNALBOX_URL", "http://127.0.0.1:8080/v1")
BLOCK = re.compile(r"^```python *(.*?)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def told(scope, printed):
    """What a block made: what it printed, or the text of what it was answered."""
    if printed.strip():
        return printed
    if "message" in scope:
        return "".join(part.text for part in scope["message"].content)
    if "answer" in scope:
        return "".join(chunk.choices[0].delta.content or "" for chunk in scope["answer"])
    return ""


def run(code):
    base = URL.removesuffix("/v1")
    code = code.replace("http://127.0.0.1:8080", base)
    scope = {"openai": openai, "anthropic": anthropic}
    if "client =" not in code:
        scope["client"] = openai.OpenAI(base_url=URL, api_key="none")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "block", "exec"), scope)
        return told(scope, printed.getvalue())


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    ran = failed = 0
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            where = f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
            if match[1].startswith("(not run:"):
                continue
            ran += 1
            try:
                answer = run(match[2])
            except Exception:
                traceback.print_exc()
                answer = ""
            if not answer.strip():
                failed += 1
                print(f"{where}: failed", file=sys.stderr)
                continue
            print(f"{where}: {' '.join(answer.split())[:80]}")
    print(f"{ran} blocks of Python, {failed} failed")
    if failed or ran < 3:
        sys.exit(1)


if __name__ == "__main__":
    main()
