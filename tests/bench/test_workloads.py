"""The workloads of bench/simulated: generators give equal bytes for equal arguments, and small versions of the C programs compute what they must."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SIMULATED = Path(__file__).resolve().parents[2] / "bench/simulated"
sys.path[:0] = [str(SIMULATED), str(SIMULATED / "simos")]

import netlist  # noqa: E402
import sort  # noqa: E402
import tpcb  # noqa: E402
import workloads  # noqa: E402
from assembler import Assembler  # noqa: E402

WORD = 0xFFFFFFFF
CPU = re.compile(r"cpu (\d): status (\d+) value ([0-9a-f]{8}) .* invalidations (\d+) ")


def compiled(folder: Path, name: str, *sources: str) -> Path:
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", folder / name, *(SIMULATED / source for source in sources), "-lm"], check=True)
    return folder / name


@pytest.fixture(scope="module")
def simos(tmp_path_factory) -> Path:
    return compiled(tmp_path_factory.mktemp("simos"), "simos", "simos/simos.c", "simos/cpu.c", "simos/caches.c")


def run(simos: Path, code: bytes, folder: Path, records: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Exit code, and each processor's status, value and invalidations."""
    (folder / "program").write_bytes(code)
    done = subprocess.run([simos, folder / "program", "4", str(records)], capture_output=True, text=True)
    return done.returncode, [(int(status), int(value, 16), int(lines)) for _, status, value, lines in CPU.findall(done.stdout)]


def test_ocean_solves_an_equation_with_a_known_solution(tmp_path):
    ocean = compiled(tmp_path, "ocean", "ocean.c")
    subprocess.run([ocean, "check"], check=True)
    outputs = {subprocess.run([ocean, "64", "48", "2"], check=True, capture_output=True).stdout for _ in range(2)}
    assert len(outputs) == 1
    assert subprocess.run([ocean, "65", "48", "2"], stderr=subprocess.DEVNULL).returncode == 2


def test_four_processors_sort_their_records(simos, tmp_path):
    code, cpus = run(simos, sort.sort(), tmp_path, 500)
    sums = [sort.sum_of_keys(cpu, 500) for cpu in range(4)]
    assert code == 0
    assert [value for _, value, _ in cpus] == [sum(sums) & WORD, *sums[1:]]


def test_instructions_of_rv32i_compute_what_the_manual_says(simos, tmp_path):
    """The checksum of all operations on edge values, computed here and there."""
    signed = lambda value: value - (1 << 32) if value >> 31 else value
    operations = {
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "sll": lambda a, b: a << (b & 31),
        "slt": lambda a, b: signed(a) < signed(b),
        "sltu": lambda a, b: a < b,
        "xor": lambda a, b: a ^ b,
        "srl": lambda a, b: a >> (b & 31),
        "sra": lambda a, b: signed(a) >> (b & 31),
        "or": lambda a, b: a | b,
        "and": lambda a, b: a & b,
    }
    branches = {"beq": int.__eq__, "bne": int.__ne__, "bltu": int.__lt__, "bgeu": int.__ge__}
    values = (0, 1, 31, 0x7FFFFFFF, 0x80000000, 0xFFFFF800, WORD)
    code, expected = Assembler(), 0
    code.addi("s1", "zero", 0)
    code.addi("s4", "zero", 31)
    for a in values:
        for b in values:
            code.li("t0", a)
            code.li("t1", b)
            results = []
            for name, operation in operations.items():
                getattr(code, name)("t2", "t0", "t1")
                results.append(int(operation(a, b)) & WORD)
                add_to_checksum(code)
            for name, is_taken in branches.items():
                label = f"{name}-{a}-{b}"
                code.addi("t2", "zero", 1)
                getattr(code, name)("t0", "t1", label)
                code.addi("t2", "zero", 2)
                code.label(label)
                results.append(1 if is_taken(a, b) else 2)
                add_to_checksum(code)
            # A signed and an unsigned byte and half word of what was stored.
            for name, bits, is_signed in (("lb", 8, True), ("lbu", 8, False), ("lh", 16, True), ("lhu", 16, False), ("lw", 32, False)):
                code.sw("t0", -8, "sp")
                getattr(code, name)("t2", -8, "sp")
                low = a & (1 << bits) - 1
                results.append((low - (1 << bits) if is_signed and low >> bits - 1 else low) & WORD)
                add_to_checksum(code)
            for result in results:
                expected = (expected * 32 - expected + result) & WORD
    code.addi("a0", "zero", 0)
    code.addi("a1", "s1", 0)
    code.ecall()
    status, cpus = run(simos, code.program(), tmp_path, 1)
    assert status == 0
    assert [value for _, value, _ in cpus] == [expected] * 4


