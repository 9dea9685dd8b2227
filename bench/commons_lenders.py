"""Recruiter and memory servers of a commons whose members a recruiter lists (policies gms and n-chance), for commons.py.

Each host has a gleaner-memoryd, which lends the host's own memory to its service at `pages_socket`, and a stand-in for the agent that reports an owner who is away
(reclaim.py). The service leases three quarters of the quota at most; the quota is therefore larger than the lease, and nobody else leases the rest. Pages
are small and not locked, so that the control group of the host counts them. All programs authenticate each other by certificates, as in a deployment.
"""

import contextlib
from pathlib import Path

from daemons import end_of, running, settings, wait_until_none
from links import PATIENCE_S
from reclaim import FakeAgent

RECRUITED = ("gms", "n-chance", "recruited-hash")
RECRUITER_PORT = 7444
ANNOUNCE_EVERY = "3s"
"""Interval of announcements: the recruiter grants nothing for one interval, and drops a host after three."""
SLAB_MIB = 2
"""Unit of leases."""
TO_JOIN_S = 120
TO_STAY_S = 10


def in_slabs(mib: float) -> int:
    """Nearest size, in MiB, that one or more leases have exactly."""
    return SLAB_MIB * round(mib / SLAB_MIB)


def cap_mib(lease_mib: int) -> int:
    """Quota of a host, in MiB, that lets its service lease `lease_mib`; one slab more than four thirds, since a quota of 0 is that of a busy host."""
    return SLAB_MIB * (-(-4 * lease_mib // (3 * SLAB_MIB)) + 1)


@contextlib.contextmanager
def recruiter(site):
    """Runs the recruiter of a site (commons_hosts.py) on its own host; yields its log."""
    here, address = site.made("recruiter"), site.address("recruiter")
    prefix = site.folder / "pki/recruiter"
    if not prefix.with_suffix(".crt").exists():
        site.pki("issue", "--recruiter", address, "-o", prefix)
    keys = {"listen": f"{address}:{RECRUITER_PORT}", "local_listen": "none", "pki": str(prefix.parent), "announce_every": ANNOUNCE_EVERY, "reserve_share": 0.0}
    config, log = here / "recruiter.toml", here / "log"
    config.write_text(settings(keys))
    command = site.entering("recruiter", site.args.programs / "gleaner-recruiter", "run", "--config", config)
    with running(command, log):
        wait_until_none(lambda: "" if "listening on https:" in log.read_text() else "the recruiter", PATIENCE_S, [log])
        yield log


def memory_server_keys(site, number: int, lease_mib: int, agent_socket: Path, here: Path) -> dict:
    """Configuration of a workstation's memory server."""
    return site.identity(number) | {
        "agent_socket": str(agent_socket),
        "socket": str(here / "memoryd.sock"),
        "state_folder": str(here / "state"),
        "pages_socket": str(here / "pages.sock"),
        "recruiters": [site.recruiter_url],
        "announce_every": ANNOUNCE_EVERY,
        "cap": f"{cap_mib(lease_mib)}MiB",
        "rise_after": "0s",
        "pressure_pause": "0s",
        "huge_pages": False,
        "lock_pages": "never",
    }


@contextlib.contextmanager
def memory_server(site, number: int, lease_mib: int, group):
    """Runs a workstation's memory server in its control group, with a stand-in for the agent; yields its log."""
    here = site.made("memory")
    config, log = here / "memoryd.toml", here / "log"
    with contextlib.closing(FakeAgent(here)) as agent:
        config.write_text(settings(memory_server_keys(site, number, lease_mib, agent.path, here)))
        command = site.entering(site.workstations[number], site.args.programs / "gleaner-memoryd", "run", "--config", config)
        with running(group.joining(command), log):
            try:
                agent.ready()
            except TimeoutError:
                raise SystemExit(f"gleaner-memoryd of {site.workstations[number]} does not connect to the agent's socket:\n{end_of(log)}") from None
            agent.idle()
            yield log


def missing(status: dict, others_count: int, is_lender: bool, others_lend: bool, after_epoch: int | None) -> str:
    """First thing that a service lacks, by its status; empty if it takes part. With `after_epoch`, it needs weights of a later epoch."""
    found = status["global"]
    for link in found["links"]:
        if not link["is_linked"]:
            return f"the link to {link['recruiter']} (fault: {link.get('fault')})"
    if (known := len(status["peers"])) < others_count:
        return f"the other members: {known} of {others_count} are known"
    if is_lender and not found["leased_bytes"]:
        return f"a lease of its host's memory (quota: {found.get('quota_bytes')} bytes)"
    epoch = found["epoch"]
    if after_epoch is not None and epoch["number"] <= after_epoch:
        return f"weights of an epoch after {after_epoch}: the last is {epoch['number']}"
    if after_epoch is not None and others_lend and not epoch["targets"]:
        return f"hosts for evicted blocks: epoch {epoch['number']} names none"
    return ""


def first_missing(services: list, leases_mib: list[int], after_epoch: int | None = None) -> str:
    """First thing that one of the services lacks, with its host; empty if all take part."""
    for number, service in enumerate(services):
        others_lend = any(mib for other, mib in enumerate(leases_mib) if other != number)
        if lacks := missing(service.status(), len(services) - 1, leases_mib[number] > 0, others_lend, after_epoch):
            return f"ws{number}: {lacks}"
    return ""


@contextlib.contextmanager
def members(services: list, leases_mib: list[int], logs: list[Path]):
    """Waits until all services know each other, those that lease memory have a lease, and all have weights that count the leases. All of them must still take part
    at the end of the body: a stand-in for an agent that is silent for 3 s ends its host's leases for good, and the figures would be those of less memory."""
    logs = [*logs, *(log for service in services for log in service.logs)]
    wait_until_none(lambda: first_missing(services, leases_mib), TO_JOIN_S, logs)
    newest = max(service.status()["global"]["epoch"]["number"] for service in services)
    wait_until_none(lambda: first_missing(services, leases_mib, newest), TO_JOIN_S, logs)
    yield
    wait_until_none(lambda: first_missing(services, leases_mib), TO_STAY_S, logs)
