"""Dips and availability periods (Acharya & Setia, Tables 3 and 4) by pandas only, from exported samples.

Written from the definitions, independently of Gleaner's analysis, for comparison with it:

- A sample stands for the interval after it.
- A gap is a time of more than two of a host's median steps; nothing is known within a gap.
- A dip is a sample with less available than a threshold: in bytes, or as a share of the host's memory then.
- A region of s bytes is available from the first sample with that much to the first without, or to the last
  before a gap or the end. Such a period is cut (censored), and so is one that samples begin with.
- Periods under five minutes are dropped, and those of one sample before a cut, which were not seen to last.

    gleaner export DATASET --to parquet -o OUT --table samples
    python availability.py OUT --region 67108864 --dip 536870912
"""

import argparse
import json
from pathlib import Path

import pandas as pd

MINIMUM_S = 300
SHARES = (0.05, 0.10, 0.25)
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def read(folder: Path) -> pd.DataFrame:
    """The exported samples by host and time."""
    columns = ["host_id", "time", "physical_bytes", "available_bytes"]
    days = [pd.read_parquet(path, columns=columns) for path in sorted(folder.glob("samples/*/*.parquet"))]
    samples = pd.concat(days).sort_values(["host_id", "time"], ignore_index=True)
    samples["time_ms"] = samples["time"].astype("datetime64[ms, UTC]").astype("int64")
    return samples


def size_class(physical_bytes: int) -> str:
    """The powers of two between which a host's memory size is."""
    upper = 1
    while upper < physical_bytes:
        upper *= 2
    power = (upper.bit_length() - 2) // 10  # power of the lower bound
    unit = 1024**power
    return f"{upper // 2 // unit}-{upper // unit} {UNITS[power]}"


def with_runs(samples: pd.DataFrame) -> pd.DataFrame:
    """Adds the column `run`, which numbers the gapless runs of a host."""
    steps = samples.groupby("host_id")["time_ms"].diff()

    def median(of_host: pd.Series) -> float:
        known = sorted(of_host.dropna())
        return known[len(known) // 2] if known else float("inf")

    typical = samples["host_id"].map(steps.groupby(samples["host_id"]).agg(median))
    begins = steps.isna() | (steps > 2 * typical)
    return samples.assign(run=begins.cumsum())


def dips(samples: pd.DataFrame, thresholds: list[int]) -> list[dict]:
    """Number of sample intervals of each host below each threshold."""
    found = []
    for host, rows in samples.groupby("host_id"):
        available, physical = rows["available_bytes"], rows["physical_bytes"]
        limits = [(None, threshold, threshold) for threshold in thresholds]
        for share in SHARES:
            limit = (physical * share + 0.5) // 1  # half a byte rounds up
            limits.append((share, int(limit.iloc[-1]), limit))
        for share, threshold, limit in limits:
            found.append(
                {
                    "host_id": host,
                    "threshold_bytes": threshold,
                    "threshold_share": share,
                    "intervals_count": int((available < limit).sum()),
                    "samples_count": len(rows),
                    "min_available_bytes": int(available.min()),
                }
            )
    return found


def periods(samples: pd.DataFrame, region_bytes: int) -> pd.DataFrame:
    """The periods of one region size: host, length in seconds, whether it was cut."""
    enough = samples["available_bytes"] >= region_bytes
    run_before, run_after = samples["run"].shift(), samples["run"].shift(-1)
    stretch = ((enough != enough.shift()) | (samples["run"] != run_before)).cumsum()
    rows = pd.DataFrame(
        {
            "host_id": samples["host_id"],
            "time_ms": samples["time_ms"],
            "begins_run": samples["run"] != run_before,
            "ends_run": samples["run"] != run_after,
            "next_ms": samples["time_ms"].shift(-1),
        }
    )[enough]
    of = rows.groupby(stretch[enough])
    first, last = of.first(), of.last()
    until = last["time_ms"].where(last["ends_run"], last["next_ms"])
    found = pd.DataFrame(
        {
            "host_id": first["host_id"],
            "length_s": (until - first["time_ms"]) / 1000,
            "is_cut": first["begins_run"] | last["ends_run"],
        }
    )
    return found[found["length_s"] >= MINIMUM_S]


def availability_periods(samples: pd.DataFrame, regions: list[int]) -> list[dict]:
    """The periods of each region size, pooled by class and over all hosts."""
    samples = with_runs(samples)
    classes = samples.groupby("host_id")["physical_bytes"].last().map(size_class)
    found = []
    for region in regions:
        of_region = periods(samples, region)
        of_class = of_region["host_id"].map(classes)
        for name in [*sorted(set(classes)), "all"]:
            pooled = of_region if name == "all" else of_region[of_class == name]
            lengths = pooled["length_s"]
            found.append(
                {
                    "size_class": name,
                    "scope": "all",
                    "region_bytes": region,
                    "periods_count": len(pooled),
                    "censored_count": int(pooled["is_cut"].sum()),
                    "mean_s": lengths.mean() if len(pooled) else None,
                    "median_s": lengths.median() if len(pooled) else None,
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("export", type=Path, help="folder that `gleaner export --to parquet` wrote")
    parser.add_argument("--region", type=int, action="append", default=[], help="bytes; repeatable")
    parser.add_argument("--dip", type=int, action="append", default=[], help="bytes; repeatable")
    asked = parser.parse_args()
    samples = read(asked.export)
    found = {
        "dips": dips(samples, asked.dip),
        "availability_periods": availability_periods(samples, asked.region),
    }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
