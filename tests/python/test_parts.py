"""Findings from ranges of hosts: the bytes of the whole analysis, however the tasks run."""

import json
import os
import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import gleaner
import pytest
from gleaner import _gleaner, parts

OPTIONS = {"bootstrap": 100, "time_zone": "Europe/Berlin"}


@pytest.fixture(scope="module")
def whole(dataset) -> str:
    return dataset.analyze(**OPTIONS).json


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_parts_in_any_order_give_the_whole(count, dataset, whole):
    made = [parts.analyze_range(task) for task in parts.tasks(dataset, count, OPTIONS)]
    assert len(made) == min(count, 9)
    for seed in range(3):
        random.Random(seed).shuffle(made)
        assert parts.finished(made).json == whole
    halves = [_gleaner.merge(half) for half in (made[: len(made) // 2], made[len(made) // 2 :]) if half]
    assert parts.finished(halves).json == whole


def test_a_repeated_task_returns_the_same_bytes(dataset):
    task = parts.tasks(dataset, 4, OPTIONS)[2]
    assert parts.analyze_range(task) == parts.analyze_range(task)


def test_processes_give_the_whole(dataset, whole):
    assert gleaner.analyze_in_parts(dataset, 4, **OPTIONS).json == whole


@pytest.mark.parametrize("executor", [map, ThreadPoolExecutor(2)], ids=["map", "threads"])
def test_any_executor_gives_the_whole(executor, dataset, whole):
    assert gleaner.analyze_in_parts(dataset, 3, executor=executor, **OPTIONS).json == whole


class Once(ThreadPoolExecutor):
    """Executor of which each task fails once, as if its worker was lost."""

    def __init__(self) -> None:
        super().__init__(2)
        self.failed = set()

    def submit(self, function, task):
        def lost(task):
            if task not in self.failed:
                self.failed.add(task)
                raise OSError("the worker is lost")
            return function(task)

        return super().submit(lost, task)


def test_lost_tasks_are_run_again(dataset, whole):
    with Once() as executor:
        assert gleaner.analyze_in_parts(dataset, 3, executor=executor, **OPTIONS).json == whole
        assert len(executor.failed) == 3


def killed(task):
    """Kills its process, the first time that it runs."""
    marker = os.environ["GLEANER_KILLED"]
    if not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(9)
    return parts.analyze_range(task)


def test_a_killed_process_changes_nothing(dataset, whole, tmp_path, monkeypatch):
    monkeypatch.setenv("GLEANER_KILLED", str(tmp_path / "killed"))
    tasks = parts.tasks(dataset, 3, OPTIONS)
    opened = []

    class Killed(ProcessPoolExecutor):
        def __init__(self) -> None:
            super().__init__(2, get_context("spawn"))
            opened.append(self)

        def submit(self, _, task):
            return super().submit(killed, task)

    assert parts.finished(parts._tried(parts.analyze_range, tasks, Killed)).json == whole
    assert len(opened) == 2


def test_an_error_is_raised_at_once(dataset, tmp_path):
    calls = []

    class Counting(ThreadPoolExecutor):
        def submit(self, function, task):
            calls.append(task)
            return super().submit(function, (str(tmp_path), *task[1:]))

    with Counting(1) as executor, pytest.raises(gleaner.Error, match="not a dataset"):
        gleaner.analyze_in_parts(dataset, 3, executor=executor)
    assert len(calls) == 3


def test_tasks_have_all_hosts_in_order(dataset):
    hosts = dataset.hosts()
    for number in [1, 2, len(hosts), len(hosts) + 5, None]:
        found = [json.loads(plan)["hosts"] for _, plan in parts.tasks(dataset, number, OPTIONS)]
        assert [host for part in found for host in part] == hosts
        assert len(found) == min(number or 1, len(hosts))


def test_parameters_that_do_not_exist_are_rejected(dataset):
    with pytest.raises(ValueError, match='there is no parameter "regions": there are'):
        _gleaner.analyze(dataset, '{"regions": [1]}')
    with pytest.raises(ValueError, match="invalid type"):
        _gleaner.analyze(dataset, '{"region_bytes": 1}')
    with pytest.raises(ValueError, match="there are no parts"):
        _gleaner.merge([])
    with pytest.raises(ValueError, match="give 1 or more"):
        gleaner.analyze_in_parts(dataset, 0)


def test_bytes_that_are_no_part_are_rejected(dataset):
    made = parts.analyze_range(parts.tasks(dataset, 2, OPTIONS)[0])
    for wrong in (b"", b"no part", made[:-1], made + b"x"):
        with pytest.raises(gleaner.Error):
            _gleaner.merge([wrong])
