"""A sealed folder that three hosts of a commons on this machine show: real services, a recruiter that lists them, and a memory server.

The reader has read the beginning of the folder, and the lender's lease holds the blocks that the reader has evicted. The third host has the
mount for the caller. The lender's owner returns when the caller demands it.
"""

import contextlib
import hashlib
import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "bench")]

from reclaim import FakeAgent  # noqa: E402

BLOCK_BYTES = 64 << 10
# Timeout of a condition, far above the usual time even on a busy machine.
PATIENCE_S = 300
# Part of each file that the reader reads: kernel and initrd whole, of the disk what every boot reads.
READ_BYTES = 64 << 20
HOSTS = ("reader", "lender", "shown")
# Memory of each host for its own reads, and the most that it leases for others' blocks.
MEMORY = {"reader": ("640KiB", "0B"), "lender": ("640KiB", "192MiB"), "shown": ("256MiB", "0B")}


def until(what: str, is_true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < end_s, f"waited {PATIENCE_S} s in vain for {what}"
        time.sleep(0.05)


def unused_address() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def accepts(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


def write_config(path: Path, keys: dict[str, object], mount: dict[str, str] | None = None) -> Path:
    """Writes a file of TOML, whose values have the form of JSON."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    if mount:
        lines += ["[[mounts]]", *(f"{key} = {json.dumps(value)}" for key, value in mount.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


@contextlib.contextmanager
def running(*command: object, **options) -> Iterator[subprocess.Popen]:
    """Runs a daemon until the body ends."""
    process = subprocess.Popen([*map(str, command)], **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


class SharedFolder:
    """The three hosts; their programs end with `stack`."""

    def __init__(self, programs: Path, scratch: Path, sealed: Path, stack: contextlib.ExitStack):
        self.programs, self.scratch, self.sealed, self.stack = programs, scratch, sealed, stack
        self.catalog = scratch / "guest.catalog"
        self.after_return: int | None = None
        self.told("gleaner-commons", "seal", sealed, "-o", self.catalog)
        pki = scratch / "pki"
        self.told("gleaner", "pki", "init", pki, "--name", "127.0.0.1")
        self.told("gleaner", "pki", "issue", "--pki", pki, "--recruiter", "127.0.0.1", "-o", pki / "recruiter")
        self.recruiter = unused_address()
        keys = {"listen": self.recruiter, "local_listen": "none", "pki": str(pki), "announce_every": "1s", "reserve_share": 0.0}
        self.run("gleaner-recruiter", write_config(scratch / "recruiter.toml", keys))
        until("the recruiter", lambda: accepts(self.recruiter))
        self.agent = self.lend()
        for host in HOSTS:
            self.show(host)
        until("the members", lambda: all(len(self.status(host)["peers"]) + 1 == len(HOSTS) for host in HOSTS))
        until("a lease", lambda: self.status("lender")["global"]["leased_bytes"] > 0)
        until("weights", lambda: self.status("reader")["global"]["epoch"]["targets"] != [])
        self.fill_the_lease()

    @property
    def point(self) -> Path:
        """Folder where the third host shows the files."""
        return self.mount_point("shown")

    def mount_point(self, host: str) -> Path:
        return self.scratch / f"{host}.mount"

    def told(self, program: str, *words: object) -> str:
        """Output of a program that must succeed."""
        return subprocess.run([self.programs / program, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    def run(self, program: str, config: Path, **options) -> subprocess.Popen:
        return self.stack.enter_context(running(self.programs / program, "run", "--config", config, **options))

    def identity(self, host: str) -> dict[str, object]:
        """Keys of a host's daemons for the recruiter; its certificate is issued at the first call."""
        number, pki = HOSTS.index(host), self.scratch / "pki"
        # An id of digits alone would be no name of a server.
        host_id, prefix = f"a{number:07x}{number:024x}", self.scratch / host
        if not prefix.with_suffix(".crt").exists():
            self.told("gleaner", "pki", "issue", "--pki", pki, "--host", host_id, "-o", prefix)
        return {
            "host_id": host_id, "recruiters": [f"https://{self.recruiter}"], "certificate": f"{prefix}.crt", "key": f"{prefix}.key",
            "authority": str(pki / "authority.crt"),
        }  # fmt: skip

    def lend(self) -> FakeAgent:
        """Starts the lender's memory server; returns its agent, which says that the host is idle."""
        folder = self.scratch / "memoryd"
        folder.mkdir()
        agent = FakeAgent(folder)
        self.stack.callback(agent.close)
        keys = self.identity("lender") | {
            "cap": "256MiB", "agent_socket": str(agent.path), "socket": str(folder / "owner.sock"), "state_folder": str(folder / "state"),
            "pages_socket": str(folder / "pages.sock"), "listen": "127.0.0.1:0", "announce_every": "1s", "rise_after": "0s",
            "pressure_pause": "0s", "lock_pages": "never",
        }  # fmt: skip
        self.run("gleaner-memoryd", write_config(folder / "memoryd.toml", keys))
        agent.ready()
        agent.idle()
        return agent

    def show(self, host: str) -> None:
        """Starts a host's service, and waits for its mount."""
        point = self.mount_point(host)
        point.mkdir()
        local, hold = MEMORY[host]
        keys = self.identity(host) | {
            "name": "guest", "listen": unused_address(), "policy": "gms", "socket": str(self.scratch / f"{host}.sock"), "local_listen": "none",
            "kernel_cache": host == "shown", "local": local, "hold": hold, "peer_timeout": "20s", "fetch_wait": "20s", "source_timeout": "100s",
        }  # fmt: skip
        mount = {"catalog": str(self.catalog), "folder": str(point), "source": str(self.sealed)}
        self.stack.callback(subprocess.run, ["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
        service = self.run("gleaner-commons", write_config(self.scratch / f"{host}.toml", keys, mount), stdout=subprocess.PIPE, text=True)
        assert service.stdout.readline().startswith("mounted "), f"the {host} host does not mount the guest's files"

    def status(self, host: str) -> dict:
        return json.loads(self.told("gleaner-commons", "status", "--json", "--socket", self.scratch / f"{host}.sock"))

    def lending(self) -> dict:
        return json.loads(self.told("gleaner", "owner", "status", "--json", "--socket", self.scratch / "memoryd/owner.sock"))

    def read_count(self) -> int:
        """Number of blocks that the third host has fetched."""
        figures = self.status("shown")
        return figures["fetched_blocks_count"] + figures["cluster_blocks_count"]

    def different_blocks(self, *names: str) -> int:
        """Number of different blocks at the beginnings of these files."""
        blocks = set()
        for name in names:
            with (self.sealed / name).open("rb") as file:
                for _ in range(READ_BYTES // BLOCK_BYTES):
                    if block := file.read(BLOCK_BYTES):
                        blocks.add(hashlib.sha256(block).digest())
        return len(blocks)

    def fill_the_lease(self) -> None:
        """Reads the beginning of each file on the reader, until the lender has half of their blocks."""
        names = [path.name for path in sorted(self.sealed.iterdir())]
        many = self.different_blocks(*names) // 2

        def has_many() -> bool:
            for name in names:
                with (self.mount_point("reader") / name).open("rb", buffering=0) as file:
                    for offset in range(0, READ_BYTES, 1 << 20):
                        file.seek(offset)
                        file.read(1 << 20)
            return self.status("lender")["global"]["global_blocks_count"] >= many

        until("blocks in the lease", has_many)

    def return_owner_during_boot(self, guest: subprocess.Popen) -> None:
        """Lets the lender's owner return once the guest has its kernel and reads its disk."""
        kernel_count = self.different_blocks("vmlinuz", "initrd")
        until("the guest to read its disk", lambda: guest.poll() is not None or self.read_count() > kernel_count)
        assert self.status("shown")["cluster_blocks_count"] > 0, "no block came from the lease"
        assert self.lending()["resident_bytes"] > 0
        self.agent.owner_returns()

        def has_all_memory() -> bool:
            lending = self.lending()
            return lending["leases"] == [] and lending["resident_bytes"] == 0 and lending["quota"]["lent_bytes"] == 0

        until("the owner's memory", has_all_memory)
        until("the loss of the blocks", lambda: self.status("lender")["global"]["lost_blocks_count"] > 0)
        self.after_return = self.read_count()
        # The guest prints its first line when it has booted.
        assert guest.poll() is None, "the guest has ended"
        assert select.select([guest.stdout], [], [], 0)[0] == [], "the guest had booted before the owner returned"
        print(f"# an owner has returned after {self.after_return} blocks of the guest", flush=True)

    def check(self) -> None:
        """Checks what the guest has read: also after the owner's return, and no block differed."""
        figures = self.status("shown")
        cluster, fetched = figures["cluster_blocks_count"], figures["fetched_blocks_count"]
        print(f"# the guest has read {cluster} blocks of other hosts and {fetched} of the source through a commons", flush=True)
        assert self.after_return is not None and cluster + fetched > self.after_return, figures
        assert figures["differing_blocks_count"] == 0, figures
