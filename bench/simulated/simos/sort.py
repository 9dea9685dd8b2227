#!/usr/bin/env python3
"""The program of the workload *simos*: each of four processors sorts records of its own by quicksort on pointers.

sort.py FILE

A record has 256 bytes: a random key, its number and six words more. The program checks the order and the sum of all keys. Each processor halts with
a0 = 0 if they are right, and a1 = the sum of its keys; processor 0 waits for the others, and its a1 is the sum of all.
"""

import sys
from pathlib import Path

from assembler import Assembler

RECORD_BYTES = 256
PAYLOAD_WORDS = 6
FLAGS = 0x80000  # a line of 64 bytes each processor: done, sum
SEED = 0x9E3779B9
SEED_STEP = 0x01234567


def fill(code: Assembler) -> None:
    """s0 pointers, s1 their end, s2 sum of the keys. The random numbers are Marsaglia's xorshift of 32 bits."""
    code.addi("s0", "a1", 0)
    code.slli("t0", "a2", 2)
    code.add("s1", "s0", "t0")
    code.addi("t1", "s1", RECORD_BYTES - 1)
    code.andi("t1", "t1", -RECORD_BYTES)  # records begin at a multiple of their size
    code.li("t0", SEED)
    code.li("t2", SEED_STEP)
    code.addi("t3", "a0", 0)
    code.label("seed")
    code.beq("t3", "zero", "seeded")
    code.add("t0", "t0", "t2")
    code.addi("t3", "t3", -1)
    code.jal("zero", "seed")
    code.label("seeded")
    code.addi("s2", "zero", 0)
    code.addi("t3", "s0", 0)
    code.label("fill")
    for shift, amount in (("slli", 13), ("srli", 17), ("slli", 5)):
        getattr(code, shift)("t4", "t0", amount)
        code.xor("t0", "t0", "t4")
    code.add("s2", "s2", "t0")
    code.sw("t0", 0, "t1")
    code.sw("t3", 4, "t1")
    for word in range(PAYLOAD_WORDS):
        code.sw("t4", 8 + 4 * word, "t1")
    code.sw("t1", 0, "t3")
    code.addi("t1", "t1", RECORD_BYTES)
    code.addi("t3", "t3", 4)
    code.bltu("t3", "s1", "fill")


def quicksort(code: Assembler) -> None:
    """Sorts the pointers from a4 to a5, both included, by Hoare's partition."""
    code.label("quicksort")
    code.bgeu("a4", "a5", "sorted")
    code.sub("t0", "a5", "a4")
    code.srli("t0", "t0", 3)
    code.slli("t0", "t0", 2)
    code.add("t0", "t0", "a4")
    code.lw("t0", 0, "t0")
    code.lw("t0", 0, "t0")  # the middle record's key
    code.addi("t1", "a4", -4)
    code.addi("t2", "a5", 4)
    code.label("partition")
    code.label("up")
    code.addi("t1", "t1", 4)
    code.lw("t3", 0, "t1")
    code.lw("t5", 0, "t3")
    code.bltu("t5", "t0", "up")
    code.label("down")
    code.addi("t2", "t2", -4)
    code.lw("t4", 0, "t2")
    code.lw("t5", 0, "t4")
    code.bltu("t0", "t5", "down")
    code.bgeu("t1", "t2", "parted")
    code.sw("t4", 0, "t1")
    code.sw("t3", 0, "t2")
    code.jal("zero", "partition")
    code.label("parted")
    code.addi("sp", "sp", -16)
    code.sw("ra", 0, "sp")
    code.sw("a5", 4, "sp")
    code.sw("t2", 8, "sp")
    code.addi("a5", "t2", 0)
    code.jal("ra", "quicksort")
    code.lw("ra", 0, "sp")
    code.lw("a5", 4, "sp")
    code.lw("t2", 8, "sp")
    code.addi("sp", "sp", 16)
    code.addi("a4", "t2", 4)
    code.jal("zero", "quicksort")
    code.label("sorted")
    code.jalr("zero", "ra", 0)


def check(code: Assembler) -> None:
    """a6 = 1 unless the keys are in order and have the sum s2."""
    code.addi("a6", "zero", 1)
    code.addi("t0", "zero", 0)  # the key before
    code.addi("t1", "s0", 0)
    code.addi("t2", "zero", 0)
    code.label("check")
    code.lw("t3", 0, "t1")
    code.lw("t3", 0, "t3")
    code.bltu("t3", "t0", "checked")
    code.add("t2", "t2", "t3")
    code.addi("t0", "t3", 0)
    code.addi("t1", "t1", 4)
    code.bltu("t1", "s1", "check")
    code.bne("t2", "s2", "checked")
    code.addi("a6", "zero", 0)
    code.label("checked")


def finish(code: Assembler) -> None:
    """Publishes the sum. Processor 0 waits for the others, and adds theirs."""
    code.li("t0", FLAGS)
    code.slli("t1", "a0", 6)
    code.add("t1", "t0", "t1")
    code.sw("s2", 4, "t1")
    code.addi("t2", "zero", 1)
    code.sw("t2", 0, "t1")
    code.bne("a0", "zero", "end")
    code.addi("t3", "zero", 1)
    code.label("wait")
    code.bgeu("t3", "a3", "end")
    code.addi("t0", "t0", 64)
    code.label("spin")
    code.lw("t4", 0, "t0")
    code.beq("t4", "zero", "spin")
    code.lw("t4", 4, "t0")
    code.add("s2", "s2", "t4")
    code.addi("t3", "t3", 1)
    code.jal("zero", "wait")
    code.label("end")
    code.addi("a0", "a6", 0)
    code.addi("a1", "s2", 0)
    code.ecall()


def sort() -> bytes:
    code = Assembler()
    fill(code)
    code.addi("a4", "s0", 0)
    code.addi("a5", "s1", -4)
    code.jal("ra", "quicksort")
    check(code)
    finish(code)
    quicksort(code)
    return code.program()


def sum_of_keys(cpu: int, records: int) -> int:
    """The sum that the processor must find."""
    key, total = SEED + cpu * SEED_STEP & 0xFFFFFFFF, 0
    for _ in range(records):
        key ^= key << 13 & 0xFFFFFFFF
        key ^= key >> 17
        key ^= key << 5 & 0xFFFFFFFF
        total += key
    return total & 0xFFFFFFFF


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    Path(sys.argv[1]).write_bytes(sort())