def add_to_checksum(code: Assembler) -> None:
    """s1 = s1 * 31 + t2."""
    code.slli("t3", "s1", 5)
    code.sub("s1", "t3", "s1")
    code.add("s1", "s1", "t2")


def test_processors_that_write_one_line_invalidate_each_other(simos, tmp_path):
    code = Assembler()
    code.li("t0", sort.FLAGS)
    code.slli("t1", "a0", 2)
    code.add("t0", "t0", "t1")
    code.addi("t2", "zero", 1000)
    code.label("again")
    code.lw("t3", 0, "t0")
    code.addi("t3", "t3", 1)
    code.sw("t3", 0, "t0")
    code.addi("t2", "t2", -1)
    code.bne("t2", "zero", "again")
    code.addi("a0", "zero", 0)
    code.addi("a1", "t3", 0)
    code.ecall()
    status, cpus = run(simos, code.program(), tmp_path, 1)
    assert status == 0
    assert all(value == 1000 and invalidations > 10 for _, value, invalidations in cpus)


@pytest.mark.parametrize("word", [0, WORD])
def test_an_unknown_instruction_ends_the_simulation(simos, tmp_path, word):
    assert run(simos, word.to_bytes(4, "little"), tmp_path, 1)[0] == 1


def test_netlists_have_no_cycles_and_equal_seeds_give_equal_bytes():
    made = [netlist.made(seed, gates=300, registers=40, inputs=8) for seed in (1, 1, 2)]
    assert netlist.assigns(made[0]) == netlist.assigns(made[1]) != netlist.assigns(made[2])
    assert netlist.cells(made[0]) == netlist.cells(made[1]) != netlist.cells(made[2])
    assert all(source < made[0].first_gate + number for number, (_, sources) in enumerate(made[0].gates) for source in sources)
    assert netlist.cells(made[0]).count(".CK(clk)") == 40
    assert netlist.liberty().count("{") == netlist.liberty().count("}")


def test_transactions_of_tpcb_are_equal_for_equal_seeds():
    first, again, other = (tpcb.script(seed, branches=2, accounts=100, transactions=50) for seed in (1, 1, 2))
    assert first == again != other
    assert first.count("begin;") == first.count("commit;") == 50


def test_each_workload_has_its_processes():
    count = {name: len(workloads.processes(name)) for name in workloads.NAMES if name != "pmake"}
    assert count == {"vcs": 2, "vcs-one": 1, "splash": 2, "db": 1, "simos": 1, "delay": 1}
    assert workloads.processes("vcs")[0] == workloads.processes("vcs-one")[0]


def test_workloads_are_counted_before_they_run():
    assert {name: workloads.count(name) for name in ("pmake", "vcs", "delay")} == {"pmake": 4, "vcs": 2, "delay": 1}


def test_record_names_the_files_that_fidelity_reads(tmp_path):
    options = runpy.run_path(str(SIMULATED / "record"))["options"]
    stem = tmp_path / "vcs.1.misses"
    misses = ["-o", f"{stem}.curve", "--of", "misses", "--cache", "1MiB"]
    assert options("misses", stem, is_shared=False) == misses
    assert options("misses", stem, is_shared=True) == [*misses, "--order", f"{stem}.order"]
    larger = tmp_path / "vcs.1.misses-4MiB"
    assert options("misses-4MiB", larger, is_shared=True) == ["-o", f"{larger}.curve", "--of", "misses", "--cache", "4MiB"]


def test_record_refuses_unknown_workloads_and_kinds(tmp_path):
    record = SIMULATED / "record"
    for words in (["--only", "chess"], ["--kinds", "references"]):
        refused = subprocess.run([record, tmp_path, *words], capture_output=True, text=True)
        assert refused.returncode == 2 and words[1] in refused.stderr
