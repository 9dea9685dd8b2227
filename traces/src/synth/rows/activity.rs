//! Sources of the owner's activity, as rows. Only changed rows are stored.

use super::SampleMoment;
use crate::synth::dice::Dice;

use gleaner_schemas::rows::ActivityRow;

/// Resolution with which the kernel stores a terminal's access time.
const TERMINAL_STEP_MS: i64 = 8000;

/// A source of activity, such as input devices or terminals.
#[derive(Debug)]
struct Source {
    name: &'static str,
    devices_count: i64,
    /// True if this host has the source.
    is_there: bool,
    last_ms: i64,
    /// Time of the last activity according to the rows stored so far.
    told_ms: Option<i64>,
}

/// All sources of one host.
#[derive(Debug)]
pub(crate) struct Sources([Source; 4]);

impl Sources {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let mut source = |name, devices_count, probability| {
            let is_there = dice.chance(probability);
            Source {
                name,
                devices_count: if is_there { devices_count } else { 0 },
                is_there,
                last_ms: 0,
                told_ms: None,
            }
        };
        Self([
            source("input", 3, 1.0),
            source("terminal", 2, 0.8),
            source("session", 1, 0.7),
            source("logind", 1, 0.3),
        ])
    }

    /// Starts the agent at `time_ms`. Until a source has activity, its idle time counts from then.
    pub(crate) fn begin(&mut self, time_ms: i64) {
        for source in &mut self.0 {
            source.last_ms = time_ms;
        }
    }

    /// Number of sources that this host does not have.
    pub(crate) fn missing_count(&self) -> i64 {
        self.0.iter().filter(|s| !s.is_there).count() as i64
    }

    /// Reads all sources at a sample; `last_ms` is the time of the owner's last activity before it. Returns
    /// the rows to store, and the owner's idle time.
    pub(crate) fn step(
        &mut self,
        dice: &mut Dice,
        step: &SampleMoment,
        last_ms: Option<i64>,
    ) -> (Vec<ActivityRow>, Option<i64>) {
        let mut rows = Vec::new();
        for source in &mut self.0 {
            let sees = dice.share();
            let seen_ms = match source.name {
                "input" | "session" => last_ms,
                "terminal" => last_ms
                    .filter(|_| step.is_present && sees < 0.4)
                    .map(|ms| ms - ms.rem_euclid(TERMINAL_STEP_MS)),
                _ => last_ms.filter(|_| sees < 0.1),
            };
            source.last_ms = seen_ms.map_or(source.last_ms, |ms| ms.max(source.last_ms));
            let is_news = source.is_there && source.told_ms != Some(source.last_ms);
            if !is_news && !step.is_whole {
                continue;
            }
            source.told_ms = Some(source.last_ms);
            rows.push(ActivityRow {
                source: source.name.to_owned(),
                idle_ms: source.is_there.then_some(step.time_ms - source.last_ms),
                state: if source.is_there { "ok" } else { "unsupported" }.to_owned(),
                devices_count: source.devices_count,
            });
        }
        let last_ms = self.0.iter().filter(|s| s.is_there).map(|s| s.last_ms);
        (rows, last_ms.max().map(|last_ms| step.time_ms - last_ms))
    }
}
