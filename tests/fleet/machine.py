"""A test machine: this machine's file tree below an overlay, which receives every change."""

import subprocess
from contextlib import suppress
from pathlib import Path

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    """A file tree in which commands run. Their changes disappear with the machine."""

    def __init__(self, folder: Path, name: str):
        self.root = folder / "root"
        self._daemons: list[subprocess.Popen] = []
        layers = folder / "layers"
        for made in (self.root, layers):
            made.mkdir(parents=True)
        mount("-t", "tmpfs", "-o", "size=2g", "tmpfs", layers)
        for made in ("upper", "work"):
            (layers / made).mkdir()
        mount("-t", "overlay", "-o", f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", "overlay", self.root)
        mount("--bind", "/proc", self.root / "proc")
        mount("--bind", "/dev", self.root / "dev")
        (self.root / "etc/machine-id").write_text(f"{name.encode().hex():0<32.32}\n")
        # This machine's own Gleaner files do not belong to the other.
        self.run("rm", "-rf", "/etc/gleaner", "/var/lib/gleaner", "/run/gleaner")
        # All that the packages depend on is installed. Without the repositories' lists apt opens its cache 14 times faster.
        self.run("sh", "-c", "rm -rf /var/lib/apt/lists/*")

    def command(self, *args: str, user: str = "root") -> list[str]:
        inside = ["env", "-i", f"PATH={PATH}", "HOME=/root", "SYSTEMD_OFFLINE=1", "chroot", str(self.root)]
        return [*inside, *(["runuser", "-u", user, "--"] if user != "root" else []), *map(str, args)]

    def run(self, *args: str, **how) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*args), capture_output=True, text=True, timeout=300, **how)

    def start(self, *args: str, user: str) -> subprocess.Popen:
        """Starts a daemon as its unit would, with its state folder; it ends with the machine."""
        state = f"STATE_DIRECTORY=/var/lib/gleaner/{args[0].removeprefix('gleaner-')}"
        daemon = subprocess.Popen(self.command("env", state, *args, user=user), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._daemons.append(daemon)
        return daemon

    def path(self, inside: str) -> Path:
        return self.root / inside.lstrip("/")

    def end(self) -> None:
        for daemon in self._daemons:
            daemon.terminate()
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(30)
            daemon.kill()
        # Mounts inside are removed too.
        subprocess.run(["umount", "--recursive", self.root], check=True)
        subprocess.run(["umount", self.root.parent / "layers"], check=True)


def mount(*args: object) -> None:
    subprocess.run(["mount", *map(str, args)], check=True)
