#!/usr/bin/env python3
"""The workload *pmake*: makes of gnuchess, and each of their compilers as `g++ -wrapper` starts it.

makes.py WORD…    is the wrapper: runs the compiler, and if COMPILERS is set, notes its command and folder there, one JSON document a source

A make is `make clean`, then `make -j2` in one folder of the sources. Each compiler is one process (cc1plus). The compilers of a make run one after the other on two
places, and curves of different processes cannot be joined. So record keeps the compilers that workloads.toml names: two of each make, as many as run at a time.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from workloads import BUILT, SCALE, Process

SOURCES = BUILT / f"gnuchess-{SCALE['gnuchess']['version']}"


def make(folder: str, compilers: Path | None) -> subprocess.Popen:
    """Begins a make. With `compilers`, the wrapper notes each compiler in this folder."""
    environment = os.environ | {"LC_ALL": "C"}
    words = ["make", "-s", "-j2", "-C", str(SOURCES / folder)]
    if compilers:
        environment["COMPILERS"] = str(compilers)
        words.append(f"CXX=g++ -wrapper {Path(__file__).resolve()}")
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def clean() -> None:
    for folder in SCALE["pmake"]["folders"]:
        subprocess.run(["make", "-s", "-C", SOURCES / folder, "clean"], check=True, stdout=subprocess.DEVNULL)


def run(compilers: Path | None = None) -> None:
    """Both makes at the same time."""
    clean()
    for process in [make(folder, compilers) for folder in SCALE["pmake"]["folders"]]:
        if process.wait():
            raise SystemExit(f"a make of gnuchess ended with {process.returncode}: run `make` in {SOURCES}")


def processes(compilers: Path) -> list[Process]:
    """The recorded compilers, in workloads.toml's order. Makes gnuchess, with notes in the folder `compilers`."""
    run(compilers)
    found = []
    for source in (source for sources in SCALE["pmake"]["recorded"] for source in sources):
        note = compilers / f"{source}.json"
        if not note.exists():
            raise SystemExit(f"no compiler of {source} was started: workloads.toml names a source that the makes do not compile")
        noted = json.loads(note.read_text())
        found.append(Process(noted["command"], Path(noted["folder"])))
    return found


def wrapper(words: list[str]) -> None:
    sources = [Path(word).name for word in words if Path(word).suffix in (".cc", ".cpp")]
    compilers = os.environ.get("COMPILERS")
    if compilers and Path(words[0]).name == "cc1plus" and sources:
        # The driver deletes its temporary file for the assembler; a run of its own writes beside the notes.
        words_own = list(words)
        if "-o" in words_own:
            words_own[words_own.index("-o") + 1] = str(Path(compilers) / f"{sources[0]}.s")
        note = {"command": words_own, "folder": os.getcwd()}
        (Path(compilers) / f"{sources[0]}.json").write_text(json.dumps(note))
    os.execvp(words[0], words)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    wrapper(sys.argv[1:])
