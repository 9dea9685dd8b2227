"""The pages of the book, and the commands in them.

A block of commands is fenced as `sh`, contains only commands, and is run unchanged. A comment on the lines before
it says how:

    <!-- before: COMMANDS -->             run first: the reader has already done this
    <!-- background until: CONDITION -->  the block keeps running, as daemons do; the next begins when CONDITION holds
    <!-- guest -->                        run in the emulated guest, where the packages are installed
    <!-- guest: server desk -->           run on one or both of two emulated hosts: a server, which lends, and a desk
    <!-- not run: REASON -->              not run anywhere; the test prints all of these

`python3 tests/book/pages.py guest FOLDER` writes the blocks for the guest, one script each, in running order.
`python3 tests/book/pages.py hosts FOLDER` writes those for the two hosts, each as PAGE/SECTION/NUMBER.HOST[.HOST].
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
PROGRAMS = ("gleaner", "gleaner-agent", "gleaner-collector", "gleaner-recruiter", "gleaner-memoryd", "gleaner-clerk", "gleaner-commons")
FENCE = re.compile(r"^(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ ]*$", re.MULTILINE | re.DOTALL)
COMMENTS = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
HOSTS = ("server", "desk")
COMMENT = re.compile(r"<!--\s*(before|background until|guest|not run)(?::\s*(.*?))?\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block of commands on a page."""

    page: Path
    line: int
    text: str
    before: str
    background: str | None
    is_guest: bool
    hosts: tuple[str, ...]
    """Those of the two emulated hosts that run it, in this order; none: it is not for them."""
    section: str
    """Heading above it, as in the page's address: `the-server`."""
    not_run: str | None
    shown: str | None
    """What it prints, as the page has it: the block of `text` that follows at once. Tokens with digits differ each time."""

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"

    @property
    def is_run_here(self) -> bool:
        return not (self.is_guest or self.hosts or self.not_run)

    @property
    def script(self) -> str:
        """The block's commands as a bash script for a guest."""
        return f"# {self.name}\nset -eo pipefail\n{self.before}\n{self.text}"


def pages() -> list[Path]:
    """Every page, and the README, which also shows commands."""
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
        hosts = tuple(said.get("guest", "").split())
        if not set(hosts) <= set(HOSTS):
            raise ValueError(f"{page}: no such host among {hosts}; there are {HOSTS}")
        found.append(
            Block(
                page=page,
                line=text.count("\n", 0, fence.start()) + 2,
                text=fence["text"],
                before=said.get("before", ""),
                background=said.get("background until"),
                is_guest="guest" in said and not hosts,
                hosts=hosts,
                section=section(text, fence.start()),
                not_run=said.get("not run"),
                shown=after["text"] if follows else None,
            )
        )
    return found


def section(text: str, offset: int) -> str:
    """Anchor of the last heading before an offset."""
    headings = HEADING.findall(FENCE.sub("", text[:offset]))
    return re.sub(r"[^\w -]", "", headings[-1]).lower().replace(" ", "-") if headings else ""


def prose(page: Path) -> str:
    """A page without its fenced blocks and comments."""
    return re.sub(r"<!--.*?-->", "", FENCE.sub("", page.read_text()), flags=re.DOTALL)


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]


def guest_blocks() -> list[Block]:
    """Blocks for a reader who has all packages on one machine."""
    return [block for block in all_blocks() if block.is_guest]


def host_blocks() -> list[Block]:
    """Blocks for a reader who has two hosts."""
    return [block for block in all_blocks() if block.hosts]


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1] not in ("guest", "hosts"):
        sys.exit(__doc__)
    folder = Path(sys.argv[2])
    folder.mkdir()
    if sys.argv[1] == "guest":
        for number, block in enumerate(guest_blocks()):
            (folder / f"{number:02}").write_text(block.script)
        return
    for number, block in enumerate(host_blocks()):
        file = folder / block.page.stem / block.section / f"{number:02}.{'.'.join(block.hosts)}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.script)


if __name__ == "__main__":
    main()
