"""Analysis by ranges of hosts, and simulation by runs: in several processes, on Ray, or on any other executor.

Each task of an analysis reads the hosts of one range and returns a part of the findings; parts are merged into the
findings, which are the same, byte for byte, as those of one process. Each task of a simulation (:func:`gleaner.simulate`
with ``parts``) does some of its runs. A lost or repeated task changes nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from . import _gleaner
from ._options import AnyPath, arguments, parameters, place_of
from .findings import Findings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import AnalyzeOptions
    from .dataset import Dataset

Task: TypeAlias = tuple[str, str]
"""Folder or URL of the dataset, and the plan of a part as JSON: parameters with all defaults chosen, and the part's hosts."""
Work: TypeAlias = Callable[[Any], bytes]
"""Function of a task, which returns a part."""
Map: TypeAlias = Callable[[Work, Sequence[Any]], Iterable[bytes]]
"""Function like the built-in ``map``: returns the function's result for each task, in the tasks' order."""

_ATTEMPTS = 3
# Hosts of a task if the number of parts is left open: some seconds of work, and few tasks even for ten thousand hosts.
_HOSTS = 64


def analyze_in_parts(
    dataset: Dataset | AnyPath,
    parts: int | None = None,
    *,
    executor: Union[Executor, Map, None] = None,
    records: AnyPath | None = None,
    **options: Unpack[AnalyzeOptions],
) -> Findings:
    """Analyses a dataset in ``parts`` ranges of hosts, and returns the findings of :func:`gleaner.analyze`.

    ``executor`` runs the tasks: any ``concurrent.futures.Executor``, or a function like ``map``. By default they run in a
    pool of new processes, as many as there are CPUs; a single part runs in this process. Every worker needs the package
    and the dataset's folder under the same path, or the same access to its object store. The default for ``parts`` is the number of CPUs. On Ray::

        analyze = ray.remote(gleaner.parts.analyze_range)
        on_ray = lambda _, tasks: ray.get([analyze.remote(task) for task in tasks])
        gleaner.analyze_in_parts(dataset, 64, executor=on_ray)

    A task whose worker was lost is run again, three times at most. A :class:`gleaner.Error` is raised at once, because it
    would come again. A function like ``map`` repeats lost tasks itself, as Ray does. ``records`` and ``options`` are those
    of :func:`gleaner.analyze`.

    New processes import the script that starts them: its calls belong under ``if __name__ == "__main__":``.
    """
    whole = tasks(dataset, (os.cpu_count() or 1) if parts is None else parts, options)
    return finished(results(analyze_range, whole, executor), records)


def tasks(dataset: Dataset | AnyPath, parts: int | None, options: AnalyzeOptions) -> list[Task]:
    """Tasks of an analysis: at most ``parts`` ranges of hosts, in the order of host ids.

    The ranges have nearly equal sizes; by default at most 64 hosts. The parameters' defaults are chosen here, from all hosts, so that every task has the same.
    """
    if parts is not None and parts < 1:
        raise ValueError(f"parts is {parts}: give 1 or more")
    path = place_of(dataset)
    return [(path, plan) for plan in _gleaner.plans(path, parameters(options), parts, _HOSTS)]


def analyze_range(task: Task) -> bytes:
    """Part of the findings, of one range of hosts. Repeated, it returns the same bytes."""
    return _gleaner.analyze_part(*task)


def finished(parts: Sequence[bytes], records: AnyPath | None = None) -> Findings:
    """Findings of all parts, in any order. ``records`` is as for :func:`gleaner.analyze`."""
    folder = None if records is None else os.fspath(records)
    return Findings(_gleaner.finish(_gleaner.merge(list(parts)), folder))


def simulate_runs(task: Sequence[str]) -> bytes:
    """Part of a simulation: some of its runs. ``task`` has the arguments of ``gleaner simulate``, with ``--part``."""
    return _gleaner.run(["simulate", "--output=-", *task]).encode()


def simulated(options: Sequence[str], page: AnyPath | None, parts: int | None, executor: Union[Executor, Map, None]) -> str:
    """JSON of a simulation whose runs are divided into ``parts`` tasks (default: the number of CPUs).

    ``options`` are arguments of ``gleaner simulate``, with paths that every worker has; ``page`` is a file to write.
    """
    parts = (os.cpu_count() or 1) if parts is None else parts
    if parts < 1:
        raise ValueError(f"parts is {parts}: give 1 or more")
    # The command would find this out after the runs only.
    if page is not None and not (folder := Path(page).parent).is_dir():
        raise _gleaner.Error(f"cannot write in {folder}: there is no such folder")
    whole = [(f"--part={number}/{parts}", *options) for number in range(1, parts + 1)]
    with tempfile.TemporaryDirectory() as stored:
        files = []
        for number, part in enumerate(results(simulate_runs, whole, executor)):
            files.append(os.path.join(stored, str(number)))
            Path(files[-1]).write_bytes(part)
        return _gleaner.run(["merge", "--json", *arguments({"page": page}), "--", *files])


def results(work: Work, whole: Sequence[Any], executor: Union[Executor, Map, None]) -> list[bytes]:
    """Results of the tasks, in their order."""
    if executor is None and len(whole) == 1:
        return [work(whole[0])]
    if executor is None:
        return _tried(work, whole, lambda: ProcessPoolExecutor(min(len(whole), os.cpu_count() or 1), _processes()))
    if isinstance(executor, Executor):
        return _tried(work, whole, lambda: nullcontext(executor))
    return list(executor(work, whole))


def _processes() -> Any:
    # A fork would copy the locks of the analysis' threads, which then nobody unlocks.
    return multiprocessing.get_context("spawn")


def _tried(work: Work, whole: Sequence[Any], opened: Callable[[], Any]) -> list[bytes]:
    """Runs the tasks on an executor, and those again that failed with their worker."""
    done: dict[int, bytes] = {}
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with opened() as executor:
                _run(work, whole, executor, done)
            break
        except Exception as error:
            if isinstance(error, _gleaner.Error) or attempt == _ATTEMPTS:
                raise
    return [done[at] for at in range(len(whole))]


def _run(work: Work, whole: Sequence[Any], executor: Executor, done: dict[int, bytes]) -> None:
    """Adds the results of the tasks that are not done yet. Raises the last failure, after the other tasks."""
    pending: dict[int, Future[bytes]] = {}
    failure: Exception | None = None
    try:
        for at, task in enumerate(whole):
            if at not in done:
                pending[at] = executor.submit(work, task)
    except BrokenExecutor as error:
        failure = error
    for at, future in pending.items():
        try:
            done[at] = future.result()
        except _gleaner.Error:
            for other in pending.values():
                other.cancel()
            raise
        except Exception as error:
            failure = error
    if failure is not None:
        raise failure
