#!/usr/bin/env python3
"""Candidates for the forecast model, on a trace as Bitbrains published it: each day forecast only from the days before it.

forecasts.py FOLDER [--choose-until 16]

FOLDER holds one CSV per machine (GWA-T-12 "rnd", July 2013). Needs numpy. Regions are 64 MiB to 16 GiB, and a quarter and
a half of each machine's memory. Instants and outcomes are counted here independently, by the rules of docs/analysis.md,
so that the line `pooled + habit` checks the analysis of the previous release, and the marked line that of this release.

Each candidate has two lines: the days used for choosing (from the fifth on), and the later days, which confirm. Each line
has, for 10 min, 1 h, 6 h and 24 h, the Brier score over all regions as a share of that of `pooled + habit`, and the mean
of the four; and for half a machine's memory the Brier score, Murphy's reliability and the calibration slope.
"""

import argparse
import collections
import csv
import pathlib

import numpy as np

MIB = 1 << 20
AHEAD_S = np.array([600, 3600, 21_600, 86_400])
REGIONS = [64 * MIB, 256 * MIB, 1024 * MIB, 4096 * MIB, 16_384 * MIB, 0.25, 0.5]
AGES, MARGINS, LOWS = [1800, 14_400, 86_400], [1.1, 1.25, 1.5, 2, 4], [0.8, 1, 1.25, 1.5, 2]
CELLS, SLOTS, DAY = 4 * 6 * 6, 12, 86_400
FIRST_SCORED = 4
BOUNDS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99]
LONGEST_STEP_S = 660

