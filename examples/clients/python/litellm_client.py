"""LiteLLM: completion, stream, tools, JSON schema, embedding, an unknown model as its own error."""

import json

import litellm
from demo import KEY, MODEL, TOPIC, URL, WEATHER, answered, check, done, tried

litellm.telemetry = False
CALL = {"api_base": URL, "api_key": KEY, "timeout": 60}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def ask(messages, model="openai/auto", **more):
    return litellm.completion(model=model, messages=messages, **CALL, **more)


turns = [{"role": "user", "content": TOPIC}]
answer = ask(turns).choices[0].message
answered(answer.content, "completion")
turns += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": "For six?"}]
answered(ask(turns).choices[0].message.content, "second turn")
chunks = list(ask(turns[:1], stream=True, stream_options={"include_usage": True}))
answered("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "stream")
whole = litellm.stream_chunk_builder(chunks)
check(whole.usage.completion_tokens > 0, "the stream has no usage")

call = ask([{"role": "user", "content": WEATHER}], tools=TOOLS).choices[0].message.tool_calls
check(call, "no tool was called")
check("city" in json.loads(call[0].function.arguments), "the arguments have no city")
turns = [
    {"role": "user", "content": WEATHER},
    {"role": "assistant", "content": None, "tool_calls": [call[0].model_dump()]},
    {"role": "tool", "tool_call_id": call[0].id, "content": "sunny"},
]
answered(ask(turns, tools=TOOLS).choices[0].message.content, "tool result")

schema = {"type": "object", "properties": {"minutes": {"type": "integer"}}, "required": ["minutes"]}
form = {"type": "json_schema", "json_schema": {"name": "time", "schema": schema}}
text = ask([{"role": "user", "content": TOPIC}], response_format=form).choices[0].message.content
check(isinstance(json.loads(text)["minutes"], int), f"not by the schema: {text!r}")
tried.append("JSON schema")

vectors = litellm.embedding(model=f"openai/{MODEL}", input=["rice"], **CALL).data
check(len(vectors[0]["embedding"]) > 0, "the embedding is empty")
tried.append("embedding")

try:
    ask([{"role": "user", "content": TOPIC}], model="openai/no-such-model")
    check(False, "an unknown model was answered")
except litellm.NotFoundError as error:
    check("no-such-model" in str(error), f"the error names no model: {error}")
tried.append("unknown model")
done()
