//! Outcome of one setting: memory lent and returned, on one host or several.

use super::quotas::IdleQuotas;
use super::setting::Setting;
use crate::derived::HostHistory;
use crate::statistics::distribution::Distribution;
use gleaner_hosts::derived::IdlePeriod;
use gleaner_policy::memory_context::{Demand, memory_context_bytes};
use gleaner_schemas::findings::{Scope, WhatIf};
use gleaner_schemas::units::stored;
use serde::{Deserialize, Serialize};

const DAY_MS: f64 = 86_400_000.0;

/// Sums over hosts, in integers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) hosts: i64,
    pub(super) known_ms: i64,
    pub(super) physical_byte_ms: i128,
    pub(super) quota_byte_ms: i128,
    pub(super) reclaims: i64,
    /// Bytes that reclaims returned to owners.
    pub(super) reclaimed_bytes: i128,
    /// Bytes returned because quotas shrank while memory was lent.
    pub(super) shrunk_bytes: i128,
    /// Memory context sizes of the reclaims with known footprints.
    pub(super) contexts: Distribution,
}

/// An idle period with the memory that the owner needs at its end, if known.
pub(super) struct Absence {
    pub(super) period: IdlePeriod,
    pub(super) demand: Option<Demand>,
}

impl Outcome {
    /// Outcome on one host; `absences` are the idle periods under the setting's rule.
    pub(super) fn of_host(
        host: &HostHistory<'_>,
        setting: &Setting,
        quotas: &IdleQuotas,
        absences: &[Absence],
    ) -> Self {
        if quotas.known_ms == 0 {
            return Self::default();
        }
        let mut found = Self {
            hosts: 1,
            known_ms: quotas.known_ms,
            physical_byte_ms: quotas.physical_byte_ms,
            ..Self::default()
        };
        let time_ms = &host.trace.samples.time_ms;
        if setting.scope == Scope::All {
            for run in &host.trace.segments {
                if let Some(times @ [from, .., to]) = time_ms.get(run.clone()) {
                    found.add(quotas, times, run.start, *from, *to);
                }
            }
            return found;
        }
        let wait_ms = setting
            .rule()
            .idle_after_ms
            .saturating_add(setting.minimum_idle_ms());
        let mut contexts = Vec::new();
        for Absence { period, demand } in absences {
            let from_ms = period.from_ms.saturating_add(wait_ms);
            let run = host
                .trace
                .segments
                .partition_point(|run| run.end <= period.samples.start);
            let (Some(run), true) = (host.trace.segments.get(run), from_ms < period.to_ms) else {
                continue;
            };
            found.add(
                quotas,
                &time_ms[run.clone()],
                run.start,
                from_ms,
                period.to_ms,
            );
            let last = period.samples.end.saturating_sub(1);
            let returned = quotas.bytes[last];
            if period.end.is_some() && returned > 0 {
                found.reclaims += 1;
                found.reclaimed_bytes += i128::from(returned);
                contexts.extend(demand.map(|demand| {
                    let guest_bytes = u64::try_from(returned).unwrap_or(0);
                    stored(memory_context_bytes(&Demand {
                        guest_bytes,
                        ..demand
                    }))
                }));
            }
        }
        found.contexts = Distribution::of(contexts.into_iter().map(|bytes| (bytes, 0)));
        found
    }

    /// Adds the lending from one instant of a run to another.
    fn add(&mut self, quotas: &IdleQuotas, run: &[i64], first: usize, from_ms: i64, to_ms: i64) {
        self.quota_byte_ms += quotas.quota_byte_ms(run, first, from_ms, to_ms);
        self.shrunk_bytes += quotas.shrunk_bytes(run, first, from_ms, to_ms);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.hosts += other.hosts;
        self.known_ms = self.known_ms.saturating_add(other.known_ms);
        self.physical_byte_ms += other.physical_byte_ms;
        self.quota_byte_ms += other.quota_byte_ms;
        self.reclaims += other.reclaims;
        self.reclaimed_bytes += other.reclaimed_bytes;
        self.shrunk_bytes += other.shrunk_bytes;
        self.contexts.merge(&other.contexts);
    }

    /// Finding before the frontier is marked; `None` without observations.
    pub(super) fn record(&self, setting: &Setting) -> Option<WhatIf> {
        if self.known_ms <= 0 {
            return None;
        }
        let days = self.known_ms as f64 / DAY_MS;
        let is_any = self.reclaims > 0;
        Some(WhatIf {
            varied: setting.varied.to_owned(),
            idle_after_s: setting.idle_after_s,
            load_limit: setting.load_limit,
            headroom_share: setting.headroom_share,
            minimum_idle_s: setting.minimum_idle_s,
            scope: setting.scope,
            mode: setting.mode,
            hosts_count: self.hosts,
            observed_s: self.known_ms as f64 / 1000.0,
            mean_quota_bytes: self.quota_byte_ms as f64 / self.known_ms as f64,
            quota_share: self.quota_byte_ms as f64 / (self.physical_byte_ms.max(1)) as f64,
            reclaims_per_host_day: self.reclaims as f64 / days,
            mean_reclaimed_bytes: is_any
                .then(|| self.reclaimed_bytes as f64 / self.reclaims as f64),
            reclaimed_bytes_per_host_day: (self.reclaimed_bytes + self.shrunk_bytes) as f64 / days,
            mean_memory_context_bytes: self.contexts.mean(),
            memory_context_bytes_per_host_day: (self.contexts.mean())
                .map(|m| m * self.reclaims as f64 / days),
            p99_memory_context_bytes: self.contexts.quantile(0.99),
            is_on_frontier: false,
        })
    }
}
