"""Checks of the sources' language: length and first word of documentation comments, and names of types."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pages import CHECKOUT

LEAST_WORDS = 3
MOST_WITHOUT_A_NOUN = 0.04
WITHOUT_A_NOUN = set(
    "what which who whose whom where when why how whether it this that these those they one so such here there".split()
)
# Participles and questions, where a noun of the field belongs.
REJECTED_TYPES = set(
    "Asked Away Coming Done Due Found Given Going Got Held Kept Known Lent Left Made Meant Named Read Said Seeks Seen Sent Shown Taken Thinking "
    "Told Wanted How What When Where Which Who Whose Why".split()
)
COMMENT = re.compile(r"[ \t]*(///|//!)(?!/)[ \t]?(.*)")
TYPE = re.compile(r"^[ \t]*(?:pub(?:\([\w: ]+\))? )?(?:struct|enum|trait|type|union) (\w+)", re.MULTILINE)
# A variant of an enum, or a value of a table: its name says most.
ARM = re.compile(r"[A-Z]\w*(?:,|$| =|\(|\{| \{)")
ATTRIBUTE = re.compile(r"#!?\[")


@dataclass(frozen=True)
class Comment:
    place: str
    first_paragraph: str
    code: str
    """The line below the comment and its attributes."""

    @property
    def words(self) -> list[str]:
        return re.findall(r"[\w’'/-]+", self.first_paragraph)


def sources() -> list[Path]:
    listed = subprocess.run(["git", "-C", CHECKOUT, "ls-files", "*.rs"], check=True, capture_output=True, text=True).stdout
    return [CHECKOUT / name for name in listed.split()]


def comments(source: Path) -> Iterator[Comment]:
    lines = source.read_text().split("\n")
    at = 0
    while at < len(lines):
        begin, kind = at, (COMMENT.match(lines[at]) or [None, None])[1]
        paragraph: list[str] = []
        while kind and at < len(lines) and (line := COMMENT.match(lines[at])) and line[1] == kind:
            paragraph.append(line[2])
            at += 1
        if not kind:
            at += 1
            continue
        below = next((line.strip() for line in lines[at:] if not ATTRIBUTE.match(line.strip())), "")
        text = " ".join(paragraph).split("  ")[0]
        yield Comment(f"{source}:{begin + 1}", text, below)


def all_comments() -> list[Comment]:
    return [comment for source in sources() for comment in comments(source)]


def too_short(comments: list[Comment]) -> list[str]:
    return [f"{c.place}: {c.first_paragraph}" for c in comments if len(c.words) < LEAST_WORDS and not ARM.match(c.code)]


def without_a_noun(comments: list[Comment]) -> list[str]:
    return [f"{c.place}: {c.first_paragraph}" for c in comments if c.words and c.words[0].lower() in WITHOUT_A_NOUN]


def test_comments_say_more_than_a_name():
    short = too_short(all_comments())
    assert not short, "\n".join(short)


def test_comments_begin_with_their_noun():
    found = all_comments()
    assert len(found) > 10_000
    openings = without_a_noun(found)
    assert len(openings) < MOST_WITHOUT_A_NOUN * len(found), "\n".join(openings)


def test_types_have_nouns_of_the_field_for_names():
    types = [(source, name) for source in sources() for name in TYPE.findall(source.read_text())]
    assert len(types) > 1_000
    rejected = [f"{source}: {name}" for source, name in types if name in REJECTED_TYPES]
    assert not rejected, "\n".join(rejected)


def test_faults_are_found(tmp_path):
    source = tmp_path / "source.rs"
    source.write_text("/// Which.\n#[derive(Debug)]\nstruct Told;\nenum E {\n    /// Gone.\n    Lost,\n}\n/// The number of pages.\nfn pages() {}\n")
    found = list(comments(source))
    assert [c.code for c in found] == ["struct Told;", "Lost,", "fn pages() {}"]
    assert too_short(found) == [f"{source}:1: Which."]
    assert without_a_noun(found) == [f"{source}:1: Which."]
    assert TYPE.findall(source.read_text()) == ["Told", "E"]
