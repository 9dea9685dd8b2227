"""docs/python.md: its cells, run one after the other in one process, as in a notebook."""

import json
import re
import subprocess
import sys

import pytest
from conftest import CHECKOUT

# A cell, and the output that the page shows below it.
CELL = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
NOTEBOOK = """
import contextlib, io, json, sys
names = {"__name__": "notebook"}
outputs = []
for cell in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(cell, f"<cell {len(outputs) + 1}>", "exec"), names)
    outputs.append(output.getvalue())
print(json.dumps(outputs))
"""
CELLS = CELL.findall((CHECKOUT / "docs" / "python.md").read_text())


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> list[str]:
    cells = json.dumps([cell for cell, _ in CELLS])
    folder = tmp_path_factory.mktemp("notebook")
    ran = subprocess.run([sys.executable, "-c", NOTEBOOK], input=cells, capture_output=True, text=True, timeout=600, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_there_are_cells():
    assert len(CELLS) >= 10
    assert sum(bool(shown) for _, shown in CELLS) >= 5


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_a_cell_prints_what_the_page_shows(number, outputs):
    cell, shown = CELLS[number]
    if shown:
        assert outputs[number] == shown, cell
    else:
        assert outputs[number].strip() or "print" not in cell, cell
