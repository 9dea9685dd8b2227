#!/usr/bin/env python3
"""mdBook's preprocessor: puts what the programs say of themselves in the place of comments in pages.

    <!-- commands of gleaner-agent -->       its help, and that of each of its commands
    <!-- API of gleaner-recruiter -->        its OpenAPI document, as a table

So the reference cannot be behind the programs. They are taken from the folder GLEANER_PROGRAMS (target/debug).
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(os.environ.get("GLEANER_PROGRAMS", Path(__file__).parents[2] / "target" / "debug"))


def said(*command: str) -> str:
    """What one of the programs prints, as on a terminal of 100 columns."""
    program = PROGRAMS / command[0]
    environment = os.environ | {"COLUMNS": "100"}
    return subprocess.run([program, *command[1:]], env=environment, capture_output=True, text=True, check=True).stdout


def subcommands(text: str) -> list[str]:
    """Names under "Commands:" in a help text."""
    section = re.search(r"^Commands:\n((?:  .*\n|\n(?=  ))+)", text, re.MULTILINE)
    names = re.findall(r"^  ([a-z][a-z-]*)\b", section[1], re.MULTILINE) if section else []
    return [name for name in names if name != "help"]


def commands(*words: str) -> str:
    """The help of a command, then of those below it."""
    text = said(*words, "--help")
    page = f"### {' '.join(words)}\n\n```text\n{text.rstrip()}\n```\n\n"
    return page + "".join(commands(*words, name) for name in subcommands(text))


def api(program: str) -> str:
    document = json.loads(said(program, "openapi"))
    lines = ["| request | what | statuses |", "| --- | --- | --- |"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            text = " ".join(part for part in (operation.get("summary"), operation.get("description")) if part)
            text = re.sub(r"\s+", " ", text).replace("|", "\\|")
            lines.append(f"| `{method.upper()} {path}` | {text} | {', '.join(operation['responses'])} |")
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    page = re.sub(r"^<!-- commands of ([a-z-]+) -->$", lambda m: commands(m[1]), page, flags=re.MULTILINE)
    return re.sub(r"^<!-- API of ([a-z-]+) -->$", lambda m: api(m[1]), page, flags=re.MULTILINE)


def walk(items: list) -> None:
    for item in items:
        if chapter := isinstance(item, dict) and item.get("Chapter"):
            chapter["content"] = filled(chapter["content"])
            walk(chapter["sub_items"])


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    walk(book["items"] if "items" in book else book["sections"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
