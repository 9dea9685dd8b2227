#!/usr/bin/env python3
"""Tables 3 and 4 of the availability study from exported samples, by DuckDB's SQL or by pandas: `analysis.py` runs it.

tables.py duckdb|pandas EXPORT --region BYTES… --dip BYTES…

Written as users would write them: whole columns, on as many threads as the program uses by default. A run of samples
ends at a gap that the host recorded (interval_ms is absent), at a change of database, or after more than two intervals.
A region's period lasts from the first sample with that much memory to the first without, or to the last of the run;
periods under five minutes are dropped.
"""

import argparse
import json
import pathlib

INTERVAL_MS = 90_000
MINIMUM_MS = 300_000


def with_duckdb(folder: pathlib.Path, regions: list[int], dips: list[int]) -> dict:
    import duckdb

    base = duckdb.connect()
    base.execute(f"""
        CREATE TABLE samples AS
        SELECT host_id, epoch_ms(time) AS t, available_bytes AS available, physical_bytes AS physical,
          sum(CASE WHEN interval_ms IS NULL OR database_id <> before_database OR epoch_ms(time) - before_ms > {2 * INTERVAL_MS}
              THEN 1 ELSE 0 END) OVER (PARTITION BY host_id ORDER BY time ROWS UNBOUNDED PRECEDING) AS run
        FROM (SELECT *, lag(database_id) OVER host AS before_database, lag(epoch_ms(time)) OVER host AS before_ms
              FROM read_parquet('{folder}/samples/*/*.parquet', hive_partitioning = false)
              WINDOW host AS (PARTITION BY host_id ORDER BY time))
    """)
    base.execute("""
        CREATE TABLE classes AS
        SELECT host_id, CAST(pow(2, ceil(log2(arg_max(physical, t)))) AS BIGINT) AS upper FROM samples GROUP BY host_id
    """)
    found = {"dips": [], "availability_periods": []}
    for dip in dips:
        rows = base.execute(f"SELECT host_id, count(*) FILTER (available < {dip}) FROM samples GROUP BY host_id")
        for host, intervals in rows.fetchall():
            found["dips"].append({"host_id": host, "threshold_bytes": dip, "intervals_count": intervals})
    for region in regions:
        rows = base.execute(f"""
            WITH next AS (
              SELECT host_id, run, t, available >= {region} AS enough,
                coalesce(lead(t) OVER run_, t) AS until, lead(t) OVER run_ IS NULL AS ends, lag(t) OVER run_ IS NULL AS begins,
                sum(CASE WHEN available >= {region} THEN 0 ELSE 1 END) OVER (run_ ROWS UNBOUNDED PRECEDING) AS island
              FROM samples WINDOW run_ AS (PARTITION BY host_id, run ORDER BY t)),
            periods AS (
              SELECT host_id, max(until) - min(t) AS length, bool_or(begins) OR bool_or(ends) AS cut
              FROM next WHERE enough GROUP BY host_id, run, island)
            SELECT upper, count(*) FILTER (length >= {MINIMUM_MS}), count(*) FILTER (length >= {MINIMUM_MS} AND cut),
              sum(length) FILTER (length >= {MINIMUM_MS})
            FROM classes LEFT JOIN periods USING (host_id) GROUP BY upper
        """)
        found["availability_periods"] += pooled(region, [tuple(int(x or 0) for x in row) for row in rows.fetchall()])
    return found


def with_pandas(folder: pathlib.Path, regions: list[int], dips: list[int]) -> dict:
    import pandas as pd

    samples = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("samples/*/*.parquet"))])
    samples = samples.sort_values(["host_id", "time"], ignore_index=True)
    samples["t"] = samples["time"].astype("datetime64[ms, UTC]").astype("int64")
    by_host = samples.groupby("host_id", sort=False)
    begins = samples["interval_ms"].isna() | (samples["database_id"] != by_host["database_id"].shift())
    begins |= by_host["t"].diff() > 2 * INTERVAL_MS
    run = begins.cumsum()
    ends = run != run.shift(-1)
    until = samples["t"].shift(-1).where(~ends, samples["t"])
    found = {"dips": [], "availability_periods": []}
    for dip in dips:
        below = (samples["available_bytes"] < dip).groupby(samples["host_id"]).sum()
        found["dips"] += [{"host_id": h, "threshold_bytes": dip, "intervals_count": int(n)} for h, n in below.items()]
    upper = by_host["physical_bytes"].last().map(lambda size: 1 << (int(size) - 1).bit_length())
    for region in regions:
        enough = samples["available_bytes"] >= region
        island = ((enough != enough.shift()) | begins).cumsum()[enough]
        rows = pd.DataFrame({"host": samples["host_id"], "t": samples["t"], "until": until, "cut": begins | ends})[enough]
        of = rows.groupby(island)
        periods = pd.DataFrame(
            {"host": of["host"].first(), "length": of["until"].max() - of["t"].min(), "cut": of["cut"].any()}
        )
        periods = periods[periods["length"] >= MINIMUM_MS]
        of_class = periods["host"].map(upper)
        rows = []
        for size in sorted(set(upper)):
            kept = periods[of_class == size]
            rows.append((size, len(kept), int(kept["cut"].sum()), int(kept["length"].sum())))
        found["availability_periods"] += pooled(region, rows)
    return found


def pooled(region: int, classes: list[tuple]) -> list[dict]:
    """Records of each class (upper bound, periods, cut, their length in ms), and of all."""
    names = {upper: f"{upper // 2 // (1 << 30)}-{upper // (1 << 30)} GiB" for upper, *_ in classes}
    every = ("all", *(sum(row[i] for row in classes) for i in (1, 2, 3)))
    return [
        {
            "size_class": names.get(row[0], "all"),
            "scope": "all",
            "region_bytes": region,
            "periods_count": row[1],
            "censored_count": row[2],
            "mean_s": row[3] / row[1] / 1000 if row[1] else None,
        }
        for row in [*classes, every]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=["duckdb", "pandas"])
    parser.add_argument("export", type=pathlib.Path)
    parser.add_argument("--region", type=int, action="append", default=[])
    parser.add_argument("--dip", type=int, action="append", default=[])
    args = parser.parse_args()
    program = {"duckdb": with_duckdb, "pandas": with_pandas}[args.program]
    print(json.dumps(program(args.export, args.region, args.dip)))


if __name__ == "__main__":
    main()
