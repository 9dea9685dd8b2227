"""sysstat and PCP from Debian's packages, recording this machine: unpacked, without starting services."""

import os
import pwd
import re
import socket
import subprocess
import time
from pathlib import Path

from conftest import CHECKOUT

PATIENCE_S = 120
SYSSTAT = CHECKOUT / "target" / "sysstat"
PCP = CHECKOUT / "target" / "pcp"
PATH = f"{SYSSTAT}/usr/bin:{PCP}/usr/bin:{os.environ['PATH']}"

#: Metrics in groups, each recorded at its own interval, as in usual pmlogger configurations.
METRICS = """
log mandatory on once { hinv.ncpu hinv.pagesize kernel.uname mem.physmem kernel.all.boottime }
log mandatory on 1 sec { mem.util mem.freemem swap }
log mandatory on 1 sec { kernel.all.load kernel.all.runnable kernel.all.nprocs }
log mandatory on 1 sec { kernel.all.pressure mem.vmstat }
"""
ACCESS = '[access]\ndisallow ".*" : all;\ndisallow ":*" : all;\nallow "local:*" : all;\n'


def ends(process: subprocess.Popen, log: Path) -> None:
    assert process.wait(PATIENCE_S) == 0, log.read_text()


class Sysstat:
    """sadc, which writes one sample per second to `file`."""

    def __init__(self, folder: Path):
        self.file, self.log = folder / "sa21", folder / "sadc.log"

    def record(self, samples: int) -> subprocess.Popen:
        return self._sadc("1", str(samples))

    def restart(self) -> None:
        """Does what sysstat's service does at boot."""
        ends(self._sadc(), self.log)

    def json(self, *args: str, zone: str = "UTC") -> bytes:
        command = [SYSSTAT / "usr/bin/sadf", "-j", *args, self.file, "--", "-A"]
        environment = os.environ | {"TZ": zone}
        ended = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S, env=environment)
        return ended.stdout

    def _sadc(self, *args: str) -> subprocess.Popen:
        command = [SYSSTAT / "usr/lib/sysstat/sadc", *args, self.file]
        with self.log.open("a") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class Pcp:
    """pmcd with only the Linux agent, on a separate socket, and pmlogger beside it."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder, folder / "pcp.log"
        self.socket = folder / "pmcd.socket"
        conf, namespace = folder / "pcp.conf", folder / "namespace"
        text = (PCP / "etc/pcp.conf").read_text()
        text = re.sub(r"(?m)^(PCP_\w+)=/(etc|usr|var|run)/", rf"\1={PCP}/\2/", text)
        user = pwd.getpwuid(os.getuid()).pw_name
        conf.write_text(re.sub(r"(?m)^PCP_(USER|GROUP)=.*", rf"PCP_\1={user}", text))
        own = {name: str(folder) for name in ("PCP_RUN_DIR", "PCP_LOG_DIR", "PCP_TMP_DIR", "PCP_TMPFILE_DIR")}
        self.environment = own | {
            "PATH": PATH,
            "LD_LIBRARY_PATH": f"{PCP}/usr/lib:{PCP}/usr/lib/x86_64-linux-gnu",
            "PCP_CONF": str(conf),
            "PMCD_REQUEST_TIMEOUT": str(PATIENCE_S),  # a busy machine must not cause a timeout
        }
        merge = [PCP / "usr/lib/pcp/bin/pmnsmerge", "-f", "root_linux", "root_pmcd", namespace]
        self._run(merge, cwd=PCP / "usr/lib/pcp/pmns")
        pmdas = PCP / "usr/lib/pcp/pmdas"
        agents = f"pmcd 2 dso pmcd_init {pmdas}/pmcd/pmda_pmcd.so\nlinux 60 pipe binary {pmdas}/linux/pmdalinux\n"
        (folder / "pmcd.conf").write_text(agents + ACCESS)
        (folder / "metrics").write_text(METRICS)

    def __enter__(self):
        self.pmcd = self._pmcd()
        return self

    def __exit__(self, *_):
        self._end()

    def restart(self) -> None:
        """Restarts between two recordings; where archives are merged, <mark> shows the interruption."""
        self._end()
        self.pmcd = self._pmcd()

    def record(self, samples: int, name: str) -> subprocess.Popen:
        config = ["-c", self.folder / "metrics", "-l", self.folder / "pmlogger.log"]
        command = [PCP / "usr/bin/pmlogger", "-h", f"unix://{self.socket}", *config, "-T", f"{samples}sec"]
        return self._start([*command, self.folder / name])

    def together(self, *names: str, into: str) -> Path:
        self._run([PCP / "usr/bin/pmlogextract", *(self.folder / name for name in names), self.folder / into])
        return self.folder / into

    def _pmcd(self) -> subprocess.Popen:
        self.socket.unlink(missing_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        command = [PCP / "usr/lib/pcp/bin/pmcd", "-f", "-A", "-i", "127.0.0.1", "-p", port, "-s", self.socket]
        command += ["-c", self.folder / "pmcd.conf", "-n", self.folder / "namespace", "-l", self.folder / "pmcd.log"]
        pmcd = self._start([*command, "-q", str(PATIENCE_S), "-t", str(PATIENCE_S)])
        deadline = time.monotonic() + PATIENCE_S
        while not self.socket.exists():
            assert pmcd.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.05)
        return pmcd

    def _end(self) -> None:
        self.pmcd.terminate()
        self.pmcd.wait(PATIENCE_S)

    def _start(self, command: list, **more) -> subprocess.Popen:
        with self.log.open("a") as log:
            environment = os.environ | self.environment
            more = {"cwd": self.folder, "env": environment} | more
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)

    def _run(self, command: list, **more) -> None:
        ends(self._start(command, **more), self.log)
