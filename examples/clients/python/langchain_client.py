"""LangChain: whole and streamed answers, two turns, a tool loop, structured output, embeddings."""

from demo import KEY, MODEL, TOPIC, URL, WEATHER, answered, check, done, tried
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

asked = []


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    asked.append(city)
    return f"It is sunny in {city}."


class Recipe(BaseModel):
    """A recipe."""

    title: str
    minutes: int


chat = ChatOpenAI(model="auto", base_url=URL, api_key=KEY, timeout=60)
first = chat.invoke([SystemMessage("You are a cook."), HumanMessage(TOPIC)])
answered(first.content, "invoke")
second = chat.invoke([HumanMessage(TOPIC), AIMessage(first.content), HumanMessage("And for six?")])
answered(second.content, "second turn")
answered("".join(c.text for c in chat.stream(TOPIC)), "stream")

agent = create_agent(chat, [get_weather])
last = agent.invoke({"messages": [HumanMessage(WEATHER)]})["messages"][-1]
answered(last.text, "tool loop")
check(asked, "the tool was not called")

recipe = chat.with_structured_output(Recipe).invoke(TOPIC)
check(isinstance(recipe, Recipe), f"structured output is {recipe!r}")
tried.append("structured output")

vectors = OpenAIEmbeddings(
    model=MODEL, base_url=URL, api_key=KEY, check_embedding_ctx_length=False
).embed_documents(["rice", "broth"])
check(len(vectors) == 2 and all(vectors), "embeddings are missing")
tried.append("embeddings")
done()
