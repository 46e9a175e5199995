"""LlamaIndex: complete, chat, stream, a tool by the model's choice, structured answer, embeddings."""

from demo import KEY, MODEL, TOPIC, URL, WEATHER, answered, check, done, tried
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

asked = []


def get_weather(city: str) -> str:
    """The weather of a city."""
    asked.append(city)
    return f"It is sunny in {city}."


class Recipe(BaseModel):
    """A recipe."""

    title: str
    minutes: int


llm = OpenAILike(
    model="auto", api_base=URL, api_key=KEY, is_chat_model=True,
    is_function_calling_model=True, context_window=32768, timeout=60,
)
answered(llm.complete(TOPIC).text, "complete")
turns = [ChatMessage(role="user", content=TOPIC)]
turns.append(llm.chat(turns).message)
answered(turns[-1].content, "chat")
turns.append(ChatMessage(role="user", content="And for six?"))
answered(llm.chat(turns).message.content, "second turn")
answered("".join(part.delta or "" for part in llm.stream_chat(turns)), "stream")

tool = FunctionTool.from_defaults(get_weather)
answered(llm.predict_and_call([tool], WEATHER).response, "tool")
check(asked, "the tool was not called")
recipe = llm.as_structured_llm(Recipe).complete(TOPIC).raw
check(isinstance(recipe, Recipe), f"the structured answer is {recipe!r}")
tried.append("structured answer")
vector = OpenAILikeEmbedding(model_name=MODEL, api_base=URL, api_key=KEY)
check(len(vector.get_text_embedding("rice")) > 0, "the embedding is empty")
tried.append("embeddings")
done()
