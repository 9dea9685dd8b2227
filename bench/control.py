#!/usr/bin/env python3
"""Bytes on the wire besides pages, for the comparison with Anemone (docs/evaluation.md): of a page-in and a page-out, by number of servers and clients.

control.py [--programs target/release] [--servers 1 2 3 4 5 6] [--clients 1 2 3 4] [--pages 20000] [--json FILE]

Clerks without TLS write and then read pages at memory servers, one page at a time, over links of MTU 1500 without offloads (links.py). The bench counts the bytes of the clients'
network devices, and takes the heads of NBD from `gleaner-clerk status`. The servers vary with one client, then the clients with three servers. *By arithmetic*: a page-in is a
request of 94 B, three segments with 66 B of heads each, a reply's head of 16 B, and an acknowledgement of 66 B: 374 B, 9.1 % of a page. A page-out is the
same: its three segments have the request's 28 B, and the reply is 82 B. Ethernet's preamble, checksum and gap are not counted. Root only.
"""

import argparse
import contextlib
import json
import tempfile
from pathlib import Path

from links import ROOT, Network, call

PAGE_BYTES = 4096
ETHERNET, IP, TCP, NBD_REQUEST, NBD_REPLY, SEGMENT = 14, 20, 32, 28, 16, 1448
HEADS = ETHERNET + IP + TCP


def segments(length: int) -> int:
    return -(-length // SEGMENT)


def arithmetic() -> dict[str, int]:
    """Bytes besides the page: of request, reply and one acknowledgement."""
    page_in = HEADS + NBD_REQUEST + segments(NBD_REPLY + PAGE_BYTES) * HEADS + NBD_REPLY + HEADS
    page_out = segments(NBD_REQUEST + PAGE_BYTES) * HEADS + NBD_REQUEST + HEADS + NBD_REPLY + HEADS
    return {"page_in": page_in, "page_out": page_out}


def measured(servers: int, clients: int, folder: Path, args: argparse.Namespace) -> dict:
    names = {"server": [f"server{n}" for n in range(servers)], "client": [f"client{n}" for n in range(clients)]}
    with Network(names["client"] + names["server"]) as network, contextlib.ExitStack() as stack:
        sockets = []
        for number, client in enumerate(names["client"]):
            urls = []
            for server in names["server"]:
                # A standalone memory server has one export, and an export has one client.
                address, port = network.listen(server)
                port += 100 * number
                serve = [args.programs / "gleaner-memoryd", "standalone", f"{args.size_mib}MiB", "--listen", f"{address}:{port}"]
                urls.append(stack.enter_context(network.serving(server, client, f"nbd://{address}:{port}", *serve)))
            socket = folder / f"{client}.sock"
            words = ["run", "--size", f"{args.size_mib}MiB", "--disk-folder", "none", "--listen", socket, "--status-socket", f"{socket}.status"]
            words += [word for url in urls for word in ("--server", url)]
            address = f"nbd+unix:///?socket={socket}"
            stack.enter_context(network.serving(client, client, address, args.programs / "gleaner-clerk", *words))
            sockets.append(socket)
        row = {"servers": servers, "clients": clients}
        for kind, rw in (("page_out", "randwrite"), ("page_in", "randread")):
            before = sum(map(network.bytes, names["client"]))
            pages = sum(fio(socket, rw, args) for socket in sockets)
            total = sum(map(network.bytes, names["client"])) - before
            row[f"{kind}_bytes"] = round(total / pages - PAGE_BYTES, 1)
            row[f"{kind}_percent"] = round(100 * (total / pages - PAGE_BYTES) / PAGE_BYTES, 2)
        heads = pages = 0
        for socket in sockets:
            status = json.loads(call(args.programs / "gleaner-clerk", "status", "--json", "--status-socket", f"{socket}.status"))
            heads += sum(server["control_bytes"] for server in status["servers"])
            pages += sum(server["reads_count"] + server["writes_count"] for server in status["servers"])
        row["heads_percent"] = round(100 * heads / (pages * PAGE_BYTES), 3)
        return row


def fio(socket: Path, rw: str, args: argparse.Namespace) -> int:
    """Reads or writes pages, each once; returns their number."""
    words = ["fio", "--name=pages", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--bs=4k", f"--rw={rw}", "--randseed=1"]
    said = call(*words, f"--size={args.pages * PAGE_BYTES}", "--output-format=json")
    job = json.loads(said[said.index("{") :])["jobs"][0]
    return job["read"]["total_ios"] + job["write"]["total_ios"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, default=ROOT / "target/release", metavar="DIR", help="where gleaner-memoryd and gleaner-clerk are")
    parser.add_argument("--servers", nargs="+", type=int, default=[1, 2, 3, 4, 5, 6], help="with one client")
    parser.add_argument("--clients", nargs="+", type=int, default=[2, 3, 4], help="with three servers")
    parser.add_argument("--pages", type=int, default=20_000, help="of each client")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    args = parser.parse_args()
    args.size_mib = args.pages * PAGE_BYTES * 3 // 2 >> 20
    for tool, package in (("fio", "fio"), ("nbdinfo", "libnbd-bin"), ("ip", "iproute2")):
        call(ROOT / "tests/need", tool, package)
    with tempfile.TemporaryDirectory(prefix="gleaner-bench-") as name:
        cases = [(servers, 1) for servers in args.servers] + [(3, clients) for clients in args.clients]
        rows = [measured(servers, clients, Path(name), args) for servers, clients in cases]
    expected = arithmetic()
    print("| servers | clients | page-in B | % | page-out B | % | heads by status % |\n|" + " --- |" * 7)
    for row in [*rows, {"servers": "by arithmetic", "clients": "", **{f"{kind}_bytes": count for kind, count in expected.items()}}]:
        percent = lambda kind: row.get(f"{kind}_percent", round(100 * row[f"{kind}_bytes"] / PAGE_BYTES, 2))  # noqa: B023, E731
        print(f"| {row['servers']} | {row['clients']} | {row['page_in_bytes']} | {percent('page_in')} | {row['page_out_bytes']} | {percent('page_out')} | {row.get('heads_percent', '')} |")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({"control": {"arithmetic_bytes": expected, "rows": rows}}, indent=1))


if __name__ == "__main__":
    main()