# Weights in instants. `own` and `looks`: weight of all hosts in a host's own state, fixed, and per ten minutes of the
# horizon. `factor`: weight of "no factor" in a host's factor on the pooled state; `after`: the same on its own state;
# `slot`: the same by time of the week, on odds. `habit`: mixed with the host's habit. `spread`: odds are spread.
CANDIDATES = {
    "pooled + habit": {"habit": True},
    "own 144": {"own": 144},
    "own 144, then factor": {"own": 144, "after": 24},
    "own 144 drawn to pooled x factor": {"own": 144, "factor": 144},
    "own 144 + habit": {"own": 144, "habit": True},
    "own 144 drawn to pooled x factor + habit": {"own": 144, "factor": 144, "habit": True},
    "own 12 a time ahead": {"looks": 12},
    "own 12 a time ahead + habit": {"looks": 12, "habit": True},
    "pooled + habit, spread": {"habit": True, "spread": True},
    "own 144 + habit, spread": {"own": 144, "habit": True, "spread": True},
    "own 12 a time ahead + habit, spread  <- taken": {"looks": 12, "habit": True, "spread": True},
    "the same x factor": {"looks": 12, "factor": 144, "habit": True, "spread": True},
    "the same x times of the week": {"looks": 12, "slot": 144, "habit": True, "spread": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--choose-until", type=int, default=16, help="first day that confirms instead of choosing")
    args = parser.parse_args()
    files = sorted(args.folder.rglob("*.csv"))
    if not files:
        raise SystemExit(f"{args.folder}: no CSV file")
    fates = [[counted(files, region, ahead) for ahead in range(len(AHEAD_S))] for region in machines(files)]
    hosts = len(files)
    base = None
    for name, options in CANDIDATES.items():
        sums, calibrations = np.zeros((2, len(AHEAD_S))), []
        for ahead in range(len(AHEAD_S)):
            for region in fates:
                given = region[ahead]
                p = rolled(given, hosts, AHEAD_S[ahead] / 600, options)
                is_later = given["day"] >= args.choose_until
                is_scored = ~np.isnan(p) & (given["day"] >= FIRST_SCORED)
                spans = [is_scored & ~is_later, is_scored & is_later]
                sums[:, ahead] += [squares(given, p)[span].sum() for span in spans]
            calibrations.append([calibration(given, p, span) for span in spans])  # of the last region, half a machine's memory
        base = sums if base is None else base
        for span, days in enumerate(["choose", "confirm"]):
            ratios = sums[span] / base[span]
            print(
                f"{name if span == 0 else '':46}{days:8}",
                *(f"{ratio:.3f}" for ratio in [*ratios, ratios.mean()]),
                *(f"| {score:.4f} {reliability:.5f} {slope:.2f}" for score, reliability, slope in
                  (of_ahead[span] for of_ahead in calibrations)),
                flush=True,
            )


def read(file: pathlib.Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Time (s), memory and available memory (bytes) of one machine; of rows with equal time, the least available."""
    rows: dict[int, tuple[float, float]] = {}
    with file.open() as lines:
        for row in csv.reader(lines, delimiter=";"):
            if row[0].startswith("Timestamp") or float(row[5]) <= 0:
                continue
            memory, used = float(row[5]) * 1024, float(row[6]) * 1024
            available, time = max(0.0, memory - used), int(float(row[0]))
            if time not in rows or available < rows[time][1]:
                rows[time] = (memory, available)
    time = np.array(sorted(rows))
    memory, available = np.array([rows[t] for t in time.tolist()]).T
    return time, memory, available


def machines(files: list[pathlib.Path]) -> list[dict[str, np.ndarray]]:
    """For each region: all instants at which it was available, on all machines."""
    found: list[list[dict[str, np.ndarray]]] = [[] for _ in REGIONS]
    for host, file in enumerate(files):
        time, memory, available = read(file)
        starts = np.concatenate([[True], np.diff(time) > LONGEST_STEP_S])
        run = np.cumsum(starts) - 1
        last = time[np.concatenate([np.flatnonzero(starts)[1:] - 1, [len(time) - 1]])][run]
        is_instant = np.concatenate([[True], time[1:] // 600 != time[:-1] // 600])
        low = low_water(time, available)
        for region, kept in zip(REGIONS, found):
            size = np.floor(memory * region) if region < 1 else np.full(len(time), float(region))
            kept.append(instants(host, time, run, last, available, low, size, is_instant))
    return [{key: np.concatenate([d[key] for d in kept]) for key in kept[0]} for kept in found]


def low_water(time: np.ndarray, available: np.ndarray) -> np.ndarray:
    low, least = np.empty(len(time)), collections.deque()
    for i in range(len(time)):
        while least and time[i] - time[least[0]] > DAY:
            least.popleft()
        while least and available[least[-1]] >= available[i]:
            least.pop()
        least.append(i)
        low[i] = available[least[0]]
    return low


def instants(host, time, run, last, available, low, size, is_instant) -> dict[str, np.ndarray]:
    is_there = available >= size
    lost_at, since = np.full(len(time), np.inf), np.zeros(len(time))
    for i in reversed(range(len(time))):
        if not is_there[i]:
            lost_at[i] = time[i]
        elif i + 1 < len(time) and run[i + 1] == run[i]:
            lost_at[i] = lost_at[i + 1]
    for i in range(len(time)):
        goes_on = i > 0 and run[i] == run[i - 1] and is_there[i - 1]
        since[i] = since[i - 1] if goes_on else time[i]
    at = np.flatnonzero(is_there & is_instant)
    bins = [
        np.searchsorted(bounds, values, side="right")
        for bounds, values in [
            (AGES, time[at] - since[at]), (MARGINS, available[at] / size[at]), (LOWS, low[at] / size[at]),
        ]
    ]
    then = time[at][:, None] + AHEAD_S
    beyond = np.minimum(np.searchsorted(time, then, side="right"), len(time) - 1)
    weekend = np.where((time[at] // DAY + 3) % 7 >= 5, 6, 0)
    return {
        "host": np.full(len(at), host),
        "day": time[at] // DAY,
        "known_on": time[beyond] // DAY,
        "slot": weekend + time[at] % DAY // 14_400,
        "cell": (bins[0] * 6 + bins[1]) * 6 + bins[2],
        "is_known": then < last[at][:, None],
        "is_lost": lost_at[at][:, None] <= then,
    }


def counted(files, region: dict[str, np.ndarray], ahead: int) -> dict[str, np.ndarray]:
    """Groups of equal instants, and how many of each were lost."""
    keep = region["is_known"][:, ahead]
    first = region["day"].min()
    parts = [region["day"] - first, region["known_on"][:, ahead] - first, region["host"], region["slot"], region["cell"]]
    key, widths = np.zeros(keep.sum(), dtype=np.int64), [64, 64, len(files), SLOTS, CELLS]
    for part, width in zip(parts, widths):
        key = key * width + part[keep]
    key, at = np.unique(key, return_inverse=True)
    found = {"n": np.bincount(at).astype(float), "lost": np.bincount(at, weights=region["is_lost"][keep, ahead])}
    for name, width in zip(["cell", "slot", "host", "known_on", "day"], reversed(widths)):
        found[name], key = key % width, key // width
    return found


def shrunk(lost, n, coarser, weight):
    return (lost + weight * coarser) / (n + weight)


def log_odds(p):
    p = np.clip(p, 1e-7, 1 - 1e-7)
    return np.log(p / (1 - p))


def logistic(x):
    return 1 / (1 + np.exp(-np.clip(x, -30, 30)))


def pooled(n: np.ndarray, lost: np.ndarray, any_state: float) -> np.ndarray:
    """Share of each state over all hosts; each bin is drawn to the coarser one with the weight of ten instants."""
    share, width = np.array([any_state]), 1
    for bins in (4, 6, 6):
        width *= bins
        share = shrunk(lost.reshape(width, -1).sum(1), n.reshape(width, -1).sum(1), np.repeat(share, bins), 10)
    return share


def states(n, lost, any_state, within, options):
    """Share of each state on each host."""
    n_cells, lost_cells = n.sum(1), lost.sum(1)
    of_all = pooled(n_cells.sum(0), lost_cells.sum(0), any_state)
    prior = np.repeat(of_all[None], len(n), 0)

    def factor(expected, weight):
        return ((lost_cells.sum(1) + weight * any_state) / (expected.sum(1) + weight * any_state + 1e-12))[:, None]

    if "factor" in options:
        prior = np.minimum(prior * factor(n_cells * prior, options["factor"]), 1)
    weight = options.get("own", 0) + options.get("looks", 0) * within
    own = shrunk(lost_cells, n_cells, prior, weight) if weight else prior
    if "after" in options:
        own = np.minimum(own * factor(n_cells * own, options["after"] * within), 1)
    return own


def rolled(given: dict[str, np.ndarray], hosts: int, within: float, options: dict) -> np.ndarray:
    """Probability of loss for each group of instants, from what was known before its day; nan if nothing was."""
    n, lost = np.zeros((hosts, SLOTS, CELLS)), np.zeros((hosts, SLOTS, CELLS))
    found = np.full(len(given["n"]), np.nan)
    mixed, habit, state, x = (found.copy() for _ in range(4))
    habit_towards = habit_squares = spread_towards = spread_squares = 0.0
    for day in np.unique(np.concatenate([given["day"], given["known_on"]])):
        at = np.flatnonzero(given["day"] == day)
        if len(at) and n.sum() > 0:
            any_state = lost.sum() / n.sum()
            own = states(n, lost, any_state, within, options)
            state[at] = own[given["host"][at], given["cell"][at]]
            if "slot" in options:
                weight = options["slot"] + 6 * within
                expected = (n * own[:, None, :]).sum(2)
                ratio = (lost.sum(2) + weight * any_state) / (expected + weight * any_state + 1e-12)
                by_slot = np.log(ratio[given["host"][at], given["slot"][at]] + 1e-9)
                state[at] = logistic(log_odds(state[at]) + by_slot)
            anytime = shrunk(lost.sum((1, 2)), n.sum((1, 2)), any_state, 144)[:, None]
            by_slot = np.where(lost.sum((1, 2))[:, None] > 0, shrunk(lost.sum(2), n.sum(2), anytime, 24), anytime)
            habit[at] = by_slot[given["host"][at], given["slot"][at]]
            weight = np.clip((habit_towards + 50 * 0.1) / (habit_squares + 50), 0, 1) if options.get("habit") else 0
            mixed[at] = weight * habit[at] + (1 - weight) * state[at]
            found[at] = mixed[at]
            if options.get("spread") and 0 < any_state < 1:
                x[at] = log_odds(mixed[at]) - log_odds(any_state)
                by = np.clip(1 + spread_towards / (spread_squares + 100 * within), 0.5, 2)
                found[at] = logistic(log_odds(any_state) + by * x[at])
        at = np.flatnonzero(given["known_on"] == day)
        where = given["host"][at], given["slot"][at], given["cell"][at]
        np.add.at(n, where, given["n"][at])
        np.add.at(lost, where, given["lost"][at])
        at = at[~np.isnan(found[at])]
        differs, counts = habit[at] - state[at], given["n"][at]
        habit_towards += (differs * (given["lost"][at] - counts * state[at])).sum()
        habit_squares += (differs**2 * counts).sum()
        moved, p = np.nan_to_num(x[at]), mixed[at]
        spread_towards += (moved * (given["lost"][at] - counts * p)).sum()
        spread_squares += (moved**2 * counts * p * (1 - p)).sum()
    return found


def squares(given: dict[str, np.ndarray], p: np.ndarray) -> np.ndarray:
    return given["lost"] * (1 - p) ** 2 + (given["n"] - given["lost"]) * p**2


def calibration(given: dict[str, np.ndarray], p: np.ndarray, keep: np.ndarray) -> tuple[float, float, float]:
    """Brier score, reliability and calibration slope."""
    score = squares(given, p)[keep].sum() / given["n"][keep].sum()
    n, lost, p = given["n"][keep], given["lost"][keep], p[keep]
    at = np.searchsorted(BOUNDS, 1 - p, side="right")
    of_bin, forecast, observed = (np.bincount(at, weights=w, minlength=12) for w in (n, n * p, lost))
    filled = of_bin > 0
    off = (forecast[filled] - observed[filled]) / of_bin[filled]
    x, (intercept, slope) = log_odds(p), (0.0, 1.0)
    for _ in range(100):
        q = logistic(intercept + slope * x)
        w = n * q * (1 - q)
        hessian = np.array([[w.sum(), (w * x).sum()], [(w * x).sum(), (w * x * x).sum()]])
        step = np.linalg.solve(hessian, [(lost - n * q).sum(), (x * (lost - n * q)).sum()])
        step *= min(1, 1 / np.abs(step).max())
        intercept, slope = intercept + step[0], slope + step[1]
        if np.abs(step).max() < 1e-9:
            break
    return score, (of_bin[filled] * off**2).sum() / n.sum(), slope


if __name__ == "__main__":
    main()
