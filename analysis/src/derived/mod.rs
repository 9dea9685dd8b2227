//! A host's trace as recorded, and the figures derived from that trace alone. Every measure reads a
//! [`HostHistory`], which is made once per pass.

pub(crate) mod live_files;

use crate::error::Result;
use crate::trace::HostTrace;
use crate::trace::calendar::Calendar;
use crate::trace::reads::ReadSet;
use gleaner_dataset::Dataset;
use gleaner_hosts::derived::{BusyPeriod, Idleness, Return, busy_periods, returns};
use gleaner_policy::idle::IdleRule;
use gleaner_schemas::findings::Parameters;
use live_files::LiveFiles;

/// A host of a dataset, with at least one sample.
pub(crate) struct HostHistory<'a> {
    /// The trace as recorded.
    pub(crate) trace: HostTrace<'a>,
    pub(crate) rule: IdleRule,
    pub(crate) idleness: Idleness,
    pub(crate) busy_periods: Vec<BusyPeriod>,
    pub(crate) returns: Vec<Return>,
    /// Hour of the week of each sample in the fleet's time zone: 0 is Monday's first, 167 Sunday's last.
    pub(crate) hours_of_week: Vec<u8>,
    /// Page cache of files that are used again soon.
    pub(crate) live_files: LiveFiles,
}

impl<'a> HostHistory<'a> {
    /// Reads the host; `None` if it has no samples in the requested time.
    pub(crate) fn read(
        dataset: &'a Dataset,
        id: &'a str,
        parameters: &Parameters,
        reads: ReadSet,
        calendar: &Calendar,
    ) -> Result<Option<Self>> {
        let trace = HostTrace::read(dataset, id, parameters, reads)?;
        trace
            .map(|trace| Self::of(trace, parameters, calendar))
            .transpose()
    }

    fn of(trace: HostTrace<'a>, parameters: &Parameters, calendar: &Calendar) -> Result<Self> {
        let (samples, segments) = (&trace.samples, &trace.segments);
        let rule = IdleRule {
            idle_after_ms: (parameters.idle_after_s * 1000.0) as i64,
            load_limit: parameters.load_limit,
        };
        let idleness = Idleness::of(&samples.observations(), segments, &rule);
        let window_ms = (parameters.return_window_s * 1000.0) as i64;
        let busy_periods = busy_periods(&samples.time_ms, segments, &idleness, &rule);
        Ok(Self {
            returns: returns(&samples.time_ms, segments, &idleness, window_ms),
            hours_of_week: calendar.hours_of_week(&samples.time_ms),
            live_files: LiveFiles::of(&trace, &idleness, &busy_periods)?,
            rule,
            idleness,
            busy_periods,
            trace,
        })
    }

    /// Id of the host.
    pub(crate) fn id(&self) -> &'a str {
        self.trace.host()
    }

    /// Returns true if the trace is long enough, and complete enough, to show that the host was idle.
    pub(crate) fn can_show_idle(&self) -> bool {
        !self.idleness.is_unknown() && self.trace.longest_run_ms() >= self.rule.idle_after_ms
    }
}
