"""A built collector that runs as long as a test needs it."""

import subprocess
import time
import urllib.request
from pathlib import Path

PATIENCE_S = 90


class Collector:
    """Listens on separate loopback ports; `more` are lines of its configuration."""

    def __init__(self, programs: Path, folder: Path, more: str = ""):
        folder.mkdir(parents=True, exist_ok=True)
        self.data = folder / "data"
        config = folder / "collector.toml"
        config.write_text(
            f'data_folder = "{self.data}"\nlocal_listen = "127.0.0.1:0"\nlocal_access = "all"\n{more}\n'
        )
        self.log = folder / "collector.log"
        with self.log.open("w") as log:
            command = [programs / "gleaner-collector", "run", "--config", config]
            self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
        self.url = self._address("http")
        self.tls_url = self._address("https") if "listen" in more else None

    def _address(self, scheme: str) -> str:
        begin = time.monotonic()
        while time.monotonic() - begin < PATIENCE_S and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if f"listening on {scheme}://" in line:
                    return line.split()[-1]
            time.sleep(0.02)
        raise AssertionError(f"no collector: {self.log.read_text()}")

    def open(self, path: str):
        return urllib.request.urlopen(f"{self.url}/v1/{path}", timeout=PATIENCE_S)

    def seal(self) -> None:
        request = urllib.request.Request(f"{self.url}/v1/seal", method="POST")
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert answer.status == 200

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE_S)
