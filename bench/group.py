"""The processes of one program under measurement: started, observed, ended, with all their CPU time."""

import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
#: Time between two looks; every eighth also looks for new processes. It is long, so that this program is
#: hardly ever an active process in the samples: its files would then appear and disappear in the agent's
#: trace.
LOOK_SECONDS = 1.0
LOOKS_BEFORE_NEW = 8


def adopt_orphans() -> None:
    """Makes this program the parent of its children's orphans, so that their CPU time is reported here."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Group:
    """A program and its child processes, in a separate session; their output goes to a file.

    CPU time is the sum over all processes as reported by wait4(2): exact, and complete when one ends.
    Peak RSS is the sum of the processes' own VmHWM shortly before their end: ru_maxrss would include the
    memory of this program, of which they were copies before their exec.
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
        self._looks = 0

    @property
    def peak_rss_bytes(self) -> int:
        return sum(self._peaks.values())

    def look(self) -> bool:
        """Updates the peaks and reaps ended processes; returns whether the program itself still runs."""
        if self._looks % LOOKS_BEFORE_NEW == 0:
            self._peaks |= {pid: 0 for pid in self._processes() if pid not in self._peaks}
        self._looks += 1
        for pid in self._peaks:
            self._peaks[pid] = max(vm_hwm_bytes(pid), self._peaks[pid])
        while self._reap(os.WNOHANG):
            pass
        return self.status is None

    def end(self, sign: int = signal.SIGTERM, patience: float = 10.0) -> None:
        """Ends the remaining processes, and waits for all of them."""
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
