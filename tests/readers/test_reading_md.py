"""docs/reading.md and docs/tables.md: each of their snippets, unchanged and in order."""

import os
import re
import subprocess
import sys

import pytest
from conftest import CHECKOUT, folder_from

TEXT = "\n".join((CHECKOUT / "docs" / page).read_text() for page in ("reading.md", "tables.md"))
# Code in other languages is not run, nor commands after a comment that says so.
TEXT = re.sub(r"^<!-- not run.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
SNIPPETS = re.findall(r"^```(python|sh)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def place(shipped, programs, tmp_path_factory):
    """A folder with everything that the snippets name, and the replacements for their words."""
    folder = tmp_path_factory.mktemp("reading")
    (folder / "out" / "demo").mkdir(parents=True)
    (folder / "out" / "demo" / "dataset").symlink_to(folder_from("GLEANER_DATASET").resolve())
    pki = shipped.root.parents[1] / "pki"
    issue = ["pki", "issue", "--reader", "ada", "-o", folder / "ada", "--pki", pki]
    subprocess.run([programs / "gleaner", *issue], check=True)
    (folder / "authority.crt").symlink_to(pki / "authority.crt")
    name = shipped.stream("hosts").read_all()["host_name"][0].as_py()
    return folder, {"https://collector.example:7443": shipped.collector.tls_url, "otter": name}


def test_there_are_snippets():
    assert [language for language, _ in SNIPPETS].count("python") >= 9
    assert [language for language, _ in SNIPPETS].count("sh") >= 2


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_a_snippet_does_what_it_says(number, place, programs):
    language, text = SNIPPETS[number]
    folder, words = place
    for word, replacement in words.items():
        text = text.replace(word, replacement)
    command = [sys.executable, "-c", text] if language == "python" else ["bash", "-euc", text]
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    assert done.stdout.strip(), f"it said nothing:\n{text}"
