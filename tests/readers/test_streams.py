"""`gleaner export --stream` in libCacheSim, and cache misses by `policy` compared with libCacheSim's."""

import json
import random
import struct
import subprocess
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import libcachesim as lcs
import pytest
from libcachesim.libcachesim_python import convert_to_oracleGeneral

CHECKOUT = Path(__file__).resolve().parents[2]
RECORDS = CHECKOUT / "simulator" / "tests" / "data"
RECORD = struct.Struct("<IQIq")
# There is no next request.
NEVER = -1


def by_libcachesim(path: Path, kind: lcs.TraceType, **params) -> lcs.TraceReader:
    settings = lcs.ReaderInitParam(ignore_size_zero_req=False, obj_id_is_num=True, obj_id_is_num_set=True, **params)
    if kind == lcs.TraceType.CSV_TRACE:
        settings.time_field, settings.obj_id_field, settings.obj_size_field = 1, 2, 3
    return lcs.TraceReader(str(path), kind, settings)


def ours_as_csv(path: Path) -> lcs.TraceReader:
    return by_libcachesim(path, lcs.TraceType.CSV_TRACE, has_header=True, has_header_set=True, delimiter=",")


def oracle_general(path: Path) -> lcs.TraceReader:
    return by_libcachesim(path, lcs.TraceType.ORACLE_GENERAL_TRACE)


def requests(reader: lcs.TraceReader) -> list[tuple[int, int, int]]:
    return [(request.clock_time, request.obj_id, request.obj_size) for request in reader]


@pytest.fixture(scope="module")
def stream(tmp_path_factory) -> Path:
    """A CSV of 100,000 requests: few objects often, most of them rarely, with sizes that sometimes change, some 0."""
    dice = random.Random(1)
    path = tmp_path_factory.mktemp("stream") / "stream.csv"
    with path.open("w") as lines:
        lines.write("time,obj_id,obj_size,op,client\n")
        for at in range(100_000):
            number = int(20_000 ** dice.random())
            size = number * 7919 % 8000 if dice.random() < 0.9 else dice.randrange(9000)
            lines.write(f"{at / 8},{number * 0x9E3779B97F4A7C15 % 2**64},{size},{dice.choice(['read', 'write'])},{at % 3}\n")
    return path


def exported(gleaner, output: Path, to: str, *how) -> Path:
    gleaner("export", "--to", to, "-o", output, *how)
    return output


@pytest.mark.parametrize("name", ["stream.oracleGeneral", "stream.oracleGeneral.zst"])
def test_oracle_general_is_what_libcachesim_makes_of_the_same_requests(gleaner, stream, tmp_path, name):
    ours = exported(gleaner, tmp_path / name, "oracleGeneral", "--stream", stream, "--stream-format", "csv")
    theirs = tmp_path / "theirs.oracleGeneral"
    convert_to_oracleGeneral(ours_as_csv(stream)._reader, str(theirs))
    assert requests(oracle_general(ours)) == requests(oracle_general(theirs)) == requests(ours_as_csv(stream))
    if ours.suffix != ".zst":
        assert ours.read_bytes() == theirs.read_bytes()


def test_csv_is_read_back_and_keeps_every_word(gleaner, stream, tmp_path):
    again = exported(gleaner, tmp_path / "again.csv", "csv", "--stream", stream, "--stream-format", "csv")
    lines, expected = again.read_text().splitlines(), stream.read_text().splitlines()
    assert lines[0] == expected[0] and len(lines) == len(expected)
    for line, wanted in zip(lines[1:], expected[1:]):
        (time, line), (wanted_time, wanted) = line.split(",", 1), wanted.split(",", 1)
        assert (float(time), line) == (float(wanted_time), wanted)
    assert requests(ours_as_csv(again)) == requests(ours_as_csv(stream))


def test_libcachesims_conversion_is_read(gleaner, stream, tmp_path):
    theirs = tmp_path / "theirs.oracleGeneral"
    convert_to_oracleGeneral(ours_as_csv(stream)._reader, str(theirs))
    how = ["--stream", theirs, "--stream-format", "oracleGeneral"]
    assert requests(ours_as_csv(exported(gleaner, tmp_path / "a.csv", "csv", *how))) == requests(oracle_general(theirs))
    again = exported(gleaner, tmp_path / "again.oracleGeneral", "oracleGeneral", *how)
    assert again.read_bytes() == theirs.read_bytes()


def test_requests_to_volumes_are_requests_for_blocks(gleaner, tmp_path):
    volume = 1 << 44
    expected = [(0, 5, 4096), (0, volume + 2, 4096), (1, 5, 512), (1, 6, 4096), (3, volume + 2, 4096)]
    for name, form in [("small.spc", "spc"), ("small.blocks.csv", "blocks")]:
        path = exported(gleaner, tmp_path / f"{form}.oracleGeneral", "oracleGeneral", "--stream", RECORDS / name, "--stream-format", form)
        assert requests(oracle_general(path)) == expected
        found = [next for _, _, _, next in RECORD.iter_unpack(path.read_bytes())]
        assert found == [3, 5, NEVER, NEVER, NEVER]


