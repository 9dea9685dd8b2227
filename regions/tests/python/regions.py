"""As tests/c/regions.c: works, says "ready", waits for a line, works on without its server, says "done"."""

import errno
import random
import sys

import gleaner_regions

SIZE = 1 << 20
START = 4096


def work(region: gleaner_regions.Region, expected: bytearray) -> None:
    for _ in range(50):
        at = random.randrange(SIZE)
        data = random.randbytes(random.randrange(min(50_000, SIZE - at) + 1))
        assert region.write(at, data) == len(data)
        expected[at : at + len(data)] = data
        at = random.randrange(SIZE)
        assert region.read(at, 70_000) == expected[at : at + 70_000]
    found = bytearray(SIZE)
    assert region.readinto(0, found) == SIZE and found == expected


def fails(number: int, done, *arguments) -> None:
    try:
        done(*arguments)
    except OSError as error:
        assert error.errno == number and error.strerror, error
    else:
        raise AssertionError(f"{done} {arguments} went well")


random.seed(1)
fails(errno.EINVAL, lambda: gleaner_regions.configure(nonsense=1))
gleaner_regions.configure(patience_ms=30_000)
with open(sys.argv[1], "w+b") as file:
    region = gleaner_regions.Region(file, SIZE, START)
with region:
    expected = bytearray(SIZE)
    work(region, expected)
    assert region.is_remote
    fails(errno.ENOSPC, region.write, SIZE, b"x")
    print("ready", flush=True)
    assert sys.stdin.readline()
    work(region, expected)
    assert not region.is_remote
fails(errno.EBADF, region.read, 0, 1)
region.close()
with open(sys.argv[1], "r+b") as file:
    file.seek(START)
    assert file.read().ljust(SIZE, b"\0") == expected
    try:
        gleaner_regions.Region(file, SIZE)
    except MemoryError as error:
        assert "in vain" in str(error)
    else:
        raise AssertionError("memory from nobody")
gleaner_regions.end()
print("done", flush=True)
