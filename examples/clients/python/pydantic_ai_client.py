"""Pydantic AI: an answer by a model class, a tool, two turns, a stream; chat and Responses."""

import asyncio

from demo import KEY, TOPIC, URL, WEATHER, answered, check, done, tried
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Recipe(BaseModel):
    """A recipe."""

    title: str
    minutes: int


async def run(model, name):
    cook = Agent(model, instructions="You are a cook.")
    first = await cook.run(TOPIC)
    answered(first.output, f"{name}: run")
    second = await cook.run("And for six?", message_history=first.all_messages())
    answered(second.output, f"{name}: second turn")
    async with cook.run_stream(TOPIC) as stream:
        parts = [part async for part in stream.stream_text(delta=True)]
    answered("".join(parts), f"{name}: stream")

    asked = []
    clerk = Agent(model)

    @clerk.tool_plain
    def get_weather(city: str) -> str:
        """The weather of a city."""
        asked.append(city)
        return f"It is sunny in {city}."

    answered((await clerk.run(WEATHER)).output, f"{name}: tool loop")
    check(asked, f"{name}: the tool was not called")
    recipe = (await Agent(model, output_type=Recipe).run(TOPIC)).output
    check(isinstance(recipe, Recipe), f"{name}: the result is {recipe!r}")
    tried.append(f"{name}: structured result")


async def main():
    provider = OpenAIProvider(base_url=URL, api_key=KEY)
    await run(OpenAIChatModel("auto", provider=provider), "chat")
    await run(OpenAIResponsesModel("auto", provider=provider), "responses")
    done()


asyncio.run(main())
