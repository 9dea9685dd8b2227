"""A built recruiter, and simulated hosts that offer memory."""

import json
import os
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

PATIENCE_S = 90
SLAB = 2 << 20
GIB = 1 << 30


class Host(threading.Thread):
    """A memory server's side of the link: grants, renews and ends leases as requested."""

    def __init__(self, url: str, number: int, quota_bytes: int = 64 * GIB):
        super().__init__(daemon=True)
        self.id = f"{number:032x}"
        self.url = f"{url.replace('http', 'ws', 1)}/v1/hosts/{self.id}/link"
        self.quota_bytes = quota_bytes
        self.leases: dict[str, dict] = {}
        self.stopped = threading.Event()
        self.start()

    @property
    def unleased_bytes(self) -> int:
        return self.quota_bytes - sum(lease["remaining_bytes"] for lease in self.leases.values())

    def announcement(self) -> dict:
        free = self.unleased_bytes
        quota = {"host_id": self.id, "quota_bytes": self.quota_bytes, "lent_bytes": self.quota_bytes - free}
        quota |= {"unleased_bytes": free, "headroom_bytes": 0, "idle_quota_bytes": self.quota_bytes}
        quota |= {"physical_bytes": 2 * self.quota_bytes, "mode": "gentle", "reason": "idle"}
        said = {"type": "announcement", "version": 1, "memoryd_version": "test", "incarnation": self.id}
        said |= {"address": "192.0.2.1:10809"}
        return said | {"quota": quota, "requests_per_s": 0.0, "leases": list(self.leases.values())}

    def answer(self, asked: dict) -> dict:
        kind = asked["ask"]
        if kind == "grant":
            for lease in self.leases.values():
                if (lease["client"], lease["key"]) == (asked["client"], asked["key"]):
                    return {"outcome": "granted", "lease": lease}
            held = -(-asked["bytes"] // SLAB) * SLAB
            if held > self.unleased_bytes:
                return {"outcome": "refused", "kind": "no_memory", "detail": "less is free", "retry_in_ms": 1000}
            lease = {"lease_id": os.urandom(16).hex(), "generation": 1, "client": asked["client"], "key": asked["key"]}
            lease |= {"granted_bytes": held, "remaining_bytes": held, "expires_in_ms": asked["term_ms"]}
            self.leases[lease["lease_id"]] = lease
            return {"outcome": "granted", "lease": lease}
        lease_id = asked["lease_id"]
        if kind == "release":
            self.leases.pop(lease_id, None)
            return {"outcome": "released", "lease_id": lease_id}
        if lease_id not in self.leases:
            return {"outcome": "refused", "kind": "unknown_lease", "detail": "there is no such lease"}
        self.leases[lease_id]["expires_in_ms"] = asked["term_ms"]
        return {"outcome": "renewed", "lease": self.leases[lease_id]}

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                with connect(self.url) as link:
                    self.talk(link)
            except (OSError, WebSocketException):
                time.sleep(0.05)

    def talk(self, link) -> None:
        said, announced = None, 0.0
        while not self.stopped.is_set():
            now = self.announcement()
            if now != said or time.monotonic() - announced > 0.2:
                link.send(json.dumps(now))
                said, announced = now, time.monotonic()
            try:
                asked = json.loads(link.recv(timeout=0.05))
            except TimeoutError:
                continue
            if asked["type"] == "request":
                answer = {"type": "answer", "request_id": asked["request_id"], **self.answer(asked)}
                link.send(json.dumps(answer | {"unleased_bytes": self.unleased_bytes, "requests_per_s": 0.0}))

    def leave(self) -> None:
        self.stopped.set()
        self.join(PATIENCE_S)


class CommonsMember(threading.Thread):
    """A member's side of the link of a commons: it reports its state, and as many free frames as it lends."""

    def __init__(self, url: str, name: str, number: int, frames: int):
        super().__init__(daemon=True)
        self.id, self.frames = f"{number:032x}", frames
        self.url = f"{url.replace('http', 'ws', 1)}/v1/commons/{name}/link?host_id={self.id}"
        self.stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                with connect(self.url) as link:
                    self.talk(link)
            except (OSError, WebSocketException):
                time.sleep(0.05)

    def talk(self, link) -> None:
        hello = {"type": "hello", "version": 1, "generation": 1, "address": "192.0.2.1:7445", "frames": self.frames}
        link.send(json.dumps(hello | {"epoch": 0, "initiator": 0}))
        while not self.stopped.is_set():
            try:
                asked = json.loads(link.recv(timeout=0.05))
            except TimeoutError:
                continue
            if asked["type"] == "report_please":
                summary = {"type": "summary", "epoch": asked["epoch"], "classes": [0] * 70, "free_frames": self.frames}
                link.send(json.dumps(summary | {"replaced": 0, "received": 0, "stale": 0}))

    def leave(self) -> None:
        self.stopped.set()
        self.join(PATIENCE_S)


class Recruiter:
    """Listens on a separate loopback port, with `hosts_count` hosts."""

    def __init__(self, programs: Path, folder: Path, hosts_count: int, more: str = ""):
        folder.mkdir(parents=True, exist_ok=True)
        config, self.log = folder / "recruiter.toml", folder / "recruiter.log"
        config.write_text(f'local_listen = "127.0.0.1:0"\nlocal_access = "all"\nannounce_every = "2s"\n{more}\n')
        with self.log.open("w") as log:
            command = [programs / "gleaner-recruiter", "run", "--config", config]
            self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
        self.hosts: list[Host] = []
        try:
            self.url = self._address()
            self.hosts = [Host(self.url, number) for number in range(1, hosts_count + 1)]
            self._wait_until_ready()
        except BaseException:
            self.__exit__()
            raise

    def _address(self) -> str:
        begin = time.monotonic()
        while time.monotonic() - begin < PATIENCE_S and self.process.poll() is None:
            for line in self.log.read_text().splitlines():
                if "listening on http://" in line:
                    return line.split()[-1]
            time.sleep(0.02)
        raise AssertionError(f"no recruiter: {self.log.read_text()}")

    def _wait_until_ready(self) -> None:
        begin = time.monotonic()
        while time.monotonic() - begin < PATIENCE_S:
            health = self.get("/healthz")
            if health["grants_in_ms"] == 0 and health["links_count"] == len(self.hosts):
                return
            time.sleep(0.02)
        raise AssertionError(f"not ready: {health}")

    def get(self, path: str):
        with urllib.request.urlopen(f"{self.url}{path}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def post(self, path: str, document: dict):
        headers = {"Content-Type": "application/json", "Gleaner-Client": "reader"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(document).encode(), headers)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.stopped.set()
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        for host in self.hosts:
            host.leave()
