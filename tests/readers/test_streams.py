"""`gleaner export --stream` in libCacheSim, and what caches miss by `policy` against what they miss by libCacheSim."""

import json
import random
import struct
import subprocess
from pathlib import Path

import libcachesim as lcs
import pytest
from libcachesim.libcachesim_python import convert_to_oracleGeneral

CHECKOUT = Path(__file__).resolve().parents[2]
RECORDS = CHECKOUT / "simulator" / "tests" / "data"
RECORD = struct.Struct("<IQIq")
# That there is no other request.
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
    """A CSV of 100,000 requests: few objects often, most of them seldom, sizes that change now and then, some of nothing."""
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


@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_caches_miss_what_libcachesim_says(gleaner, programs, stream, tmp_path, policy):
    path = exported(gleaner, tmp_path / "stream.oracleGeneral", "oracleGeneral", "--stream", stream, "--stream-format", "csv")
    sizes = ["1", "10", "100", "1000", "10000", "1B", "8000B", "100000B", "1000000B", "10000000B"]
    told = subprocess.run([programs / "examples" / "replay", path, policy, *sizes], capture_output=True, check=True).stdout
    found = [json.loads(line) for line in told.splitlines()]
    assert [cache["capacity"] for cache in found] == sizes
    algorithm = {"lru": lcs.LRU, "fifo": lcs.FIFO}[policy]
    for cache, size in zip(found, sizes):
        reader = oracle_general(path)
        reader.ignore_obj_size = not size.endswith("B")
        theirs = algorithm(cache_size=int(size.removesuffix("B")), default_ttl=0, hashpower=16)
        misses, missed_bytes = theirs.process_trace(reader)
        assert cache["requests"] == 100_000
        assert cache["misses"] == round(misses * cache["requests"]), size
        if size.endswith("B"):
            assert cache["missed_bytes"] == round(missed_bytes * cache["bytes"]), size
    # Caches that differ, or the test shows nothing.
    assert len({cache["misses"] for cache in found}) > 8
