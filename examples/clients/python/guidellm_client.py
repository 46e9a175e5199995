"""guidellm: its HTTP backend validates the server, lists the models and sends one request.

Only the module of the backend and what it imports is installed: the whole of guidellm brings torch.
"""

import asyncio
import os
import warnings

warnings.simplefilter("ignore")

from demo import URL, check, done, tried  # noqa: E402
from guidellm.backends.openai.http import OpenAIHTTPBackend  # noqa: E402
from guidellm.schemas.backends.openai_http import OpenAIHTTPBackendArgs  # noqa: E402

os.environ.setdefault("GUIDELLM__LOGGING__DISABLED", "true")


async def main():
    backend = OpenAIHTTPBackend(OpenAIHTTPBackendArgs(target=URL.removesuffix("/v1")))
    await backend.process_startup()
    try:
        await backend.validate()
        tried.append("health probe")
        names = await backend.available_models()
        check(names and names[0] == "auto", f"the models are {names}")
        tried.append("models")
        check(await backend.default_model() == "auto", "the default model is not auto")
        tried.append("default model")
    finally:
        await backend.process_shutdown()
    done()


asyncio.run(main())
