"""instructor: a model class by tool call and by JSON schema, partial results, a list."""

import instructor
from demo import KEY, TOPIC, URL, check, done, tried
from openai import OpenAI
from pydantic import BaseModel


class Recipe(BaseModel):
    """A recipe."""

    title: str
    minutes: int
    steps: list[str]


QUESTION = [{"role": "user", "content": TOPIC}]
plain = OpenAI(base_url=URL, api_key=KEY, timeout=60)
for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
    client = instructor.from_openai(plain, mode=mode)
    recipe = client.chat.completions.create(
        model="auto", response_model=Recipe, messages=QUESTION, max_retries=1
    )
    check(isinstance(recipe, Recipe), f"{mode}: the result is {recipe!r}")
    tried.append(mode.value)

client = instructor.from_openai(plain, mode=instructor.Mode.TOOLS)
parts = list(client.chat.completions.create_partial(
    model="auto", response_model=Recipe, messages=QUESTION
))
check(parts and parts[-1].title is not None, "the partial results end without a title")
tried.append("partial results")
done()
