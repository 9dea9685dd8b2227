#!/usr/bin/env python3
"""Writes the pages that the programs describe themselves: docs/commands.md and docs/api.md.

    reference.py          writes both pages
    reference.py --check  prints the name of each page that differs from the programs, and fails if there is one

Each part is between two comments; the text around it is written by hand:

    <!-- commands of gleaner-agent -->   help of the program and of each of its commands
    <!-- API of gleaner-recruiter -->    its OpenAPI document, as a table
    <!-- end -->

The programs are in the folder GLEANER_PROGRAMS (default: target/debug).
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(os.environ.get("GLEANER_PROGRAMS", CHECKOUT / "target" / "debug"))
PAGES = [CHECKOUT / "docs" / name for name in ("commands.md", "api.md")]
PART = re.compile(r"^<!-- (commands|API) of ([a-z-]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def said(*command: str) -> str:
    """Output of one of the programs, as on a terminal with 100 columns."""
    program = PROGRAMS / command[0]
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "100"}
    return subprocess.run([program, *command[1:]], env=environment, capture_output=True, text=True, check=True).stdout


def subcommands(text: str) -> list[str]:
    """Names under "Commands:" in a help text."""
    section = re.search(r"^Commands:\n((?:  .*\n|\n(?=  ))+)", text, re.MULTILINE)
    names = re.findall(r"^  ([a-z][a-z-]*)\b", section[1], re.MULTILINE) if section else []
    return [name for name in names if name != "help"]


def commands(*words: str) -> str:
    """Help of a command, then of its subcommands."""
    text = said(*words, "--help")
    # The page already has the program's own heading.
    heading = f"### {' '.join(words)}\n\n" if len(words) > 1 else ""
    text = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    page = f"{heading}```text\n{text}\n```\n\n"
    return page + "".join(commands(*words, name) for name in subcommands(text + "\n"))


def api(program: str) -> str:
    """A program's OpenAPI document as a table."""
    document = json.loads(said(program, "openapi"))
    lines = ["| request | description | statuses |", "| --- | --- | --- |"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            text = " ".join(part for part in (operation.get("summary"), operation.get("description")) if part)
            text = re.sub(r"\s+", " ", text).replace("|", "\\|")
            lines.append(f"| `{method.upper()} {path}` | {text} | {', '.join(operation['responses'])} |")
    return "\n".join(lines) + "\n\n"


def written(page: str) -> str:
    """A page with its parts as the programs print them now."""

    def part(match: re.Match) -> str:
        kind, program = match.groups()
        text = commands(program) if kind == "commands" else api(program)
        return f"<!-- {kind} of {program} -->\n\n{text}<!-- end -->"

    return PART.sub(part, page)


def main() -> None:
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    different = 0
    for page in PAGES:
        old = page.read_text()
        if (new := written(old)) != old:
            different += 1
            print(page.relative_to(CHECKOUT))
            if not sys.argv[1:]:
                page.write_text(new)
    if sys.argv[1:] and different:
        sys.exit("adopt what the programs print: packaging/book/reference.py")


if __name__ == "__main__":
    main()
