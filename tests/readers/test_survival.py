"""Kaplan-Meier: the periods recomputed with pandas, the curve fitted by lifelines."""

import json
import subprocess

import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time

# Gaps that end a lease; synthetic hosts have no others.
ENDS = {"sleep", "boot", "stopped", "late"}
SHORTEST_MS = 300_000
KEY = ["host_id", "sequence"]


def read(root, table) -> pd.DataFrame:
    return pyarrow.dataset.dataset(root / table, format="ipc").to_table().to_pandas()


@pytest.fixture(scope="module")
def root(programs, tmp_path_factory):
    root = tmp_path_factory.mktemp("survival") / "dataset"
    size = ["--hosts", "14", "--days", "5", "--seed", "3"]
    subprocess.run([programs / "gleaner", "synth", "-o", root, *size], check=True)
    return root


@pytest.fixture(scope="module")
def samples(root) -> pd.DataFrame:
    """Every sample with its run, and whether a gap precedes and follows the run."""
    samples = read(root, "samples").sort_values(KEY, ignore_index=True)
    samples["ms"] = samples["time"].astype("int64")
    gaps = read(root, "gaps")[["host_id", "to_time_ms", "cause"]]
    samples = samples.merge(gaps, left_on=["host_id", "ms"], right_on=["host_id", "to_time_ms"], how="left")
    assert samples["cause"].notna().sum() == len(gaps)
    assert set(gaps["cause"]) <= ENDS
    starts = samples["cause"].notna() | (samples["host_id"] != samples["host_id"].shift())
    samples["run"] = starts.cumsum()
    of_run = samples.groupby("run")
    samples["started"] = of_run["cause"].transform("first").notna()
    next_host = samples["host_id"].shift(-1)
    samples["is_last"] = samples["run"] != samples["run"].shift(-1)
    followed = samples["is_last"] & (next_host == samples["host_id"])
    samples["ended"] = followed.groupby(samples["run"]).transform("max")
    return samples


def periods(samples: pd.DataFrame, region_bytes: int) -> pd.DataFrame:
    """Length of each period of a region, and whether both ends were seen."""
    enough = samples["available_bytes"] >= region_bytes
    changes = (enough != enough.shift()) | (samples["run"] != samples["run"].shift())
    below_ms = samples["ms"].shift(-1).where(~samples["is_last"], samples["ms"])
    spans = samples.assign(span=changes.cumsum(), to_ms=below_ms)[enough].groupby("span")
    first_of_run = samples.groupby("run")["ms"].transform("first")
    found = pd.DataFrame({
        "ms": spans["to_ms"].last() - spans["ms"].first(),
        "starts_run": spans["ms"].first() == first_of_run[enough].groupby(changes.cumsum()[enough]).first(),
        "started": spans["started"].first(),
        "ends_run": spans["is_last"].last(),
        "ended": spans["ended"].last(),
    })
    start_seen = ~found["starts_run"] | found["started"]
    end_seen = ~found["ends_run"] | found["ended"]
    found["is_event"] = start_seen & end_seen
    found["host_id"] = spans["host_id"].first()
    found["from_ms"] = spans["ms"].first()
    return found


def analyzed(programs, root, region_bytes: int):
    options = ["--region", f"{region_bytes}", "--curve-points", "0", "--json"]
    run = subprocess.run([programs / "gleaner", "analyze", root, *options], check=True, capture_output=True)
    findings = json.loads(run.stdout)

    def of_all(key) -> pd.DataFrame:
        records = pd.DataFrame(findings[key])
        if "notion" in records:
            records = records[records["notion"] == "available"]
        return records[(records["size_class"] == "all") & (records["scope"] == "all")]

    return of_all


# Quantiles of the hosts' available memory: regions that are rarely lost, and regions that come and go.
@pytest.mark.parametrize("quantile", [0.05, 0.3, 0.5, 0.7])
def test_curves_and_limits_equal_lifelines(programs, root, samples, quantile):
    region = int(samples["available_bytes"].quantile(quantile))
    ours = analyzed(programs, root, region)
    found = periods(samples, region)
    found = found[found["ms"] >= SHORTEST_MS]
    seconds = found["ms"] / 1000
    fit = KaplanMeierFitter().fit(seconds, found["is_event"])
    # lifelines begins with a row at 0, without any event.
    table, limits = fit.event_table.iloc[1:], fit.confidence_interval_.iloc[1:]
    curve = ours("survival_curves")
    assert len(curve) == len(table) > 10
    assert curve["ended_count"].sum() > 5
    assert curve["age_s"].to_list() == table.index.to_list()
    for ours_name, theirs in {"at_risk_count": "at_risk", "ended_count": "observed", "censored_count": "censored"}.items():
        assert curve[ours_name].to_list() == table[theirs].to_list()
    for column, theirs in {
        "survival": fit.survival_function_.iloc[1:, 0],
        "low": limits.iloc[:, 0],
        "high": limits.iloc[:, 1],
    }.items():
        apart = abs(curve[column].to_numpy() - theirs.to_numpy()).max()
        assert apart < 1e-9, (column, apart)

    (record,) = ours("availability_periods").to_dict("records")
    mean = restricted_mean_survival_time(fit, t=seconds.max())
    assert record["restricted_mean_s"] == pytest.approx(mean, rel=1e-9)
    # If more than half of the periods outlast the observation, lifelines reports infinity and we report
    # nothing.
    median = record["median_survival_s"]
    assert fit.median_survival_time_ == (float("inf") if pd.isna(median) else median)
    assert record["mean_s"] == pytest.approx(seconds.mean(), rel=1e-9)
    assert record["periods_count"] == len(found)

    # Ended periods, by cause, and survivors sum to 1.
    ends = ours("period_ends").groupby("age_s")["cumulative_incidence"].sum()
    assert len(ends) > 5
    survivors = fit.survival_function_at_times(ends.index)
    assert abs(ends.to_numpy() + survivors.to_numpy() - 1).max() < 1e-9


def test_odds_equal_asking_every_five_seconds(programs, root, samples):
    region = int(samples["available_bytes"].quantile(0.3))
    odds = analyzed(programs, root, region)("availability_odds")
    assert len(odds) > 5
    # No gap of these hosts hides the fate of a lease: all can be followed to the host's last sample.
    last_ms = samples.groupby("host_id")["ms"].last()
    found = periods(samples, region)
    causes = [name for name in odds.columns if name.startswith("lost_to_")]
    for record in odds.to_dict("records"):
        ahead_ms = record["ahead_s"] * 1000
        counted = survived = 0
        for period in found.itertuples():
            then_ms = np.arange(period.from_ms + 2_500, period.from_ms + period.ms, 5_000) + ahead_ms
            followed = then_ms < last_ms[period.host_id]
            counted += followed.sum()
            survived += (followed & (then_ms < period.from_ms + period.ms)).sum()
        assert record["observed_s"] == pytest.approx(counted * 5, rel=0.001)
        assert record["available_probability"] == pytest.approx(survived / counted, abs=0.001)
        assert record["available_probability"] + sum(record[c] for c in causes) == pytest.approx(1)
        assert record["low"] <= record["available_probability"] <= record["high"]
