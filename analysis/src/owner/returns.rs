//! Number of returns; [`gleaner_hosts::derived`] derives them.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{Findings, Parameters, Reclaims};
use serde::{Deserialize, Serialize};

/// Number of times at which lent memory would be reclaimed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Count {
    /// Number of hosts whose returns are known.
    hosts: i64,
    returns: i64,
    observed_ms: i64,
}

impl Count {
    /// Finding of one host, or of all pooled hosts (`None`); no finding if no time was observed.
    fn record(&self, host: Option<&str>, size_class: &str) -> Option<Reclaims> {
        let observed_days = self.observed_ms as f64 / 86_400_000.0;
        (self.observed_ms > 0).then(|| Reclaims {
            host_id: host.map(str::to_owned),
            size_class: size_class.to_owned(),
            hosts_count: self.hosts,
            reclaims_count: self.returns,
            observed_days,
            reclaims_per_day: self.returns as f64 / observed_days,
        })
    }
}

impl Measure for Count {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<Reclaims>(ReadSet::SAMPLES).on_returns()];

    fn of_host(host: &HostHistory<'_>, _: &Parameters) -> Result<Self> {
        if !host.can_show_idle() {
            return Ok(Self::default());
        }
        Ok(Self {
            hosts: 1,
            returns: host.returns.len() as i64,
            observed_ms: host.idleness.seen_ms,
        })
    }

    fn write_host(&self, host: &str, size_class: &str, _: &Parameters, findings: &mut Findings) {
        let record = self.record(Some(host), size_class);
        findings.reclaims.extend(record);
    }

    fn merge(&mut self, other: &Self) {
        self.hosts += other.hosts;
        self.returns += other.returns;
        self.observed_ms = self.observed_ms.saturating_add(other.observed_ms);
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        findings.reclaims.extend(self.record(None, size_class));
    }
}
