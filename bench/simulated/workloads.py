"""The workloads of bench/simulated: their processes, and what building them makes. The scale is in workloads.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILT = ROOT / "target/workloads"
SCENE = ROOT / "tests/end_to_end/lending/programs/spheres.pov"
SCALE = tomllib.loads((HERE / "workloads.toml").read_text())
NAMES = ("pmake", "vcs", "vcs-one", "splash", "db", "simos", "delay")


@dataclass(frozen=True)
class Process:
    """One process of a workload. Standard output is not used."""

    command: list[str]
    folder: Path  # working directory


def processes(name: str) -> list[Process]:
    """Processes of a workload that run at the same time. pmake's are compilers, which makes start (makes.py)."""
    scale, run = SCALE.get(name.removesuffix("-one"), {}), lambda *words: Process([str(word) for word in words], BUILT)
    match name:
        case "vcs":
            return [run(BUILT / "circuit", seed, scale["cycles"]) for seed in scale["simulation_seeds"]]
        case "vcs-one":
            return processes("vcs")[:1]
        case "splash":
            size = f"+W{scale['picture_width']}", f"+H{scale['picture_height']}"
            picture = "povray", f"+I{SCENE}", "+Ospheres.bmp", "+FB", *size, "+WT1", "-D", f"Declare=Count={scale['spheres']}"
            return [run(BUILT / "ocean", scale["ocean_rows"], scale["ocean_columns"], scale["ocean_steps"]), run(*picture)]
        case "db":
            return [run("sqlite3", ":memory:", ".read tpcb.sql")]
        case "simos":
            return [run(BUILT / "simos", BUILT / "sort.bin", scale["memory_mib"], scale["records"])]
        case "delay":
            return [Process(["sta", "-exit", str(HERE / "delay.tcl")], BUILT / "delay")]
    raise ValueError(f"no workload of processes: {name}")


def count(name: str) -> int:
    """Number of a workload's recorded processes."""
    return sum(map(len, SCALE["pmake"]["recorded"])) if name == "pmake" else len(processes(name))
