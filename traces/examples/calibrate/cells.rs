//! The cells of the paper's tables for synthetic hosts, computed from the hosts' simulated lives, without
//! traces. The definitions of the analysis are repeated here without datasets, so that thousands of weeks can
//! be tried. `gleaner fidelity` measures the same cells on traces, with the analysis itself.

use gleaner_policy::idle::{IdleRule, IdleState, Observation, Verdict};
use gleaner_traces::synth::{Cluster, Moment};
use std::ops::{AddAssign, Range};

pub(crate) const MIB: i64 = 1 << 20;
/// Regions (columns) of Table 4, MiB.
pub(crate) const REGIONS_MIB: [i64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];
/// Thresholds (rows) of Table 3, MiB. Its first column counts the hosts without a dip; `INTERVALS` has the
/// minimum numbers of dips of the other columns.
pub(crate) const DIPS_MIB: [i64; 3] = [8, 6, 4];
pub(crate) const INTERVALS: [usize; 5] = [1, 6, 11, 21, 31];
const INTERVAL_MS: i64 = 90_000;
/// Time from boot to the agent's first sample.
const FIRST_MS: i64 = 20_000;
const SHORTEST_MS: i64 = 300_000;

/// Sums over samples, for means and deviations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, bytes: i64) {
        let kib = bytes as f64 / 1024.0;
        self.count += 1.0;
        self.sum += kib;
        self.squares += kib * kib;
    }

    /// Mean, in KiB.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Standard deviation, in KiB.
    pub(crate) fn deviation(&self) -> f64 {
        (self.squares / self.count - self.mean().powi(2))
            .max(0.0)
            .sqrt()
    }
}

/// Number of periods, and their total length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lengths {
    pub(crate) count: f64,
    pub(crate) minutes: f64,
}

impl Lengths {
    fn add(&mut self, ms: i64) {
        self.count += 1.0;
        self.minutes += ms as f64 / 60_000.0;
    }

    pub(crate) fn mean(&self) -> f64 {
        self.minutes / self.count
    }
}

/// Measurements, summed over some hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    pub(crate) hosts: f64,
    /// Memory by category: kernel, file cache, process, available.
    pub(crate) memory: [Sums; 4],
    /// Lengths by scope (all time, idle time) and region.
    pub(crate) periods: [[Lengths; 8]; 2],
    pub(crate) busy: Lengths,
    pub(crate) idle: Lengths,
    /// Number of hosts without a dip, then with at least 1, 6, 11, 21 and 31 dips, by threshold.
    pub(crate) dips: [[f64; 6]; 3],
}

impl AddAssign<&Self> for Cells {
    fn add_assign(&mut self, other: &Self) {
        self.add_weighted(other, 1.0);
    }
}

impl Cells {
    /// Adds the measurements of other hosts, multiplied by `weight`.
    pub(crate) fn add_weighted(&mut self, other: &Self, weight: f64) {
        self.hosts += weight * other.hosts;
        for (mine, of) in self.memory.iter_mut().zip(&other.memory) {
            mine.count += weight * of.count;
            mine.sum += weight * of.sum;
            mine.squares += weight * of.squares;
        }
        let mine = self
            .periods
            .iter_mut()
            .flatten()
            .chain([&mut self.busy, &mut self.idle]);
        for (mine, of) in mine.zip(
            other
                .periods
                .iter()
                .flatten()
                .chain([&other.busy, &other.idle]),
        ) {
            mine.count += weight * of.count;
            mine.minutes += weight * of.minutes;
        }
        for (mine, of) in self
            .dips
            .iter_mut()
            .flatten()
            .zip(other.dips.iter().flatten())
        {
            *mine += weight * of;
        }
    }

    /// Measures the host numbered `index`.
    pub(crate) fn of_host(cluster: &Cluster, index: usize) -> Self {
        let parameters = cluster.parameters();
        let mut life = cluster.life(index);
        let first_ms = parameters.start_ms + FIRST_MS;
        let samples = (cluster.end_ms() - first_ms + INTERVAL_MS - 1) / INTERVAL_MS;
        let time_ms = |sample: usize| first_ms + sample as i64 * INTERVAL_MS;
        let moments: Vec<Moment> = (0..samples as usize)
            .map(|s| life.step(time_ms(s), INTERVAL_MS))
            .collect();

        let idle = idle_periods(&moments, first_ms);
        let live = live_files(&moments, &idle);
        let available: Vec<i64> = moments
            .iter()
            .zip(&live)
            .map(|(m, live)| {
                m.available_bytes().max(0) - (live - m.file_bytes).min(m.available_bytes().max(0))
            })
            .collect();
        let mut cells = Self {
            hosts: 1.0,
            ..Self::default()
        };
        for (sample, moment) in moments.iter().enumerate() {
            let file = moment.available_bytes().max(0) + moment.file_bytes - available[sample];
            let bytes = [
                moment.kernel_bytes,
                file,
                moment.process_bytes,
                available[sample],
            ];
            for (sums, bytes) in cells.memory.iter_mut().zip(bytes) {
                sums.add(bytes);
            }
        }
        for (at, below_mib) in DIPS_MIB.iter().enumerate() {
            let dips = available.iter().filter(|a| **a < below_mib * MIB).count();
            cells.dips[at][0] += f64::from(dips == 0);
            for (column, least) in INTERVALS.iter().enumerate() {
                cells.dips[at][column + 1] += f64::from(dips >= *least);
            }
        }
        let whole = [(0..moments.len(), time_ms(moments.len() - 1))];
        let of_idle: Vec<(Range<usize>, i64)> =
            idle.iter().map(|p| (p.samples.clone(), p.to_ms)).collect();
        for (at, region_mib) in REGIONS_MIB.iter().enumerate() {
            for (scope, windows) in [&whole[..], &of_idle].into_iter().enumerate() {
                let lengths = &mut cells.periods[scope][at];
                periods(windows, &available, region_mib * MIB, time_ms, lengths);
            }
        }
        let mut end_ms = None;
        for period in &idle {
            cells.idle.add(period.to_ms - period.from_ms);
            if let Some(end_ms) = end_ms {
                cells.busy.add(period.from_ms - end_ms);
            }
            end_ms = Some(period.to_ms);
        }
        cells
    }
}

