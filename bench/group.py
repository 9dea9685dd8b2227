"""The processes of one program under measurement: started, watched, ended, and all their CPU time counted."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes this program the parent of its children's orphans, so that their CPU time is told here."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Group:
    """A program and whatever it starts, in a session of its own; what it says goes to a file.

    CPU time is that of every process as wait4(2) tells it: exact, and with nothing lost when one ends.
    Peak RSS is the sum of the processes' own words (VmHWM) shortly before their end: ru_maxrss would hold
    this program's as well, of which they were copies before they became what they are.
    """

    def __init__(self, command: list[str], said: Path, environment: dict[str, str], folder: Path):
        self.command = command
        self.said = said
        with said.open("wb") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        child.returncode = 0  # waited for here, not by subprocess
        self.pid = child.pid
        self.status: int | None = None
        self.cpu_ms = 0.0
        self.over = False
        self._peaks: dict[int, int] = {}

    @property
    def peak_rss_bytes(self) -> int:
        return sum(self._peaks.values())

    def look(self) -> bool:
        """Notes what there is to note; whether the program itself still runs."""
        for pid in self._processes():
            self._peaks[pid] = max(vm_hwm_bytes(pid), self._peaks.get(pid, 0))
        while self._reap(os.WNOHANG):
            pass
        return self.status is None

    def end(self, sign: int = signal.SIGTERM, patience: float = 10.0) -> None:
        """Ends what is left of it, and waits for all of it."""
        if self.over:
            return
        self.look()
        deadline = time.monotonic() + patience
        self._signal(sign)
        while not self.over:
            while self._reap(os.WNOHANG):
                pass
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
            time.sleep(0.02)

    def words(self) -> str:
        return self.said.read_text(errors="replace").strip()[-2000:]

    def _reap(self, options: int) -> bool:
        try:
            pid, status, usage = os.wait4(-self.pid, options)
        except ChildProcessError:
            self.over = True
            return False
        if pid == 0:
            return False
        self.cpu_ms += (usage.ru_utime + usage.ru_stime) * 1000
        if pid == self.pid:
            self.status = os.waitstatus_to_exitcode(status)
        return True

    def _processes(self) -> list[int]:
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if os.getsid(int(entry)) == self.pid:
                        found.append(int(entry))
                except ProcessLookupError:
                    pass
        return found

    def _signal(self, sign: int) -> None:
        try:
            os.killpg(self.pid, sign)
        except ProcessLookupError:
            pass


def vm_hwm_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
