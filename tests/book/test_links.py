"""Every page is listed, and every link has a target: in the repository, and in the site built from it."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pages import CHECKOUT, DOCS, fences, pages, prose

BOOK = CHECKOUT / "out" / "book"
LINK = re.compile(r"\]\(([^)\s]+)\)")
IN_THE_REPOSITORY = (".github", "agent", "analysis", "bench", "cli", "collector", "dataset", "docs", "doctor", "fidelity", "lab", "listen",
                     "packaging", "paging", "policy", "python", "recruiter", "regions", "reports", "schemas", "tests", "traces", "trust")  # fmt: skip


class Page(HTMLParser):
    """Links of a page of the site, and the targets that it has."""

    def __init__(self, path: Path):
        super().__init__()
        self.links, self.sources, self.ids = [], [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name == "src" or (name == "href" and tag == "link"):
                self.sources.append(value)


@cache
def built(path: Path) -> Page:
    return Page(path)


def sites_pages() -> list[Path]:
    # toc.html is the frame for readers without script; its links are those in every page's sidebar.
    return sorted(BOOK.rglob("*.html"))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_in_the_repository_lead_somewhere(page):
    for link in LINK.findall(prose(page)):
        address = urlsplit(link)
        if not address.scheme and address.path:
            assert (page.parent / address.path).exists(), f"{page.name}: {link}"
            assert page.name == "README.md" or (page.parent / address.path).resolve().is_relative_to(DOCS), (
                f"{page.name}: {link} is no part of the site: name the file as `{address.path}`, or link to a page"
            )


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_files_that_are_named_are_there(page):
    for named in re.findall(r"`([a-z]+(?:/[\w.-]+)+)`", prose(page)):
        if named.split("/")[0] in IN_THE_REPOSITORY:
            assert (CHECKOUT / named).exists() or (CHECKOUT / f"{named}.rs").exists(), f"{page.name}: `{named}`"


def test_every_page_has_a_place_in_the_summary():
    placed = LINK.findall((DOCS / "SUMMARY.md").read_text())
    assert len(placed) == len(set(placed)), "a page has two places"
    assert sorted(placed) == sorted(str(page.relative_to(DOCS)) for page in pages() if page.is_relative_to(DOCS))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_block_says_its_language(page):
    """Indented blocks, or blocks without a language, could hide commands from the test of commands."""
    for fence in fences(page):
        assert fence["language"], f"{page.name}: a block without language: {fence['text'][:60]!r}"
    assert not re.findall(r"(?:\A|\n)\n    \S[^\n]*", prose(page)), f"{page.name}: an indented block: fence it"


def test_the_site_is_built():
    assert (BOOK / "index.html").exists(), "`make book` makes it"


@pytest.mark.parametrize("page", sites_pages(), ids=lambda page: page.name)
def test_links_in_the_site_lead_somewhere(page):
    for link in built(page).links:
        address = urlsplit(link)
        if address.scheme or link.startswith("//"):
            continue
        target = (page.parent / unquote(address.path)).resolve() if address.path else page
        if target.is_dir():
            target = target / "index.html"
        assert target.exists(), f"{page.name}: {link}"
        if address.fragment and target.suffix == ".html":
            assert unquote(address.fragment) in built(target).ids, f"{page.name}: {link}"


@pytest.mark.parametrize("page", sites_pages(), ids=lambda page: page.name)
def test_the_site_needs_no_network(page):
    """Fonts, styles and scripts are local, and so are the files that styles load."""
    for source in built(page).sources:
        assert not urlsplit(source).netloc, f"{page.name}: {source}"
        assert (page.parent / unquote(urlsplit(source).path)).exists(), f"{page.name}: {source}"


@pytest.mark.parametrize("page", sites_pages(), ids=lambda page: page.name)
def test_no_heading_takes_the_name_of_a_module_system(page):
    """A browser makes every id a global variable: with an id `exports`, the site's scripts take the page for Node and fail."""
    assert not built(page).ids & {"define", "exports", "module", "require"}, page.name


def test_styles_ask_for_nothing_elsewhere():
    styles = list(BOOK.rglob("*.css"))
    assert styles
    for style in styles:
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", style.read_text()), style
