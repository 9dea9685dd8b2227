"""Simulations whose runs are divided into tasks: the bytes of the whole, however the tasks run."""

import os
from concurrent.futures import ThreadPoolExecutor

import gleaner
import pytest
from test_commands import SCENARIO
from test_parts import Once


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("scenario") / "short.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="module")
def whole(scenario, dataset) -> str:
    return gleaner.simulate(scenario, dataset=dataset).json


@pytest.mark.parametrize("count", [1, 3, 9])
def test_parts_give_the_whole(count, scenario, dataset, whole, tmp_path):
    pages = [tmp_path / "whole.html", tmp_path / "parts.html"]
    gleaner.simulate(scenario, dataset=dataset, page=pages[0])
    divided = gleaner.simulate(scenario, dataset=dataset, page=pages[1], parts=count, executor=map)
    assert divided.json == whole
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_processes_give_the_whole(scenario, dataset, whole):
    assert gleaner.simulate(scenario, dataset=dataset, parts=2).json == whole


def test_lost_tasks_are_run_again(scenario, dataset, whole):
    with Once() as executor:
        assert gleaner.simulate(scenario, dataset=dataset, parts=3, executor=executor).json == whole
        assert len(executor.failed) == 3


def test_workers_need_not_share_the_current_folder(scenario, dataset, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(scenario.parent)

    def elsewhere(work, tasks):
        monkeypatch.chdir(tmp_path)
        return map(work, tasks)

    relative = os.path.relpath(dataset.path)
    assert gleaner.simulate("short.toml", dataset=relative, parts=2, executor=elsewhere).json == whole


def test_errors_are_those_of_the_whole(scenario, dataset, tmp_path):
    for options in ({"sweep": {"placement": ["best"]}}, {"days": 30}, {"page": tmp_path / "nowhere" / "a.html"}):
        with pytest.raises(gleaner.Error) as of_whole:
            gleaner.simulate(scenario, dataset=dataset, **options)
        with ThreadPoolExecutor(1) as threads, pytest.raises(gleaner.Error) as of_parts:
            gleaner.simulate(scenario, dataset=dataset, parts=2, executor=threads, **options)
        assert str(of_parts.value) == str(of_whole.value)
    with pytest.raises(ValueError, match="give 1 or more"):
        gleaner.simulate(scenario, dataset=dataset, parts=0)
