"""Hosts in network namespaces, an HTTP source with sealed files, and the ways to read them, for commons.py: services of a commons, mounts without one,
caching proxies, and rclone.

Programs enter a host's network alone (nsenter), not its mounts as `ip netns exec` would: the mounts are seen by all. A host's memory is limited by a control
group that this file makes: `gleaner-clerk run`, which limits memory in other benches, needs swap. The source is nginx, whose log counts the bytes of
bodies that it has sent.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from commons_lenders import RECRUITED, RECRUITER_PORT, members, memory_server, recruiter
from daemons import end_of, running, settings, wait_until_none
from links import PATIENCE_S, PREFIX, ROOT, Network, call

NGINX = ROOT / "target/nginx/usr/sbin/nginx"
VARNISH = ROOT / "target/varnish"
RCLONE = ROOT / "target/rclone/usr/bin/rclone"
PACKAGES = {
    "nginx": ["nginx", "libnginx-mod-http-echo"],
    "varnish": ["varnish", "libvarnishapi3", "libedit2", "libjemalloc2", "libpcre2-8-0", "libbsd0"],
    "rclone": ["rclone"],
}
SOURCE_PORT, PROXY_PORT, PEER_PORT = 8080, 8081, 7445
BLOCK = 64 << 10
NUMBERS = itertools.count()
PROGRAMS_MIB = 96
"""Memory of a host for its programs themselves, besides the memory for blocks."""
READER_MIB = 16


def unpack(name: str) -> None:
    subprocess.run([ROOT / "tests/unpack", ROOT / "target" / name, *PACKAGES[name]], check=True)


class Group:
    """Control group with a limit of memory. Programs join it when they start."""

    def __init__(self, mib: int):
        first = Path("/sys/fs/cgroup/memory")
        self.is_first = first.is_dir()
        parent = first if self.is_first else Path("/sys/fs/cgroup")
        if not self.is_first:
            (parent / "cgroup.subtree_control").write_text("+memory")
        self.path, self.bytes = parent / f"gleaner-bench-{os.getpid()}-{next(NUMBERS)}", mib << 20

    def __enter__(self):
        self.path.mkdir()
        (self.path / ("memory.limit_in_bytes" if self.is_first else "memory.max")).write_text(str(self.bytes))
        return self

    def joining(self, command: list) -> list:
        """Command that joins the group, and then runs another one."""
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', self.path / "cgroup.procs", *command]

    def __exit__(self, *_):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.path.rmdir()
                return
            except OSError:  # the kernel still removes ended processes
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)


class Data:
    """Files of random bytes, and their catalog."""

    def __init__(self, commons: Path, folder: Path, files_count: int, file_bytes: int):
        self.folder, self.bytes = folder / "data", files_count * file_bytes
        self.folder.mkdir()
        for number in range(files_count):
            (self.folder / f"{number:05}").write_bytes(os.urandom(file_bytes))
        sealed = call(commons, "seal", self.folder, "-o", folder / "data.catalog")
        self.address = sealed.splitlines()[0]


class Reader:
    """A process that reads the files of a folder (reads.py)."""

    def __init__(self, process: subprocess.Popen):
        self.process = process

    def order(self, **wanted) -> None:
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the reader ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, **wanted) -> dict:
        self.order(**wanted)
        return self.answer()


class Service:
    """A running `gleaner-commons run` or `mount`, its reader, and the logs of its host's programs."""

    def __init__(self, commons: Path, socket: Path, reader: Reader, logs: list[Path] | None = None):
        self.commons, self.socket, self.reader, self.logs = commons, socket, reader, logs or []

    def status(self) -> dict:
        return json.loads(call(self.commons, "status", "--json", "--socket", self.socket))

    def cluster(self) -> dict:
        return self.status()["cluster"]


