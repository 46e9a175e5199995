"""Agent A reads a long contract and hands over; agent B goes on from a pointer.

A asks about the contract in a session of its own and lets signalbox keep the conversation
(save_context). B names what was kept instead of sending it, and has another system prompt. For
comparison the same questions are then sent in full to a server that has seen nothing. SIGNALBOX_URL
is the base URL, SIMULATORS the addresses of the simulated servers, which know what they were sent.
Exits with 1 and a message when something is not as it should be.
"""

import base64
import json
import os
import sys
import urllib.request

import openai

from contract import contract

SESSION = "deal-7"
QUESTIONS_A = ["What does the Customer have to do when the Products arrive?", "And who pays when they are late?"]
QUESTIONS_B = ["Which penalties can the Supplier be charged?", "Which clauses limit liability?", "Which of them conflict?"]


def check(ok, message):
    """Ends the example when something is off."""
    if not ok:
        sys.exit(f"agent-handoff: {message}")


class Ledger:
    """Asks, and keeps what every request cost."""

    def __init__(self, client):
        self.client = client
        self.rows = []

    def ask(self, who, agent, messages, **signalbox):
        """Asks once. Returns the answer as a message, and what signalbox says about it."""
        raw = self.client.chat.completions.with_raw_response.create(
            model="auto",
            messages=messages,
            extra_headers={"x-agent": agent},
            extra_body={"signalbox": signalbox} if signalbox else None,
        )
        answer = raw.parse()
        usage = answer.usage
        row = {
            "who": who,
            "endpoint": raw.headers.get("x-signalbox-endpoint"),
            "prompt": usage.prompt_tokens,
            "cached": usage.prompt_tokens_details.cached_tokens,
            "sent": len(raw.http_response.request.content),
        }
        self.rows.append(row)
        print(
            f"  {who:<28} {row['endpoint']:<10} {row['prompt']:>9,} {row['cached']:>9,} {row['prompt'] - row['cached']:>9,} {row['sent']:>12,}"
        )
        text = answer.choices[0].message.content
        return {"role": "assistant", "content": text}, getattr(answer, "x_signalbox", None) or {}

    def total(self, key, *whos):
        return sum(row[key] for row in self.rows if row["who"].split(",")[0] in whos)


def delivered():
    """How many bytes of requests each simulated server was sent."""
    sums = {}
    for address in os.environ["SIMULATORS"].split():
        with urllib.request.urlopen(f"{address}/sim/requests", timeout=10) as page:
            requests = json.load(page)["requests"]
        sums[address] = sum(len(base64.b64decode(r["body"])) for r in requests if r["path"] == "/v1/chat/completions")
    return list(sums.values())


def main():
    url = os.environ.get("SIGNALBOX_URL", "http://127.0.0.1:8080/v1")
    client = openai.OpenAI(base_url=url, api_key=os.environ.get("SIGNALBOX_API_KEY", "none"), timeout=120, max_retries=0)
    ledger = Ledger(client)
    text = contract()
    print(f"a contract of {len(text):,} bytes; the model servers are simulated, with a prefix cache that works like vLLM's\n")
    print(f"  {'request':<28} {'endpoint':<10} {'prompt':>9} {'cached':>9} {'computed':>9} {'client sent':>12}")

    # Agent A: the contract, and questions one after the other.
    talk = [{"role": "system", "content": f"{text}\n\nYou read contracts. Name the clause that you rely on."}]
    kept = None
    for i, question in enumerate(QUESTIONS_A):
        talk.append({"role": "user", "content": question})
        last = i == len(QUESTIONS_A) - 1
        # The last answer is kept with all before it: the session becomes a pointer.
        more = {"save_context": {"name": "contract, read", "ttl": "1h"}} if last else {}
        answer, said = ledger.ask(f"A, question {i + 1}", "reader", talk, session=SESSION, **more)
        talk.append(answer)
        kept = said.get("context", kept)
    check(kept and kept.startswith("ctx_"), f"the session was not kept: {said}")

    # Agent B: the pointer, its own prompt, its own questions.
    own = []
    for i, question in enumerate(QUESTIONS_B):
        own.append({"role": "user", "content": question})
        answer, _ = ledger.ask(f"B, question {i + 1}", "auditor", own, context=kept)
        own.append(answer)
    to_analysts = sum(delivered()[:2])

    # The same without a pointer, sent whole to a server that has seen nothing.
    full = list(talk)
    for i, question in enumerate(QUESTIONS_B):
        full.append({"role": "user", "content": question})
        answer, _ = ledger.ask(f"elsewhere, question {i + 1}", "elsewhere", full)
        full.append(answer)
    report(ledger, kept, len(text), to_analysts)


def report(ledger, kept, size, to_analysts):
    """Prints the sums and checks them."""
    computed = lambda *whos: ledger.total("prompt", *whos) - ledger.total("cached", *whos)
    first = next(row for row in ledger.rows if row["who"].startswith("B"))
    sent_b, sent_elsewhere = ledger.total("sent", "B"), ledger.total("sent", "elsewhere")
    saved = computed("elsewhere") - computed("B")
    print(f"\n  A's session became {kept}")
    print(f"  agent B sent {sent_b:,} bytes instead of {sent_elsewhere:,}; A and B together sent {ledger.total('sent', 'A', 'B'):,}, the servers got {to_analysts:,}")
    print(f"  agent B had {computed('B'):,} prompt tokens computed instead of {computed('elsewhere'):,}: {saved:,} saved")
    check(first["cached"] >= 0.95 * first["prompt"], f"B's first request found {first['cached']} of {first['prompt']} tokens in the cache")
    check(len({row["endpoint"] for row in ledger.rows if row["who"][0] in "AB"}) == 1, "B was not sent to the server that A had used")
    check(sent_b < 10_000 < size < sent_elsewhere, f"B sent {sent_b} bytes, and {sent_elsewhere} without a pointer")
    check(to_analysts > 5 * size, f"the servers got {to_analysts} bytes: not the whole prompt each time")
    check(saved > 0.9 * computed("elsewhere"), f"only {saved} tokens saved")


if __name__ == "__main__":
    try:
        main()
    except openai.OpenAIError as err:
        check(False, err)
