"""Every message that docs/messages.md explains can be printed by a program."""

import re

import pytest
from pages import CHECKOUT, DOCS

# A message is in a row's first cell; "…" stands for the variable parts.
MESSAGES = re.findall(r"^\| `([^`]+)` \|", (DOCS / "messages.md").read_text(), re.MULTILINE)
ROOMS = ("agent", "collector", "commons", "dataset", "daemon", "listen", "paging", "recruiter", "trust", "cli", "doctor", "lab", "fidelity")


@pytest.fixture(scope="module")
def said() -> str:
    """The sources with their strings as printed: without line breaks inside, arguments as "…"."""
    sources = [path for room in ROOMS for path in sorted((CHECKOUT / room).glob("src/**/*.rs"))]
    text = "\n".join(path.read_text() for path in sources)
    return re.sub(r"\{[\w.:#?]*\}", "…", re.sub(r"\\\n\s*", "", text))


def test_there_are_messages():
    assert len(MESSAGES) > 30


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_one_that_programs_say(message, said):
    for part in filter(None, (part.strip(" ;:,") for part in message.split("…"))):
        if len(part) > 5:
            assert part in said, f"nobody says {part!r}"