class Site(Network):
    """A source, hosts for a proxy and a recruiter, and workstations, all with links of one rate."""

    def __init__(self, args, folder: Path, data: Data, hosts_count: int, mbit_per_s: int | None):
        self.workstations = [f"ws{number}" for number in range(hosts_count)]
        super().__init__(["source", "proxy", "recruiter", *self.workstations], mbit_per_s, burst_bytes=128 << 10, offloads=True)
        self.args, self.folder, self.data = args, folder, data
        self.commons = args.programs / "gleaner-commons"
        self.source = f"http://{self.address('source')}:{SOURCE_PORT}"
        self.recruiter_url = f"https://{self.address('recruiter')}:{RECRUITER_PORT}"

    def __enter__(self):
        super().__enter__()
        try:
            here = f"server {{ listen {self.address('source')}:{SOURCE_PORT}; root {self.data.folder}; autoindex on; }}"
            self.source_log = self.stack.enter_context(self.nginx("source", here, f"{self.source}/"))
            self.certify()
        except BaseException:
            self.stack.close()
            raise
        return self

    def entering(self, host: str, *words) -> list[str]:
        """Command that runs another one in a host's network."""
        return ["nsenter", f"--net=/run/netns/{PREFIX}-{host}", *map(str, words)]

    def made(self, name: str) -> Path:
        """A new folder."""
        path = self.folder / f"{name}-{next(NUMBERS)}"
        path.mkdir()
        return path

    def await_url(self, url: str) -> None:
        """Waits until a workstation gets an answer from `url`."""
        command = self.entering("ws0", "curl", "-sf", "-o", "/dev/null", "-r", "0-0", url)
        wait_until_none(lambda: "" if subprocess.run(command).returncode == 0 else f"an answer of {url}", PATIENCE_S)

    def source_bytes(self) -> int:
        """Bytes of bodies that the source has sent so far."""
        return sum(map(int, self.source_log.read_text().split()))

    # Servers

    @contextlib.contextmanager
    def nginx(self, host: str, text: str, url: str):
        """Runs nginx with these parts of its block `http`; yields its log, a number of bytes a line."""
        here = self.made("nginx")
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"{kind}_temp_path {here}/{kind}; " for kind in kinds)
        (here / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {here}/pid; error_log {here}/error.log; events {{ worker_connections 4096; }}\n"
            f"http {{ log_format bytes '$body_bytes_sent'; access_log {here}/bytes.log bytes; keepalive_requests 1000000; {temporary} {text} }}\n"
        )
        with running(self.entering(host, NGINX, "-e", here / "error.log", "-c", here / "nginx.conf")):
            self.await_url(url)
            yield here / "bytes.log"

    @contextlib.contextmanager
    def proxy(self, name: str, mib: int):
        """Runs a caching proxy with this much memory for blocks; yields its URL."""
        at, back = f"{self.address('proxy')}:{PROXY_PORT}", f"{self.address('source')}:{SOURCE_PORT}"
        url = f"http://{at}"
        if name == "varnish":
            libraries = {str(path.parent) for path in VARNISH.glob("usr/lib/**/*.so*")}
            words = ["-F", "-j", "none", "-T", "none", "-a", at, "-b", back, "-s", f"malloc,{mib}m", "-t", 86_400, "-n", self.made("varnish")]
            options = {"env": os.environ | {"LD_LIBRARY_PATH": ":".join(sorted(libraries))}, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            with running(self.entering("proxy", VARNISH / "usr/sbin/varnishd", *words), **options):
                self.await_url(f"{url}/00000")
                yield url
            return
        # In memory, as varnish's blocks are.
        cache = Path(f"/dev/shm/{PREFIX}-{next(NUMBERS)}")
        text = (
            f"proxy_cache_path {cache} levels=1:2 keys_zone=blocks:16m max_size={mib}m inactive=1d use_temp_path=off;"
            f"upstream source {{ server {back}; keepalive 64; }}"
            f"server {{ listen {at}; location / {{ proxy_pass http://source; proxy_http_version 1.1; proxy_set_header Connection ''; slice {BLOCK};"
            "proxy_cache blocks; proxy_cache_key $uri$slice_range; proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1d;"
            "proxy_cache_lock on; } }"
        )
        try:
            with self.nginx("proxy", text, f"{url}/00000"):
                yield url
        finally:
            subprocess.run(["rm", "-rf", cache], check=True)

    # Ways to read on a workstation

    def pki(self, *words) -> None:
        """Runs `gleaner pki` with the site's authority."""
        environment = os.environ | {"GLEANER_PKI": str(self.folder / "pki")}
        subprocess.run([self.args.programs / "gleaner", "pki", *map(str, words)], env=environment, check=True, stdout=subprocess.DEVNULL)

    def certify(self) -> None:
        if not (self.folder / "pki").exists():
            self.pki("init", "--name", "bench.example")
        for number, host in enumerate(self.workstations):
            if not (self.folder / f"{host}.crt").exists():
                self.pki("issue", "--host", host_id(number), "-o", self.folder / host)

    def identity(self, number: int) -> dict:
        """Keys of the configurations of a workstation's programs: its id, and its files for TLS."""
        prefix = self.folder / self.workstations[number]
        return {"host_id": host_id(number), "certificate": f"{prefix}.crt", "key": f"{prefix}.key", "authority": str(self.folder / "pki/authority.crt")}

    def config(self, number: int, policy: str, local_mib: int, hold_mib: int, here: Path) -> Path:
        """Configuration of a workstation's service."""
        all_hosts = [f"{host_id(other)}@{self.address(name)}:{PEER_PORT}" for other, name in enumerate(self.workstations)]
        keys = self.identity(number) | {
            "name": "bench", "listen": f"{self.address(self.workstations[number])}:{PEER_PORT}", "policy": policy.removeprefix("recruited-"),
            "socket": str(here / "commons.sock"), "local_listen": "none", "kernel_cache": False, "local": f"{local_mib}MiB", "hold": f"{hold_mib}MiB",
            "source_timeout": "60s",
        }  # fmt: skip
        keys |= {"recruiters": [self.recruiter_url]} if policy in RECRUITED else {"members": all_hosts}
        if self.args.peer_timeout:
            keys["peer_timeout"] = self.args.peer_timeout
        mount = {"catalog": self.data.address, "folder": str(here / "mount"), "source": self.source}
        path = here / "commons.toml"
        path.write_text(f"{settings(keys)}[[mounts]]\n{settings(mount)}")
        return path

    def is_offered(self, policy: str) -> bool:
        """Returns true if the program accepts a configuration with this policy."""
        config = self.config(0, policy, 16, 16, self.made("offered"))
        return subprocess.run([self.commons, "check-config", "--config", config], capture_output=True).returncode == 0

    @contextlib.contextmanager
    def service(self, number: int, policy: str, local_mib: int, hold_mib: int):
        """A workstation's service, whose memory is limited to that of its blocks and PROGRAMS_MIB. With a recruiter, the host has a memory server in the same group,
        and blocks for others lie in leases of `hold_mib`."""
        here = self.made("service")
        (here / "mount").mkdir()
        config = self.config(number, policy, local_mib, hold_mib, here)
        command = self.entering(self.workstations[number], self.commons, "run", "--config", config)
        with contextlib.ExitStack() as stack:
            group = stack.enter_context(Group(local_mib + hold_mib + PROGRAMS_MIB))
            logs = [here / "log"]
            if policy in RECRUITED:
                logs.append(stack.enter_context(memory_server(self, number, hold_mib, group)))
            stack.enter_context(self.mounted(group.joining(command), here))
            reader = stack.enter_context(self.reader(here / "mount"))
            yield Service(self.commons, here / "commons.sock", reader, logs)

    @contextlib.contextmanager
    def sharing(self, policy: str, sizes_mib: list[tuple[int, int]]):
        """Services of a commons, one on each workstation, by their memory for local blocks and for those of others; all are ready."""
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(recruiter(self))] if policy in RECRUITED else []
            services = [stack.enter_context(self.service(number, policy, *sizes)) for number, sizes in enumerate(sizes_mib)]
            if policy in RECRUITED:
                stack.enter_context(members(services, [hold_mib for _, hold_mib in sizes_mib], logs))
            yield services

    @contextlib.contextmanager
    def alone(self, number: int, source: str, page_cache_mib: int | None):
        """A workstation's mount without blocks of its own: it reads the source each time. With `page_cache_mib`, the kernel caches files in that much memory,
        that of the reader's group."""
        here = self.made("alone")
        (here / "mount").mkdir()
        options = ["--source", source, "--local", "0B", "--kernel-cache", str(page_cache_mib is not None).lower()]
        words = ["mount", self.data.address, here / "mount", *options, "--source-timeout", "60s", "--socket", here / "commons.sock"]
        command = self.entering(self.workstations[number], self.commons, *words)
        with contextlib.ExitStack() as stack:
            group = stack.enter_context(Group(page_cache_mib + READER_MIB)) if page_cache_mib else None
            stack.enter_context(self.mounted(command, here))
            reader = stack.enter_context(self.reader(here / "mount", group))
            yield Service(self.commons, here / "commons.sock", reader)

    @contextlib.contextmanager
    def rclone(self, number: int, mib: int):
        """A workstation's mount by rclone, whose cache of files on disk has this size."""
        here = self.made("rclone")
        point = here / "mount"
        point.mkdir()
        words = ["mount", ":http:", point, "--http-url", f"{self.source}/", "--config", "", "--read-only", "--no-modtime", "--dir-cache-time", "24h"]
        cache = ["--cache-dir", here / "cache", "--vfs-cache-mode", "full", "--vfs-cache-max-size", f"{mib}M", "--vfs-cache-poll-interval", "1s"]
        # No chunk is larger than a file, and no byte is read for nothing.
        chunks = ["--buffer-size", "0", "--vfs-read-chunk-size", "1M", "--vfs-read-chunk-size-limit", "1M"]
        command = self.entering(self.workstations[number], RCLONE, *words, *cache, *chunks)
        with contextlib.ExitStack() as stack:
            group = stack.enter_context(Group(mib + 2 * PROGRAMS_MIB))
            # What rclone has left when it has ended.
            stack.callback(subprocess.run, ["umount", "-l", point], check=False, stderr=subprocess.DEVNULL)
            stack.enter_context(running(group.joining(command), stderr=subprocess.DEVNULL))
            wait_until_none(lambda: "" if point.is_mount() else "rclone's mount", PATIENCE_S)
            own = stack.enter_context(Group(READER_MIB))
            yield Service(self.commons, here / "none", stack.enter_context(self.reader(point, own)))

    @contextlib.contextmanager
    def mounted(self, command: list, here: Path):
        """Runs a program of the commons until the body ends; it has mounted when it prints a line."""
        log = here / "log"
        with running(command, log, stdout=subprocess.PIPE, text=True) as process:
            if not process.stdout.readline().startswith("mounted "):
                raise SystemExit(f"{' '.join(map(str, command))}:\n{end_of(log)}")
            yield

    @contextlib.contextmanager
    def reader(self, folder: Path, group: Group | None = None):
        command = [sys.executable, ROOT / "bench/reads.py", folder]
        with running(group.joining(command) if group else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            reader = Reader(process)
            reader.answer()  # it has listed the files
            yield reader


def host_id(number: int) -> str:
    """Ids must differ in their first eight digits."""
    return f"a{number:07x}{number:024x}"
