"""docs/commands.md and docs/api.md: the repository has them as the programs print them."""

import os
import subprocess

from pages import CHECKOUT


def test_the_reference_is_what_the_programs_print(programs):
    script = CHECKOUT / "packaging" / "book" / "reference.py"
    environment = os.environ | {"GLEANER_PROGRAMS": str(programs)}
    done = subprocess.run([script, "--check"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
