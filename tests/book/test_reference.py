"""Comparison of docs/commands.md and docs/api.md in the repository with the output of the programs."""

import os
import subprocess

from pages import CHECKOUT


def test_the_reference_is_what_the_programs_print(programs):
    script = CHECKOUT / "packaging" / "book" / "reference.py"
    environment = os.environ | {"GLEANER_PROGRAMS": str(programs)}
    done = subprocess.run([script, "--check"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
