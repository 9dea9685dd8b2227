"""The pages of the book, and the commands in them.

A block of commands is fenced as `sh`, holds nothing but commands, and is run as it stands. A comment on the lines
before it says how:

    <!-- before: COMMANDS -->             what must be there first; the reader has it already
    <!-- background until: CONDITION -->  the block runs on, as daemons do; the next begins when CONDITION holds
    <!-- guest -->                        run in the emulated guest, where the packages are installed
    <!-- not run: REASON -->              not run anywhere; the test prints all of these

`python3 tests/book/pages.py guest FOLDER` writes those for the guest, a script each, in the order in which they are to be run.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PROGRAMS = ("gleaner", "gleaner-agent", "gleaner-collector", "gleaner-recruiter", "gleaner-memoryd", "gleaner-clerk")
FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)
COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
COMMENT = re.compile(r"<!--\s*(before|background until|guest|not run)(?::\s*(.*?))?\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Commands as they stand in a page."""

    page: Path
    line: int
    text: str
    before: str
    background: str | None
    is_guest: bool
    not_run: str | None
    shown: str | None
    """What it prints, as the page has it: the block of `text` that follows at once. Tokens with digits differ each time."""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"

    @property
    def is_run_here(self) -> bool:
        return not (self.is_guest or self.not_run)


def pages() -> list[Path]:
    """Every page, and the README, which shows commands as well."""
    return [CHECKOUT / "README.md", *sorted(page for page in DOCS.rglob("*.md") if page.name != "SUMMARY.md")]


def fences(page: Path) -> Iterator[re.Match]:
    return FENCE.finditer(page.read_text())


def blocks(page: Path) -> list[Block]:
    """The blocks of commands of a page, in order."""
    text = page.read_text()
    found = []
    all_fences = list(fences(page))
    for fence, after in zip(all_fences, [*all_fences[1:], None]):
        if fence["language"] != "sh":
            continue
        comments = COMMENTS.search(text, 0, fence.start())
        follows = after and after["language"] == "text" and not text[fence.end() : after.start()].strip()
        said = dict(COMMENT.findall(comments[0])) if comments else {}
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, fence.start()) + 2,
                text=fence["text"],
                before=said.get("before", ""),
                background=said.get("background until"),
                is_guest="guest" in said,
                not_run=said.get("not run"),
                shown=after["text"] if follows else None,
            )
        )
    return found


def prose(page: Path) -> str:
    """A page without its fenced blocks and comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", page.read_text()), flags=re.DOTALL)


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def guest_blocks() -> list[Block]:
    """As a reader would take them who has all packages: the page that installs them one by one also removes them all, and is last."""
    found = [block for block in all_blocks() if block.is_guest]
    return sorted(found, key=lambda block: block.page.name == "install.md")


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] != "guest":
        sys.exit(__doc__)
    folder = Path(sys.argv[2])
    folder.mkdir()
    for number, block in enumerate(guest_blocks()):
        script = f"# {block.name}\nset -eo pipefail\n{block.before}\n{block.text}"
        (folder / f"{number:02}").write_text(script)


if __name__ == "__main__":
    main()
