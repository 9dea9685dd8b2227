"""Style of pages, as far as a program can check it: line width, and words that the glossary replaces."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import CHECKOUT, DOCS, FENCE

WIDTH = 120
# Written by programs, completely or in part: their texts are checked in the sources.
WRITTEN_BY_PROGRAMS = {"fidelity.md": r"\A.*\Z", "fidelity-models.md": r"^<!-- Written by `gleaner fidelity .*?^<!-- end -->$", "doctor.md": r"^## Messages$.*\Z", "api.md": r"^<!-- API of .*?^<!-- end -->$"}
PAGES = [
    *sorted(DOCS.glob("*.md")),
    *(CHECKOUT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "packaging/README.md")),
]
# Words that pages must not use, and the glossary's term.
REPLACED = {
    r"lenders?": "memory server",
    r"borrowers?": "clerk, or client",
    r"lendable|recruitable": "harvestable, or quota",
    r"(?:is|are|was|were|be|been|being) told": "a verb of the field: receives, reports, shows",
    r"(?:give|gives|gave|given|giving) up": "closed, ends, times out",
    r"of no use": "rejected",
    r"(?:give|gives|gave|given|giving|take|takes|took|taken|taking) (?:it |them |memory |all )?back": "reclaim, revoke, return",
    r"(?:come|comes|came|coming) back": "returns",
    r"first sign": "the owner's return",
    r"takes too long": "times out",
    r"reckon(?:s|ed|ing)?": "computes",
}


def prose_lines(page: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines without blocks, comments and parts that programs write."""
    text = page.read_text()
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    if part := WRITTEN_BY_PROGRAMS.get(page.name):
        text = re.sub(part, blank, text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", blank, FENCE.sub(blank, text), flags=re.DOTALL)
    yield from enumerate(text.split("\n"), 1)


def name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_are_wrapped(page):
    """Tables and unbreakable words (links, code) are exempt."""
    long = [f"{page.name}:{number}: {line}" for number, line in prose_lines(page) if len(line) > WIDTH and not line.lstrip().startswith("|")]
    breakable = [line for line in long if re.search(r"\S\s+\S", re.sub(r"`[^`]*`|\]\([^)]*\)", "x", line.split(": ", 1)[1].lstrip(" -")))]
    assert not breakable, "\n".join(breakable)


@pytest.mark.parametrize("file", sorted(DOCS.glob("*.toml")), ids=name)
def test_lines_of_configuration_files_are_wrapped(file):
    long = [f"{file.name}:{number}" for number, line in enumerate(file.read_text().splitlines(), 1) if len(line) > WIDTH]
    assert not long, long


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_words_that_the_glossary_replaces_are_absent(page):
    # Code and quoted titles keep their words.
    lines = [re.sub(r"`[^`]*`|\*[^*]+\*|\([^)]*\.md[^)]*\)", "", line) for _, line in prose_lines(page)]
    text = "\n".join(lines)
    faults = []
    for replaced, word in REPLACED.items():
        for found in re.finditer(rf"\b(?:{replaced})\b".replace(" ", r"\s+"), text, re.IGNORECASE):
            number = text.count("\n", 0, found.start()) + 1
            faults.append(f"{page.name}:{number}: {found[0]!r}: write {word}")
    assert not faults, "\n".join(faults)


def test_a_replaced_word_and_a_long_line_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"Each lender `lender`\n\n```text\nlender {'x ' * 100}\n```\n{'word ' * 30}\n| {'word ' * 30} |\n")
    with pytest.raises(AssertionError, match="page.md:1: 'lender'"):
        test_words_that_the_glossary_replaces_are_absent(page)
    with pytest.raises(AssertionError, match="page.md:6: word"):
        test_lines_are_wrapped(page)
