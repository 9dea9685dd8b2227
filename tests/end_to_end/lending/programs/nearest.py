"""nearest.py COUNT FILE: finds those of COUNT vectors that are nearest to each of four others, by brute force.

Vectors and distances are small integers, so that every sum is exact.
"""

import sys

import numpy

WIDTH, NEAREST, AT_ONCE = 1024, 10, 256
count, file = int(sys.argv[1]), sys.argv[2]
random = numpy.random.default_rng(10)
vectors = random.integers(-100, 100, (count, WIDTH), dtype=numpy.int8).astype(numpy.float32)
with open(file, "w") as out:
    for query in random.integers(-100, 100, (4, WIDTH)).astype(numpy.float32):
        distances = numpy.concatenate([((vectors[at : at + AT_ONCE] - query) ** 2).sum(axis=1) for at in range(0, count, AT_ONCE)])
        for nearest in numpy.argsort(distances, kind="stable")[:NEAREST]:
            print(nearest, distances[nearest], file=out)
