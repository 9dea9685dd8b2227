"""Daemons that run while a bench works, their configurations, and waits for what they do: for commons.py and shutdown.py."""

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

END_S = 120
"""Longest time in which a program ends when it is asked to."""
LOG_LINES = 20


def settings(keys: dict) -> str:
    """Lines of a configuration file."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


def end_of(log: Path) -> str:
    """Last lines of a program's log."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LOG_LINES:]) or "(empty)"


def wait_until_none(missing: Callable[[], str], patience_s: float, logs: Iterable[Path] = ()) -> None:
    """Waits until `missing` returns an empty text. After `patience_s`, the bench ends with the text and the ends of the logs."""
    end = time.monotonic() + patience_s
    while wanted := missing():
        if time.monotonic() > end:
            ends = (f"\n{log}:\n{end_of(log)}" for log in logs)
            raise SystemExit(f"waited {patience_s} s in vain for {wanted}{''.join(ends)}")
        time.sleep(0.05)


@contextlib.contextmanager
def running(command: list, log: Path | None = None, **options):
    """Runs a program until the body ends. If the program ends before, the bench ends with the end of its log, its standard error."""
    words = list(map(str, command))
    with contextlib.ExitStack() as stack:
        if log:
            options["stderr"] = stack.enter_context(log.open("w"))
        process = subprocess.Popen(words, **{"stdout": subprocess.DEVNULL} | options)
        try:
            yield process
            if process.poll() is not None:
                said = f":\n{end_of(log)}" if log else ""
                raise SystemExit(f"{' '.join(words)} ended with {process.returncode}{said}")
        finally:
            process.terminate()
            process.wait(END_S)
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
