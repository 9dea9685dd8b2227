"""Spark: two executors in processes of their own, one of which is killed."""

import signal
from pathlib import Path

import gleaner
import gleaner.spark
import pytest
from test_commands import SCENARIO

OPTIONS = {"bootstrap": 100}


@pytest.fixture(scope="module")
def whole(dataset) -> str:
    return dataset.analyze(**OPTIONS).json


@pytest.mark.parametrize("parts", [None, 1, 4])
def test_spark_gives_the_whole(parts, spark, dataset, whole):
    assert gleaner.spark.analyze(spark, dataset, parts, **OPTIONS).json == whole


def test_tasks_merge_many_parts_in_a_tree(spark, dataset, whole, monkeypatch):
    monkeypatch.setattr(gleaner.spark, "_MERGED", 2)
    assert gleaner.spark.analyze(spark, dataset, 9, **OPTIONS).json == whole


def test_without_spark_processes_of_this_machine_do_it(dataset, whole):
    assert gleaner.spark.analyze(None, dataset, 2, **OPTIONS).json == whole


def test_a_lost_executor_changes_nothing(spark, dataset, whole, tmp_path, monkeypatch):
    marker, kill = str(tmp_path / "killed"), signal.SIGKILL
    made = gleaner.spark._working

    def killing(work, tasks):
        working = made(work, tasks)

        def first_kills_its_executor(batches):
            import os  # pickled without this module, which executors do not have

            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                yield from working(batches)
                return
            # This worker's parent is Python's daemon, whose parent is the executor.
            with open(f"/proc/{os.getppid()}/stat") as stat:
                os.kill(int(stat.read().rsplit(")", 1)[1].split()[1]), kill)
            yield from working(batches)

        return first_kills_its_executor

    monkeypatch.setattr(gleaner.spark, "_working", killing)
    assert gleaner.spark.analyze(spark, dataset, 6, **OPTIONS).json == whole
    assert Path(marker).exists()


def test_spark_simulates_the_whole(spark, dataset, tmp_path):
    scenario = tmp_path / "short.toml"
    scenario.write_text(SCENARIO)
    options = {"dataset": {"lab": dataset}, "jobs": 1}
    assert gleaner.spark.simulate(spark, scenario, 3, **options).json == gleaner.simulate(scenario, **options).json
    assert gleaner.spark.simulate(None, scenario, 2, **options).json == gleaner.simulate(scenario, **options).json


def test_wrong_options_are_an_error_before_any_task(dataset):
    with pytest.raises(gleaner.Error, match="there is no measure"):
        gleaner.spark.analyze(object(), dataset, measure="dip")
