"""Open WebUI's background prompts: title, tags, follow-ups and more, as its own code writes them.

The package is fetched without what it needs to run. Its prompts are read from its source, and filled
and sent as its routers do: one user message, not streamed, no tools. A chat of two turns with a
system prompt comes first, for the prompts quote it.
"""

import ast
import pathlib
import sys

from demo import KEY, TOPIC, URL, answered, check, done
from openai import OpenAI

source = (pathlib.Path(sys.argv[1]) / "open_webui" / "config.py").read_text()
prompts = {
    name: node.value.value
    for node in ast.walk(ast.parse(source))
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    for name in [getattr(node.targets[0], "id", "")]
    if name.startswith("DEFAULT_") and name.endswith(("TEMPLATE", "PROMPT"))
    and isinstance(node.value.value, str) and node.value.value
}
wanted = {"TITLE_GENERATION", "TAGS_GENERATION", "FOLLOW_UP_GENERATION", "QUERY_GENERATION"}
for name in wanted:
    check(f"DEFAULT_{name}_PROMPT_TEMPLATE" in prompts, f"the package has no prompt for {name}")

client = OpenAI(base_url=URL, api_key=KEY, timeout=60)


def ask(messages, **more):
    answer = client.chat.completions.create(model="auto", messages=messages, **more)
    return answer.choices[0].message.content


turns = [{"role": "user", "content": TOPIC}]
turns.append({"role": "assistant", "content": ask(turns)})
turns.append({"role": "user", "content": "And for six people?"})
turns.append({"role": "assistant", "content": ask(turns)})
answered(turns[-1]["content"], "two turns")
history = "\n".join(f"{t['role'].upper()}: {t['content']}" for t in turns)
filled = {
    "{{MESSAGES:END:2}}": history, "{{MESSAGES:END:6}}": history, "{{MESSAGES}}": history,
    "{{prompt}}": TOPIC, "{{TYPE}}": "General", "{{PROMPT}}": TOPIC, "{{CONTEXT}}": history,
    "{{QUERY}}": TOPIC, "{{TOOLS}}": "[]", "{{CURRENT_DATE}}": "2026-01-01",
    "{{responses}}": history,
}
for name, text in sorted(prompts.items()):
    for key, value in filled.items():
        text = text.replace(key, value)
    words = name.removeprefix("DEFAULT_").removesuffix("_TEMPLATE").removesuffix("_PROMPT")
    answered(ask([{"role": "user", "content": text}], max_tokens=1000), words.lower())
    # Some of them are system prompts, which stand before what the user says.
    answered(ask([{"role": "system", "content": text}, turns[0]]), words.lower() + " as system")
done()
