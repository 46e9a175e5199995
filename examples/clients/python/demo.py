"""What the scripts of this folder share: where the server is, and how a check fails."""

import os
import sys

URL = os.environ.get("SIGNALBOX_URL", "http://127.0.0.1:8080/v1")
MODEL = os.environ.get("SIGNALBOX_MODEL", "general-7b")
KEY = os.environ.get("SIGNALBOX_API_KEY", "none")
TOPIC = "How long do I simmer risotto for four people?"
WEATHER = "What is the weather in Oslo? Use the tool get_weather."

tried = []


def check(ok, message):
    """Ends the script with status 1 when something is off."""
    if not ok:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


def answered(text, what):
    """Checks that an answer says something and was not declined, and notes what was tried."""
    check(text and text.strip(), f"{what}: the answer is empty")
    check("declined by policy" not in text, f"{what}: declined: {text!r}")
    tried.append(what)


def done():
    """Prints the line that ends a script which found nothing wrong."""
    print("tried: " + ", ".join(tried))
