"""Every command of the book: run unchanged if possible, and accepted by its program in any case."""

import re
import shlex
import shutil
import subprocess
from datetime import date, timedelta

import pytest
from machine import assert_shown
from pages import CHECKOUT, PROGRAMS, Block, all_blocks, blocks, pages, prose

# Pages that have their own tests.
ELSEWHERE = {"reading.md": "tests/readers/test_reading_md.py", "quick-start.md": "tests/book/test_quick_start.py"}
# Maximum number of blocks that are not run at all.
MOST_NOT_RUN = 12
PATIENCE_S = 60
PAGE_S = 300
# Monday of the last complete week: commands that name a week are run for that one.
MONDAY = date.today() - timedelta(days=date.today().weekday() + 7)
# Replacements for words that readers fill in; longer words first.
WORDS = {
    "DIR": "reports",
    "HOST-ID": "$(gleaner pki list --json | jq -r '[.[] | select(.role == \"host\")][0].name')",
    "HOST": "$(gleaner analyze DATASET --measure hosts --json | jq -r '.hosts[0].host_name')",
    "TOKEN": "$(gleaner pki token --json | jq -r .token)",
    "URL": "http://127.0.0.1:7480",
    "2026-W47": f"{MONDAY:%G-W%V}",
    "2026-11-16": f"{MONDAY}",
    "2026-11-21": f"{MONDAY + timedelta(days=5)}",
    "2026-11-23": f"{MONDAY + timedelta(days=7)}",
}


def filled(text: str) -> str:
    """A block with its placeholders replaced."""
    for word, replacement in WORDS.items():
        text = re.sub(rf"(?<![\w/-]){word}(?![A-SU-Z_a-z0-9-])", lambda _: replacement, text)
    return text


def script(page_blocks: list[Block]) -> str:
    """The input of a reader who follows a page from top to bottom, in one shell."""
    lines = ["set -eo pipefail"]
    for block in page_blocks:
        lines += [block.before, f"echo '=== {block.name}'"]
        if block.background is None:
            lines.append(filled(block.text))
        else:
            lines += [
                f"( {filled(block.text)}\n) &",
                "begun=$SECONDS",
                f"until {block.background}; do",
                f"  [ $((SECONDS - begun)) -lt {PATIENCE_S} ] || {{ echo 'it does not run'; exit 1; }}",
                "  sleep 0.1",
                "done",
            ]
    return "\n".join(lines) + "\n"


def pages_to_run() -> list:
    return [page for page in pages() if page.name not in ELSEWHERE and any(b.is_run_here for b in blocks(page))]


@pytest.mark.parametrize("page", pages_to_run(), ids=lambda page: page.name)
def test_the_commands_of_a_page_do_what_it_says(page, machine, dataset, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    shutil.copytree(dataset, folder / "DATASET")
    # Pages name source files relative to a checkout.
    for name in ("packaging", "schemas", "docs", "tests"):
        (folder / name).symlink_to(CHECKOUT / name)
    (folder / "out" / "demo").mkdir(parents=True)
    (folder / "out" / "demo" / "dataset").symlink_to(folder / "DATASET")
    here = [block for block in blocks(page) if block.is_run_here]
    code, said = machine.run(script(here), folder, PAGE_S)
    assert code == 0, f"exit code {code}; the last that was said:\n{said[-4000:]}"
    for block in here:
        assert_shown(block, said)


def lines(text: str) -> list[str]:
    return text.replace("\\\n", " ").splitlines()


def is_ours(before: list[str], word: str) -> bool:
    """True if a word starts one of our programs, and is not an argument of another."""
    others = ("apt", "cargo", "chgrp", "chown", "cp", "groupadd", "install", "systemctl", "tar", "journalctl")
    *_, name = word.split("/")
    return name in PROGRAMS and not any(word in others or word.startswith("bench/") for word in before)


def our_commands(text: str) -> list[list[str]]:
    """Words of each command that starts one of our programs."""
    found = []
    for line in lines(text):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.commenters, lexer.whitespace_split = "#", True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("();<>|&"):
                if start := [i for i, word in enumerate(words) if is_ours(words[:i], word)]:
                    found.append(words[start[0] :])
                # A redirection's file name is not a command.
                words = [] if "<" not in word and ">" not in word else ["FILE"]
            else:
                words.append(word)
    return found


def spans(text: str) -> list[str]:
    """Commands within sentences, such as `gleaner-agent status`; one that ends with an option is about that option."""
    names = "|".join(PROGRAMS)
    return re.findall(rf"`((?:sudo )?(?:{names}) [a-z-][^`\n…\[]*)`", text)


def understood(words: list[str], programs) -> str | None:
    """None if a program accepts these words, otherwise its output. `--help` stops it before it acts."""
    program = words[0].rsplit("/", 1)[-1]
    options = words[1 : words.index("--")] if "--" in words else words[1:]  # what follows belongs to another program
    done = subprocess.run([programs / program, *options, "--help"], capture_output=True, text=True, timeout=20)
    known = done.returncode == 0 or "a value is required" in done.stderr
    return None if known else done.stderr


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_are_understood_by_their_programs(page, programs):
    text = [block.text for block in blocks(page)] + spans(prose(page))
    for words in [words for part in text for words in our_commands(part)]:
        fault = understood(words, programs)
        assert fault is None, f"{page.name}: {' '.join(words)}\n{fault}"


@pytest.mark.parametrize("block", all_blocks(), ids=lambda block: block.name)
def test_blocks_are_shell(block):
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert done.returncode == 0, f"{block.name}: {done.stderr}"


def test_little_is_not_run(capsys):
    not_run = [block for block in all_blocks() if block.not_run]
    with capsys.disabled():
        print("\nblocks of the book that nothing runs:")
        for block in not_run:
            print(f"  {block.name}: {block.not_run}")
    assert all(len(block.not_run) > 10 for block in not_run), "say why"
    assert len(not_run) <= MOST_NOT_RUN


def test_the_guest_is_given_what_is_marked_for_it(tmp_path):
    folder = tmp_path / "book"
    subprocess.run(["python3", CHECKOUT / "tests/book/pages.py", "guest", folder], check=True)
    given = [path.read_text() for path in sorted(folder.iterdir())]
    assert given
    for block in all_blocks():
        assert any(block.name in text and block.text in text for text in given) == block.is_guest, block.name


def test_the_two_hosts_are_given_what_is_marked_for_them(tmp_path):
    folder = tmp_path / "book"
    subprocess.run(["python3", CHECKOUT / "tests/book/pages.py", "hosts", folder], check=True)
    given = {path.relative_to(folder): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert [path.suffixes for path in sorted(given) if path.parent.name == "the-server"] == [[".server"]]
    for block in all_blocks():
        hosts = [path.suffixes for path, text in given.items() if block.name in text and block.text in text]
        assert hosts == ([[f".{host}" for host in block.hosts]] if block.hosts else []), block.name
