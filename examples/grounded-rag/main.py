"""Asks a question with three facts, in each mode of the guard, and prints the answer as it arrives.

The answer comes from a simulated server, which recites it: every sentence but one agrees with the
facts. SIGNALBOX_URL is the base URL. `main.py MODE...` asks in these modes only. Exits with 1 and a
message when an answer is not what it should be.
"""

import json
import os
import pathlib
import sys
import time

import openai

HERE = pathlib.Path(__file__).parent
FACTS = json.loads((HERE / "facts.json").read_text())
ANSWER = json.loads((HERE / "answers.jsonl").read_text())["text"]
QUESTION = "How do I return my headphones, and when do I get my money back?"
FALSE = "Once the parcel arrives at the warehouse, the refund is paid within 15 business days."
MARKER = " [unverified]"  # guard.marker in signalbox.yaml


def check(ok, message):
    """Ends the example when something is off."""
    if not ok:
        sys.exit(f"grounded-rag: {message}")


def ask(client, mode):
    """Yields the chunks of an answer that the guard checks against the facts."""
    passages = "\n".join(f"- {fact['text']}" for fact in FACTS)
    return client.chat.completions.create(
        model="auto",
        stream=True,
        messages=[
            {"role": "system", "content": f"Answer from these facts only:\n{passages}"},
            {"role": "user", "content": QUESTION},
        ],
        # What is below `signalbox` stays with the proxy; the model server never sees it.
        extra_body={"signalbox": {"facts": FACTS, "guard": mode}},
    )


def receive(chunks):
    """Prints an answer while it arrives. Returns its text, how it ended, the summary, and how long
    after the false sentence its marker came, in milliseconds."""
    text, finish, summary, told, late = "", None, None, None, None
    for chunk in chunks:
        choice = chunk.choices[0]
        piece = choice.delta.content or ""
        text += piece
        if told is None and FALSE in text:
            told = time.monotonic()
        if late is None and told is not None and MARKER in text:
            late = 1000 * (time.monotonic() - told)
        finish = choice.finish_reason or finish
        summary = (getattr(chunk, "x_signalbox", None) or {}).get("guard", summary)
        print(paint(piece), end="", flush=True)
    print()
    return text, finish, summary, late


def paint(piece):
    """Colours a marker, on a terminal."""
    mark = MARKER.strip()
    return piece.replace(mark, f"\033[1;31m{mark}\033[0m") if sys.stdout.isatty() else piece


def observe(text, finish, summary):
    check(text == ANSWER, f"observe changed the answer: {text!r}")
    check(finish == "stop", f"finish_reason is {finish}")


def annotate(text, finish, summary):
    check(text == ANSWER.replace(FALSE, FALSE + MARKER), f"the marker is not right behind the false sentence, alone: {text!r}")
    check(finish == "stop", f"finish_reason is {finish}")
    failed(summary, "annotate")


def terminate(text, finish, summary):
    before, after = ANSWER.split(FALSE)
    check(text.startswith(before), f"the answer does not begin with what was true: {text!r}")
    check(after.strip()[:20] not in text, f"the answer went on after the false sentence: {text!r}")
    check(finish == "content_filter", f"finish_reason is {finish}")
    failed(summary, "terminate")


def hold(text, finish, summary):
    check("15" not in text and "refund is paid" not in text, f"the false sentence was shown: {text!r}")
    check(text == ANSWER.replace(FALSE, MARKER.strip()), f"true sentences are missing, or marked: {text!r}")
    check(finish == "stop", f"finish_reason is {finish}")
    failed(summary, "hold")


def failed(summary, mode):
    """Checks the summary on the chunk that ends the answer: one claim failed, the planted one."""
    check(summary, "the last chunk has no x_signalbox.guard")
    check(summary["mode"] == mode and summary["verdict"] == "unsupported", f"the summary is {summary}")
    check(len(summary["failed"]) == 1, f"the failed claims are {summary['failed']}")
    claim = summary["failed"][0]
    # Places are code points of what the model wrote, also where the client did not get to see it.
    check(ANSWER[claim["start"] : claim["end"]].strip() == FALSE, f"the failed claim is {claim}")
    check(claim["verdict"] == "contradicted" and claim["fact"] == "refunds", f"the verdict is {claim}")


def main():
    modes = {"observe": observe, "annotate": annotate, "terminate": terminate, "hold": hold}
    url = os.environ.get("SIGNALBOX_URL", "http://127.0.0.1:8080/v1")
    client = openai.OpenAI(base_url=url, api_key=os.environ.get("SIGNALBOX_API_KEY", "none"), timeout=30)
    for mode in sys.argv[1:] or modes:
        check(mode in modes, f"{mode} is none of {', '.join(modes)}")
        print(f"== {mode}")
        try:
            text, finish, summary, late = receive(ask(client, mode))
        except openai.OpenAIError as err:
            check(False, f"{mode}: {err}")
        modes[mode](text, finish, summary)
        for claim in (summary or {}).get("failed", []):
            print(f"   characters {claim['start']} to {claim['end']}: {claim['verdict']} by fact {claim['fact']}")
        print(f"   finish_reason {finish}" + (f", the marker came {late:.1f} ms after the sentence" if late is not None else ""))


if __name__ == "__main__":
    main()