struct Idle {
    samples: Range<usize>,
    from_ms: i64,
    to_ms: i64,
}

/// Idle periods by the rules of the analysis (analysis/src/owner/idle.rs), for a trace without gaps.
fn idle_periods(moments: &[Moment], first_ms: i64) -> Vec<Idle> {
    let rule = IdleRule::default();
    let mut state = IdleState::default();
    let mut periods: Vec<Idle> = Vec::new();
    let mut open: Option<Idle> = None;
    let mut earliest = (i64::MIN, 0);
    for (sample, moment) in moments.iter().enumerate() {
        let now_ms = first_ms + sample as i64 * INTERVAL_MS;
        let before_ms = now_ms - if sample > 0 { INTERVAL_MS } else { 0 };
        let active_ms = moment.active_ms.unwrap_or(first_ms - 1).max(first_ms - 1);
        let seen = Observation {
            time_ms: now_ms,
            owner_idle_ms: Some(now_ms - active_ms),
            load5: Some(moment.load5),
        };
        let verdict = state.step(&rule, seen);
        let ends_ms = match verdict {
            Verdict::Idle { since_ms } => (since_ms > before_ms).then_some(since_ms),
            Verdict::Waiting { at_ms } => Some(at_ms - rule.idle_after_ms),
            Verdict::Loaded | Verdict::Unknown => Some(now_ms),
        };
        if let Some(to_ms) = ends_ms
            && let Some(mut period) = open.take()
        {
            period.to_ms = to_ms.clamp(before_ms, now_ms);
            earliest = (period.to_ms, period.samples.end);
            periods.push(period);
        }
        if let Verdict::Idle { since_ms } = verdict {
            let from_ms = since_ms.max(earliest.0);
            let period = open.get_or_insert_with(|| {
                let first = (from_ms - first_ms + INTERVAL_MS - 1)
                    .div_euclid(INTERVAL_MS)
                    .max(0);
                Idle {
                    samples: (first as usize).max(earliest.1)..sample,
                    from_ms,
                    to_ms: now_ms,
                }
            });
            period.samples.end = sample + 1;
            period.to_ms = now_ms;
        }
    }
    periods.extend(open);
    periods
}

/// File cache in use at each sample, as the analysis counts it. Files come into use in order of popularity:
/// the files accessed during a time are therefore the largest set that is in use at any moment of that time.
fn live_files(moments: &[Moment], idle: &[Idle]) -> Vec<i64> {
    let most = |samples: Range<usize>| {
        moments[samples]
            .iter()
            .map(|m| m.file_bytes)
            .max()
            .unwrap_or(0)
    };
    let mut live = vec![0; moments.len()];
    let first = idle
        .first()
        .map_or(moments.len(), |period| period.samples.start);
    live[..first].fill(most(0..first));
    for (at, period) in idle.iter().enumerate() {
        let next = idle
            .get(at + 1)
            .map_or(moments.len(), |next| next.samples.start);
        let busy = most(period.samples.end..next);
        live[period.samples.end..next].fill(busy);
        live[period.samples.clone()].fill(busy.max(most(period.samples.clone())));
    }
    live
}

/// Adds the lengths of a region's availability periods in `windows`: samples, and the end of the last period
/// (analysis/src/availability/periods/window.rs).
fn periods(
    windows: &[(Range<usize>, i64)],
    available: &[i64],
    region_bytes: i64,
    time_ms: impl Fn(usize) -> i64,
    lengths: &mut Lengths,
) {
    for (samples, end_ms) in windows {
        let mut from = None;
        for sample in samples.clone() {
            if available[sample] >= region_bytes {
                from.get_or_insert(sample);
            } else if let Some(from) = from.take() {
                let ms = time_ms(sample) - time_ms(from);
                if ms >= SHORTEST_MS {
                    lengths.add(ms);
                }
            }
        }
        if let Some(from) = from {
            let ms = end_ms - time_ms(from);
            if ms >= SHORTEST_MS {
                lengths.add(ms);
            }
        }
    }
}
