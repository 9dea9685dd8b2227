"""A machine on which to follow the book: this one, with its own /etc, /var, /run, /root, network and host name.

Its changes disappear with it. So pages may contain `sudo gleaner pki init` and `https://collector.example:7443`,
and the same commands are run unchanged.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

from pages import Block

# Folders whose changes belong to the machine and disappear with it. All others (/tmp, where the programs are) are this
# machine's.
OWN = ("/etc", "/usr", "/var", "/srv", "/root")
NAMES = ("collector.example", "recruiter.example")

BEGIN = f"""
set -e
mount -t tmpfs machine "$SCRATCH/layers"
for own in {" ".join(OWN)}; do
  layer=$SCRATCH/layers$own
  mkdir -p "$layer/upper" "$layer/work"
  mount -t overlay overlay -o "lowerdir=$own,upperdir=$layer/upper,workdir=$layer/work" "$own"
done
mount -t tmpfs run /run
ip link set lo up
hostname desk
printf '127.0.0.1 localhost desk {" ".join(NAMES)}\\n' >/etc/hosts
exec bash "$@"
"""


class Machine:
    """Runs scripts, each on its own machine, in `scratch`."""

    def __init__(self, scratch: Path, programs: Path):
        self.scratch, self.programs = scratch, programs
        (scratch / "layers").mkdir()
        (scratch / "bin").mkdir()
        # Debian's minimal images have no sudo, and root needs none.
        sudo = scratch / "bin" / "sudo"
        sudo.write_text('#!/bin/sh\nexec "$@"\n')
        sudo.chmod(0o755)

    def run(self, script: str, folder: Path, timeout_s: float, network: bool = False) -> tuple[int | None, str]:
        """The exit code (None after a timeout) and all output; no process started by the script remains.

        The machine has only its own network, unless `network` is set (apt-get).
        """
        said = self.scratch / "said"
        (self.scratch / "script").write_text(script)
        unshare = ["unshare", *([] if network else ["--net"]), "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        path = f"{self.scratch / 'bin'}:{self.programs}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, "SCRATCH": str(self.scratch), "HOME": "/root"}
        with said.open("w") as output:
            process = subprocess.Popen(
                [*unshare, "bash", "-c", BEGIN, "machine", self.scratch / "script"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                # The namespace ends with its first process, and with it all others.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        return code, said.read_text(errors="replace")


def said_by(block: Block, said: str) -> str:
    """Output of a block, cut from the output of its page."""
    return said.partition(f"=== {block.name}\n")[2].partition("\n=== ")[0]


def assert_shown(block: Block, said: str) -> None:
    """Asserts that each line shown on the page was printed, except for words with digits; "…" stands for anything."""
    printed = said_by(block, said)
    for line in (block.shown or "").splitlines():
        tokens = [r"\S+" if re.search(r"\d", token) else re.escape(token).replace("…", ".*") for token in line.split()]
        assert re.search(r"[ \t]+".join(tokens), printed), f"{block.name} shows {line!r}; it printed:\n{printed[-4000:]}"
