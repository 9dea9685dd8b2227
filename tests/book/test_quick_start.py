"""The quick start, followed as a reader would: only its commands, copied from the page, in a separate clone."""

import re

from machine import assert_shown
from pages import CHECKOUT, DOCS, blocks

PAGE_S = 900


def test_the_quick_start_leads_to_a_lease_that_is_taken_back(machine, programs, tmp_path, capsys):
    folder = tmp_path / "here"
    folder.mkdir()
    steps = blocks(DOCS / "quick-start.md")
    assert all(step.is_run_here and not step.before for step in steps), "the reader has nothing but the page"
    lines = ["set -eo pipefail"]
    for step in steps:
        # The page cannot know where the repository is.
        text = step.text.replace("REPOSITORY", f"file://{CHECKOUT}")
        lines += [f"echo '=== {step.name}'", "begun=$EPOCHREALTIME", text]
        lines.append(f'printf "took %s %s %s\\n" {step.line} "$begun" "$EPOCHREALTIME"')
        if "git clone" in text:
            # Files built since the commit are not rebuilt: the clone's files get the commit's date, and it builds into the same
            # folder.
            aged = 'find . -name .git -prune -o -type f -exec touch -d "$(git log -1 --format=%cI)" {} +'
            lines += [aged, f"ln -s '{programs.parent}' target"]
    code, said = machine.run("\n".join(lines) + "\n", folder, PAGE_S, network=True)
    assert code == 0, f"exit code {code}; the last that was said:\n{said[-4000:]}"
    for step in steps:
        assert_shown(step, said)
    took = [(line, float(end) - float(begun)) for line, begun, end in re.findall(r"took (\d+) (\S+) (\S+)", said)]
    assert len(took) == len(steps)
    with capsys.disabled():
        print("\nthe quick start, block by block (built before):")
        for line, seconds in took:
            print(f"  docs/quick-start.md:{line}: {seconds:.1f} s")
    report = folder / "gleaner" / "report.html"
    assert "Gleaner" in report.read_text()
