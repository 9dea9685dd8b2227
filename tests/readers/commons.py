"""Built services of several hosts that show one sealed folder and share its blocks, on loopback addresses."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

PATIENCE_S = 90
#: Number of blocks of 64 KiB in the sealed file.
BLOCKS = 40
FILE = "file"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class CommonsHost:
    """A service with one mount."""

    def __init__(self, programs: Path, folder: Path, config: str, host_id: str):
        self.programs, self.host_id = programs, host_id
        self.point, self.socket, self.log = (folder / f"{host_id}.{end}" for end in ("mount", "sock", "log"))
        self.point.mkdir()
        path = folder / f"{host_id}.toml"
        path.write_text(config)
        with self.log.open("w") as log:
            command = [programs / "gleaner-commons", "run", "--config", path]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def wait_until_mounted(self) -> None:
        begin = time.monotonic()
        while time.monotonic() - begin < PATIENCE_S and self.process.poll() is None:
            lines = self.log.read_text().splitlines()
            if any(line.startswith("mounted ") for line in lines):
                # Address of the metrics.
                [self.url] = [line.split()[-1] for line in lines if "listening on http://" in line]
                return
            time.sleep(0.02)
        raise AssertionError(f"no mount: {self.log.read_text()}")

    def read(self) -> bytes:
        return (self.point / FILE).read_bytes()

    def status(self) -> dict:
        command = [self.programs / "gleaner-commons", "status", "--json", "--socket", self.socket]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_S).stdout)

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            subprocess.run(["umount", "--lazy", self.point], stderr=subprocess.DEVNULL)


class Commons:
    """Hosts with the same list of members. `pki` is the folder of their authority.

    The list has one more member, which never runs.
    """

    def __init__(self, programs: Path, folder: Path, pki: Path, hosts_count: int):
        folder.mkdir()
        self.hosts: list[CommonsHost] = []
        source, catalog = folder / "source", folder / "source.catalog"
        source.mkdir()
        self.contents = os.urandom(BLOCKS << 16)
        (source / FILE).write_bytes(self.contents)
        subprocess.run([programs / "gleaner-commons", "seal", source, "-o", catalog], check=True, capture_output=True)
        members = {f"a{number:07x}{number:024x}": f"127.0.0.1:{free_port()}" for number in range(hosts_count + 1)}
        [*running, self.absent_id] = members
        try:
            for host_id in running:
                prefix = folder / host_id
                issue = ["pki", "issue", "--host", host_id, "-o", prefix, "--pki", pki]
                subprocess.run([programs / "gleaner", *issue], check=True, capture_output=True)
                config = {
                    "name": "tools",
                    "host_id": host_id,
                    "members": [f"{member}@{address}" for member, address in members.items()],
                    "listen": members[host_id],
                    "local_listen": "127.0.0.1:0",
                    "certificate": f"{prefix}.crt",
                    "key": f"{prefix}.key",
                    "authority": str(pki / "authority.crt"),
                    "socket": f"{prefix}.sock",
                    "hold": "64MiB",
                    "kernel_cache": False,
                    "peer_timeout": "60s",
                    "fetch_wait": "60s",
                    "source_timeout": "200s",
                }
                lines = [f"{key} = {json.dumps(value)}" for key, value in config.items()]
                mount = {"catalog": str(catalog), "folder": f"{prefix}.mount", "source": str(source)}
                lines += ["[[mounts]]", *(f"{key} = {json.dumps(value)}" for key, value in mount.items())]
                self.hosts.append(CommonsHost(programs, folder, "\n".join(lines) + "\n", host_id))
            for host in self.hosts:
                host.wait_until_mounted()
        except BaseException:
            self.__exit__()
            raise

    def addresses(self) -> list[str]:
        """Addresses of the metrics."""
        return [host.url.removeprefix("http://") for host in self.hosts]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.end()