def test_what_cannot_be_read_is_said_and_nothing_is_written(programs, tmp_path):
    torn, output = tmp_path / "torn.csv", tmp_path / "out"
    torn.write_text("1,2\n1,x\n")
    how = ["--stream", torn, "--stream-format", "csv", "--stream-params", "time-col=1,obj-id-col=2"]
    ended = subprocess.run([programs / "gleaner", "export", "--to", "csv", "-o", output, *how], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f'{torn} line 2: the object is "x", not a whole number' in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["torn.csv"]


SIZES = ["1", "10", "100", "1000", "10000", "1B", "8000B", "100000B", "1000000B", "10000000B"]


@pytest.fixture(scope="module")
def recording(gleaner, stream, tmp_path_factory) -> Path:
    """The stream in oracleGeneral."""
    path = tmp_path_factory.mktemp("recording") / "stream.oracleGeneral"
    return exported(gleaner, path, "oracleGeneral", "--stream", stream, "--stream-format", "csv")


@pytest.fixture
def replayed(programs, recording) -> Callable[[str, list[str]], list[dict]]:
    """Counts of a policy's caches, one for each size."""

    def replay(policy: str, sizes: list[str]) -> list[dict]:
        told = subprocess.run([programs / "examples" / "replay", recording, policy, *sizes], capture_output=True, check=True).stdout
        found = [json.loads(line) for line in told.splitlines()]
        assert [cache["capacity"] for cache in found] == sizes
        assert {cache["requests"] for cache in found} == {100_000}
        return found

    return replay


def misses_by_libcachesim(algorithm: type, path: Path, size: str) -> tuple[float, float]:
    """Shares of missed requests, and of missed bytes."""
    reader = oracle_general(path)
    reader.ignore_obj_size = not size.endswith("B")
    cache = algorithm(cache_size=int(size.removesuffix("B")), default_ttl=0, hashpower=16)
    return cache.process_trace(reader)


@pytest.mark.parametrize("policy, algorithm", [("lru", lcs.LRU), ("fifo", lcs.FIFO), ("sieve", lcs.Sieve)])
def test_caches_miss_what_libcachesim_says(recording, replayed, policy, algorithm):
    found = replayed(policy, SIZES)
    for cache, size in zip(found, SIZES):
        misses, missed_bytes = misses_by_libcachesim(algorithm, recording, size)
        assert cache["misses"] == round(misses * cache["requests"]), size
        if size.endswith("B"):
            assert cache["missed_bytes"] == round(missed_bytes * cache["bytes"]), size
    # The caches must differ, or the test shows nothing.
    assert len({cache["misses"] for cache in found}) > 8


def misses_of_s3_fifo(objects: list[tuple[int, int]], room: int, warms_up_in_main: bool = False) -> int:
    """S3-FIFO by the paper's algorithm 1 (Yang et al., SOSP 2023), for objects with sizes.

    Shares are of the number of stored objects, which equals the paper's share of the cache if all objects have one size. The main queue
    yields when room is needed next, and a new object is looked up among the ghosts before the object evicted for it becomes one.

    With `warms_up_in_main` it warms up as libCacheSim does (S3FIFO_insert in S3FIFO.c of libcachesim 0.3.5): until the first eviction, an object
    that finds the small queue full enters the main queue. In the paper it enters the small one, which then holds the whole cache at first.
    """
    uses: dict[int, int] = {}
    size_of: dict[int, int] = {}
    small: OrderedDict[int, None] = OrderedDict()
    main: OrderedDict[int, None] = OrderedDict()
    ghosts: OrderedDict[int, None] = OrderedDict()
    held = misses = 0
    has_evicted = False
    for it, size in objects:
        if it in uses:
            uses[it] = min(uses[it] + 1, 3)
            continue
        misses += 1
        if size > room:
            continue
        was_ghost = it in ghosts
        ghosts.pop(it, None)
        while held + size > room:
            has_evicted = True
            if len(small) >= max(len(uses) // 10, 1):
                while small:
                    oldest, _ = small.popitem(last=False)
                    if uses[oldest] > 1:
                        main[oldest], uses[oldest] = None, 0
                        continue
                    ghosts[oldest] = None
                    held -= size_of[oldest]
                    del uses[oldest]
                    break
                else:
                    # All of them have moved to the main queue.
                    continue
            else:
                while main:
                    oldest, _ = main.popitem(last=False)
                    if uses[oldest] > 0:
                        main[oldest] = None
                        uses[oldest] -= 1
                        continue
                    held -= size_of[oldest]
                    del uses[oldest]
                    break
        is_full = warms_up_in_main and not has_evicted and len(small) >= room // 10
        (main if was_ghost or is_full else small)[it] = None
        uses[it], size_of[it] = 0, size
        held += size
        while len(ghosts) > len(uses) - len(uses) // 10:
            ghosts.popitem(last=False)
    return misses


def test_s3_fifo_misses_what_the_papers_algorithm_does(recording, replayed):
    objects = [(it, size) for _, it, size, _ in RECORD.iter_unpack(recording.read_bytes())]
    found = [cache["misses"] for cache in replayed("s3-fifo", SIZES)]
    for misses, size in zip(found, SIZES):
        asked = objects if size.endswith("B") else [(it, 1) for it, _ in objects]
        assert misses == misses_of_s3_fifo(asked, int(size.removesuffix("B"))), size
    assert len(set(found)) > 8


def test_libcachesims_s3_fifo_differs_by_how_it_warms_up_alone(recording, replayed):
    # Sizes in objects: with bytes, libCacheSim rejects objects larger than its small queue. From 20 on: a small queue of one object accepts
    # none there. Multiples of ten: otherwise its ghost queue is one object shorter than its main queue.
    objects = [(it, 1) for _, it, _, _ in RECORD.iter_unpack(recording.read_bytes())]
    sizes = ["20", "100", "500", "1000", "5000", "10000"]
    ours = [cache["misses"] for cache in replayed("s3-fifo", sizes)]
    theirs = [round(misses_by_libcachesim(lcs.S3FIFO, recording, size)[0] * len(objects)) for size in sizes]
    assert theirs == [misses_of_s3_fifo(objects, int(size), warms_up_in_main=True) for size in sizes]
    assert ours != theirs
