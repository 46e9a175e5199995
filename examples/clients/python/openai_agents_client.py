"""OpenAI Agents SDK: a tool, a handoff, a stream; over Responses and over chat completions."""

import asyncio

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from demo import KEY, TOPIC, URL, WEATHER, answered, check, done
from openai import AsyncOpenAI

set_tracing_disabled(True)
asked = []


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    asked.append(city)
    return f"It is sunny in {city}."


async def run(model, name):
    cook = Agent(name="cook", instructions="Answer questions about food.", model=model)
    first = await Runner.run(cook, TOPIC)
    answered(first.final_output, f"{name}: run")
    turns = first.to_input_list() + [{"role": "user", "content": "And for six?"}]
    answered((await Runner.run(cook, turns)).final_output, f"{name}: second turn")

    asked.clear()
    clerk = Agent(name="clerk", instructions="Be brief.", model=model, tools=[get_weather])
    answered((await Runner.run(clerk, WEATHER)).final_output, f"{name}: tool loop")
    check(asked, f"{name}: the tool was not called")

    desk = Agent(
        name="desk",
        instructions="Hand questions about food to the cook.",
        model=model,
        handoffs=[cook],
        model_settings=ModelSettings(tool_choice="transfer_to_cook"),
    )
    handed = await Runner.run(desk, TOPIC)
    check(handed.last_agent.name == "cook", f"{name}: the question was not handed over")
    answered(handed.final_output, f"{name}: handoff")

    streamed = Runner.run_streamed(cook, TOPIC)
    parts = [
        event.data.delta
        async for event in streamed.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    answered("".join(parts), f"{name}: stream")
    check("".join(parts) == streamed.final_output, f"{name}: the stream is not the answer")


async def main():
    client = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=60)
    await run(OpenAIResponsesModel(model="auto", openai_client=client), "responses")
    await run(OpenAIChatCompletionsModel(model="auto", openai_client=client), "chat")
    done()


asyncio.run(main())
