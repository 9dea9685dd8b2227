"""The compared tracers: how each is run, and how it is known to have taken its samples."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "target/peers"
DEBIAN = PEERS / "debian"
#: below's index has one entry of this size for each sample.
BELOW_INDEX_ENTRY_BYTES = 32


@dataclass(frozen=True)
class Tracer:
    """A program that takes `{samples}` samples, `{interval}` seconds apart, and writes into `{folder}/stored`.

    Commands, files and environment may have these placeholders; `{port}` is a free port on loopback.
    """

    name: str
    version: str
    #: Description of its configuration (Markdown).
    configuration: str
    record: list[str]
    #: Services that must run beside it, measured with it; each with the path that exists once it is
    #: ready ("" for none).
    services: list[tuple[list[str], str]] = field(default_factory=list)
    #: True if the recorder is part of the tracer; otherwise it only replaces a server elsewhere.
    counts_recorder: bool = True
    #: Configuration files, by their name in `{folder}`.
    files: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    #: Returns the number of stored samples, for a tracer that does not end by itself.
    taken: Callable[[Path], int] | None = None
    is_gleaner: bool = False

    def in_plain(self) -> "Tracer":
        """The agent, configured to store paths."""
        plain = {"plain.toml": 'privacy = "plain"\n'}
        return replace(self, record=[*self.record, "--config", "{folder}/plain.toml"], files=plain)


def agent(gleaner_agent: Path) -> Tracer:
    command = [str(gleaner_agent), "run", "--sample-interval", "{interval}s", "--samples", "{samples}"]
    return Tracer(
        name="gleaner-agent run",
        version=version_of([str(gleaner_agent), "--version"]),
        configuration="`gleaner-agent run --sample-interval 1s`; paths hashed, MemAvailable read between samples as by default",
        record=[*command, "--database", "{folder}/stored/trace.db"],
        is_gleaner=True,
    )


def peers(only: str | None = None) -> list[Tracer]:
    """Peers with the word `only` in their name; sadc is first, since the others are compared with it."""
    others = [of for of in (atop, pmlogger, node_exporter, below) if only is None or only in of.__name__]
    return [sadc(), *(tracer for of in others for tracer in of())]


def sadc() -> Tracer:
    program = found("sadc", "/usr/lib/sysstat:/usr/lib64/sa")
    return Tracer(
        name="sadc -S XALL",
        version=version_of([program, "-V"]),
        configuration="`sadc -S XALL 1 N FILE`: every system-wide activity, no processes",
        record=[program, "-S", "XALL", "{interval}", "{samples}", "{folder}/stored/sadc"],
    )


def atop() -> list[Tracer]:
    program = found("atop")
    both = [
        ("atop -w", [], "`atop -w FILE 1 N`: every process"),
        ("atop -R -w", ["-R"], "`atop -R -w FILE 1 N`: every process, with proportional sizes"),
    ]
    return [
        Tracer(
            name=name,
            version=version_of([program, "-V"]),
            configuration=f"{words}; `ATOPACCT=` (no process accounting)",
            record=[program, *options, "-w", "{folder}/stored/atop", "{interval}", "{samples}"],
            environment={"ATOPACCT": ""},  # otherwise it turns on process accounting for the whole machine
        )
        for name, options, words in both
    ]


MEMORY_METRICS = ["mem.util", "mem.physmem", "mem.freemem", "swap", "kernel.all.load", "kernel.all.pressure"]
PROCESS_METRICS = [
    "proc.nprocs",
    *(f"proc.psinfo.{name}" for name in ["cmd", "start_time", "utime", "stime"]),
    *(f"proc.memory.{name}" for name in ["size", "rss", "share", "datrss", "vmswap"]),
]
PROPORTIONAL_METRICS = [f"proc.smaps.{name}" for name in ["pss_anon", "pss_file", "pss_shmem", "swappss"]]


def pmlogger() -> list[Tracer]:
    """pmcd with the agents (PMDAs) for these metrics, on a separate socket."""
    pmcd = str(DEBIAN / "usr/lib/pcp/bin/pmcd")
    program = str(DEBIAN / "usr/bin/pmlogger")
    environment = {
        "LD_LIBRARY_PATH": str(DEBIAN / "usr/lib"),
        "PCP_CONF": str(PEERS / "pcp.conf"),
        "PMCD_REQUEST_TIMEOUT": "60",  # a busy machine must not cause a timeout
        **{name: "{folder}" for name in ["PCP_RUN_DIR", "PCP_LOG_DIR", "PCP_TMP_DIR", "PCP_TMPFILE_DIR"]},
    }
    pmdas = DEBIAN / "usr/lib/pcp/pmdas"
    configuration = (
        f"pmcd 2 dso pmcd_init {pmdas}/pmcd/pmda_pmcd.so\n"
        f"proc 3 pipe binary {pmdas}/proc/pmdaproc -d 3\n"
        f"linux 60 pipe binary {pmdas}/linux/pmdalinux\n"
        '[access]\ndisallow ".*" : all;\ndisallow ":*" : all;\nallow "local:*" : all;\n'
    )
    service = [pmcd, "-f", "-A", "-i", "127.0.0.1", "-p", "{port}", "-s", "{folder}/pmcd.socket"]
    service += ["-c", "{folder}/pmcd.conf", "-n", str(PEERS / "namespace"), "-l", "/dev/stdout"]
    service += ["-q", "60", "-t", "60"]
    record = [program, "-h", "unix://{folder}/pmcd.socket", "-c", "{folder}/metrics", "-l", "/dev/stdout"]
    record += ["-t", "{interval}sec", "-s", "{samples}", "stored/archive"]
    version = version_of([str(DEBIAN / "usr/bin/pminfo"), "-V"], os.environ | environment)
    metrics = MEMORY_METRICS + PROCESS_METRICS
    plain = "`pmlogger -t 1sec`, pmcd, pmdalinux and pmdaproc, every process: `" + " ".join(metrics) + "`"
    both = [
        ("pmlogger", metrics, plain),
        (
            "pmlogger, proportional",
            metrics + PROPORTIONAL_METRICS,
            "the same and `" + " ".join(PROPORTIONAL_METRICS) + "`",
        ),
    ]
    return [
        Tracer(
            name=name,
            version=version,
            configuration=words,
            record=record,
            services=[(service, "{folder}/pmcd.socket")],
            files={
                "pmcd.conf": configuration,
                "metrics": "log mandatory on default {{\n" + "\n".join(metrics) + "\n}}\n",
            },
            environment=environment,
        )
        for name, metrics, words in both
    ]


def node_exporter() -> list[Tracer]:
    program = str(DEBIAN / "usr/bin/prometheus-node-exporter")
    both = [
        ("node_exporter", [], "Debian's defaults"),
        ("node_exporter --collector.processes", ["--collector.processes"], "with counts of processes by state"),
    ]
    return [
        Tracer(
            name=name,
            version=version_of([program, "--version"]),
            configuration="scraped over loopback every second, bytes as answered (text), the scraper's CPU not counted; "
            + words,
            record=[sys.executable, str(HERE / "scrape.py"), "http://127.0.0.1:{port}/metrics"]
            + ["{samples}", "{interval}", "{folder}/stored/scrapes"],
            services=[([program, "--web.listen-address=127.0.0.1:{port}", *options], "")],
            counts_recorder=False,
        )
        for name, options, words in both
    ]


def below() -> list[Tracer]:
    program = str(PEERS / "bin/below")
    installed = (PEERS / ".crates.toml").read_text()
    version = re.search(r'"below (\S+) ', installed)
    unified = Path("/sys/fs/cgroup/unified")
    cgroup_root = unified if unified.is_dir() else Path("/sys/fs/cgroup")
    both = [
        ("below", [], ""),
        (
            "below, compressed",
            ["--compress", "--dict-compress-chunk-size", "16"],
            " --compress --dict-compress-chunk-size 16",
        ),
    ]
    return [
        Tracer(
            name=name,
            version=version.group(1) if version else "unknown",
            configuration=f"`below record --interval-s 1 --disable-exitstats{words}`, `cgroup_root = '{cgroup_root}'`",
            record=[program, "--config", "{folder}/below.conf", "record", "--interval-s", "{interval}"]
            + ["--disable-exitstats", "--port", "{port}", *options],
            files={
                "below.conf": "log_dir = '{folder}'\nstore_dir = '{folder}/stored'\n"
                f"cgroup_root = '{cgroup_root}'\n"
            },
            taken=below_samples,
        )
        for name, options, words in both
    ]


def below_samples(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("index_*")) // BELOW_INDEX_ENTRY_BYTES


def found(program: str, folders: str = "") -> str:
    path = shutil.which(program, path=f"{folders}:{os.environ['PATH']}")
    if not path:
        raise RuntimeError(f"{program} is missing: bench/peers brings it")
    return path


def version_of(command: list[str], environment: dict[str, str] | None = None) -> str:
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    words = (said.stdout + said.stderr).split()
    return next((word.strip(",;") for word in words if word[0].isdigit()), "unknown")
