"""Hosts in network namespaces, each on its own port of a switch, with links of a stated rate: for latency.py, window.py and control.py.

Each host is a namespace whose veth goes to a bridge in another one, the switch. Both ends of a veth send through a token bucket (tbf), as a host's and
a switch's port do. By arithmetic, a page of three packets takes 48 us over both links at 1 Gbit/s. A bucket of two packets adds about that: the third packet
waits, and timers fire late. A larger bucket is exact for streams, and lets a single page pass at once. The hosts' addresses are loopback addresses (127.77.0.N) that are routed over the veths, since a standalone memory server listens on no others. Congestion control
is reno, the kernel's oldest. The namespaces end with the bench. Root only.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MTU_BYTES = 1500
FRAME_BYTES = MTU_BYTES + 14
OFFLOADS = ("tso", "gso", "gro", "sg", "tx", "rx")
PREFIX = f"gb{os.getpid()}"
FIRST_PORT = 10809
PATIENCE_S = 30


def call(*words) -> str:
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}".strip())
    return done.stdout


class Network:
    """Hosts by name; all links have one rate, or none is shaped."""

    def __init__(
        self, hosts: list[str], mbit_per_s: int | None = None, queue_bytes: int = 1 << 20, burst_bytes: int | None = None, offloads: bool = False
    ):
        """With `offloads`, the kernel passes on segments of up to 64 KiB, which costs less CPU time; a bucket must take such a segment."""
        self.hosts, self.mbit_per_s, self.queue_bytes, self.offloads = hosts, mbit_per_s, queue_bytes, offloads
        # 2 us of a faster link at least: timers are too coarse for single packets.
        self.burst_bytes = burst_bytes or max(2 * FRAME_BYTES + 100, (mbit_per_s or 0) * 2)

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the namespaces are removed
        self.stack = contextlib.ExitStack()
        try:
            for tool, package in (("ip", "iproute2"), ("ethtool", "ethtool")):
                call(ROOT / "tests/need", tool, package)
            self._namespace("switch")
            self._ip("switch", "link", "add", "bridge", "type", "bridge")
            self._ip("switch", "link", "set", "bridge", "up")
            for number, host in enumerate(self.hosts, 1):
                self._host(host, number)
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _ip(self, host: str, *words) -> str:
        return call("ip", "-n", f"{PREFIX}-{host}", *words)

    def _namespace(self, host: str) -> None:
        call("ip", "netns", "add", f"{PREFIX}-{host}")
        self.stack.callback(call, "ip", "netns", "del", f"{PREFIX}-{host}")

    def _host(self, host: str, number: int) -> None:
        self._namespace(host)
        call("ip", "link", "add", "port", "netns", f"{PREFIX}-{host}", "type", "veth", "peer", "name", f"port{number}", "netns", f"{PREFIX}-switch")
        # The loopback device stays down: its address range lies on the veth.
        for setting in ("conf/all/route_localnet", "conf/port/route_localnet"):
            self.run(host, "sysctl", "-qw", f"net/ipv4/{setting}=1")
        self.run(host, "sysctl", "-qw", "net/ipv4/tcp_congestion_control=reno")
        self._ip(host, "addr", "add", f"{self.address(host)}/24", "dev", "port")
        self._ip(host, "link", "set", "port", "up")
        self._ip("switch", "link", "set", f"port{number}", "master", "bridge", "up")
        for where, device in ((host, "port"), ("switch", f"port{number}")):
            if not self.offloads:
                self.run(where, "ethtool", "-K", device, *(word for offload in OFFLOADS for word in (offload, "off")))
            if self.mbit_per_s:
                self.shape(where, device)

    def shape(self, where: str, device: str) -> None:
        words = ["rate", f"{self.mbit_per_s}mbit", "burst", self.burst_bytes, "limit", self.queue_bytes]
        call("tc", "-n", f"{PREFIX}-{where}", "qdisc", "replace", "dev", device, "root", "tbf", *words)

    def port(self, host: str) -> str:
        """Switch's device to which a host is connected."""
        return f"port{self.hosts.index(host) + 1}"

    def address(self, host: str) -> str:
        return f"127.77.0.{self.hosts.index(host) + 1}"

    def listen(self, host: str) -> tuple[str, int]:
        """Address and port of a host's NBD server."""
        return self.address(host), FIRST_PORT + self.hosts.index(host)

    def url(self, host: str) -> str:
        return "nbd://{}:{}".format(*self.listen(host))

    @contextlib.contextmanager
    def serving(self, host: str, client: str, url: str, *command):
        """Runs an NBD server on a host until `client` can connect to `url`; yields the URL, and ends the server."""
        process = subprocess.Popen(self.inside(host, *command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + PATIENCE_S
            while subprocess.run(self.inside(client, "nbdinfo", "--size", url), capture_output=True).returncode != 0:
                if process.poll() is not None or time.monotonic() > until:
                    process.kill()
                    raise SystemExit(f"{' '.join(map(str, command))}: does not serve {url}: {process.communicate()[1]}")
                time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)

    def inside(self, host: str, *words) -> list[str]:
        """Command that runs another one on a host."""
        return ["ip", "netns", "exec", f"{PREFIX}-{host}", *map(str, words)]

    def run(self, host: str, *words) -> str:
        return call(*self.inside(host, *words))

    def bytes(self, host: str) -> int:
        """Bytes that a host has sent and received, with Ethernet heads."""
        counts = [self.run(host, "cat", f"/sys/class/net/port/statistics/{direction}_bytes") for direction in ("rx", "tx")]
        return sum(map(int, counts))

    def dropped(self, host: str) -> int:
        """Packets to a host that its port of the switch has dropped."""
        words = call("tc", "-n", f"{PREFIX}-switch", "-s", "qdisc", "show", "dev", self.port(host)).split()
        return int(words[words.index("(dropped") + 1].rstrip(","))

    def retransmissions(self) -> int:
        """TCP segments that all hosts have sent again."""
        total = 0
        for host in self.hosts:
            lines = self.run(host, "nstat", "-asz", "TcpRetransSegs").splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("TcpRetransSegs"))
        return total


class Loopback(Network):
    """The same hosts in one namespace, connected by its loopback device."""

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self._namespace("all")
        self._ip("all", "link", "set", "lo", "up")
        self.run("", "sysctl", "-qw", "net/ipv4/tcp_congestion_control=reno")
        return self

    def address(self, host: str) -> str:
        return "127.0.0.1"

    def inside(self, host: str, *words) -> list[str]:
        return super().inside("all", *words)
