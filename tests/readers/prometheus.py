"""Debian's Prometheus on separate loopback ports; and one that scrapes a node_exporter of this machine."""

import json
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

PATIENCE_S = 120
JOB = "node"


def started(command: list, log: Path) -> tuple[subprocess.Popen, str]:
    """The process and its address: a separate port on loopback."""
    with log.open("w") as said:
        process = subprocess.Popen(
            [*command, "--web.listen-address=127.0.0.1:0"], stderr=said, stdout=said, stdin=subprocess.DEVNULL
        )
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines():
            if 'msg="Listening on"' in line:
                return process, line.rsplit("address=", 1)[1].strip()
        time.sleep(0.02)
    process.kill()
    process.wait()
    raise AssertionError(f"{command[0]} did not start: {log.read_text()}")


class Server:
    """Scrapes `targets`: for each job an address, or several. `bin` is where tests/setup unpacked the programs."""

    def __init__(self, bin: Path, folder: Path, targets: dict[str, str | list[str]], scrape_interval: str = "1s"):
        self.data = folder / "data"
        self.server = None
        config = folder / "prometheus.yml"
        lists = {job: [target] if isinstance(target, str) else target for job, target in targets.items()}
        jobs = "".join(
            f"- job_name: {job}\n  static_configs: [{{targets: {json.dumps(found)}}}]\n" for job, found in lists.items()
        )
        config.write_text(
            f"global: {{scrape_interval: {scrape_interval}, scrape_timeout: 900ms}}\nscrape_configs:\n{jobs}"
        )
        try:
            server = [bin / "prometheus", f"--config.file={config}", f"--storage.tsdb.path={self.data}"]
            self.server, address = started(server, folder / "server.log")
            self.url = f"http://{address}"
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise

    def _wait_until_ready(self) -> None:
        """Waits until it is ready: it listens before it has read its own log."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/-/ready", timeout=PATIENCE_S).close()
                return
            except urllib.error.HTTPError as not_ready:
                assert not_ready.code == 503 and time.monotonic() < deadline, not_ready
                time.sleep(0.05)

    def query(self, expression: str) -> list[dict]:
        question = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{question}", timeout=PATIENCE_S) as answer:
            return json.load(answer)["data"]["result"]

    def wait_until(self, expression: str, least: float) -> None:
        """Waits until `expression` has one value of at least `least`."""
        deadline = time.monotonic() + PATIENCE_S
        found = []
        while time.monotonic() < deadline:
            found = self.query(expression)
            if found and float(found[0]["value"][1]) >= least:
                return
            time.sleep(0.1)
        raise AssertionError(f"{expression} is not {least}: {found}")

    def stop(self) -> None:
        """Stops the server; its folder stays."""
        self.server.terminate()
        self.server.wait(PATIENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server is not None and self.server.poll() is None:
            self.server.kill()
            self.server.wait()


class Prometheus(Server):
    """Scrapes a node_exporter, and a target that is not a machine."""

    def __init__(self, bin: Path, folder: Path, scrape_interval: str = "1s"):
        exporter = [bin / "prometheus-node-exporter", "--collector.processes"]
        exporter += ["--collector.vmstat.fields=^(oom_kill|pgmajfault|pswp|pgsteal_(kswapd|direct)|workingset_refault_).*"]
        self.exporter, self.instance = started(exporter, folder / "exporter.log")
        super().__init__(bin, folder, {JOB: self.instance, "printer": "127.0.0.1:1"}, scrape_interval)

    def fail_scrapes(self, count: int) -> None:
        """Makes the exporter unavailable for this number of scrapes."""
        up = f'up{{job="{JOB}"}}'
        failed = f"count_over_time({up}[10m]) - sum_over_time({up}[10m])"
        before = float(self.query(failed)[0]["value"][1])
        self.exporter.send_signal(signal.SIGSTOP)
        try:
            self.wait_until(failed, before + count)
        finally:
            self.exporter.send_signal(signal.SIGCONT)

    def __exit__(self, *_):
        super().__exit__()
        if self.exporter.poll() is None:
            self.exporter.kill()
            self.exporter.wait()
