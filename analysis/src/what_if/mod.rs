//! Effects of other limits: memory gained, and its cost to the owners.
//!
//! The trace need not contain any lending. An idle host is taken to lend what `policy::quota` allows
//! ([`quotas`]), from `minimum_idle_s` after the setting's idle rule held to the end of the idle period. A
//! *reclaim* is an end by the owner or the load while memory is lent; a gap that ends the period reclaims
//! nothing. A reclaim costs the memory context (`policy::memory_context`), with G the memory lent at the last
//! idle sample. Quotas also shrink while a host stays idle, and in scope `all` while the owner works:
//! `reclaimed_bytes_per_host_day` contains that, which is a cost to guests rather than to owners. The two
//! scopes are therefore not compared with each other.
//!
//! The idle rule is evaluated again for each idle threshold and load limit; all other settings need only
//! differences of sums.

mod frontier;
mod outcome;
mod quotas;
mod setting;

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::owner::memory_context::return_demands_at;
use crate::trace::reads::ReadSet;
use ahash::HashMap;
use gleaner_hosts::derived::{IdlePeriod, Idleness, Return, return_of};
use gleaner_policy::idle::IdleRule;
use gleaner_policy::memory_context::Demand;
use gleaner_policy::quota::Mode;
use gleaner_schemas::findings::{self, Findings, MissingMeasure, Parameters};
use outcome::{Absence, Outcome};
use quotas::{IdleQuotas, categories_by_sample};
use serde::{Deserialize, Serialize};
use setting::Setting;
use std::ops::{Range, RangeInclusive};

/// Outcome of every setting, in the order of [`Setting::all`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WhatIf(Vec<Outcome>);

impl Measure for WhatIf {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<findings::WhatIf>(
        ReadSet::SAMPLES.and_processes(),
    )];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let settings = Setting::all(parameters);
        if host.idleness.is_unknown() {
            return Ok(Self(vec![Outcome::default(); settings.len()]));
        }
        let by_sample = host.trace.processes.by_sample(host.trace.samples.len());
        let (samples, segments) = (&host.trace.samples, &host.trace.segments);
        let categories = categories_by_sample(samples);
        let mut demands = ReturnDemands::default();
        let mut rules: Vec<(IdleRule, Vec<Absence>)> = Vec::new();
        let mut all_quotas: Vec<((Mode, f64), IdleQuotas)> = Vec::new();
        let mut outcomes = Vec::with_capacity(settings.len());
        for setting in &settings {
            let rule = setting.rule();
            if !rules.iter().any(|(r, _)| *r == rule) {
                let window_s = parameters.return_window_s;
                let found = absences(host, &by_sample, &rule, window_s, &mut demands)?;
                rules.push((rule, found));
            }
            let limits = (setting.policy_mode(), setting.headroom_share);
            if !all_quotas.iter().any(|(l, _)| *l == limits) {
                let quotas = IdleQuotas::of(samples, &categories, segments, limits.0, limits.1);
                all_quotas.push((limits, quotas));
            }
            let absences = rules.iter().find(|(r, _)| *r == rule);
            let quotas = all_quotas.iter().find(|(l, _)| *l == limits);
            outcomes.push(match (absences, quotas) {
                (Some((_, absences)), Some((_, quotas))) => {
                    Outcome::of_host(host, setting, quotas, absences)
                }
                _ => Outcome::default(),
            });
        }
        Ok(Self(outcomes))
    }

    fn merge(&mut self, other: &Self) {
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            mine.merge(other);
        }
    }

    fn write(&self, _size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        let settings = Setting::all(parameters);
        let records = settings.iter().zip(&self.0);
        let mut records: Vec<_> = records
            .filter_map(|(s, outcome)| outcome.record(s))
            .collect();
        frontier::mark(&mut records);
        if records.is_empty() {
            findings.missing_measures.push(MissingMeasure {
                measure: "what_if".to_owned(),
                host_id: "all".to_owned(),
                reason: "of no host can it be told both when it was idle and where its memory went"
                    .to_owned(),
            });
        }
        findings.what_if.extend(records);
    }
}

/// The owner's absences under a rule: idle periods, with the memory that the owner needs at their ends.
fn absences(
    host: &HostHistory<'_>,
    by_sample: &[Range<usize>],
    rule: &IdleRule,
    return_window_s: f64,
    demands: &mut ReturnDemands,
) -> Result<Vec<Absence>> {
    let window_ms = (return_window_s * 1000.0) as i64;
    let idleness = Idleness::of(
        &host.trace.samples.observations(),
        &host.trace.segments,
        rule,
    );
    let mut wanted = |period: IdlePeriod| -> Result<Absence> {
        // A period that ended before lending began, or just then, had nothing to reclaim.
        let is_lent = period.to_ms.saturating_sub(period.from_ms) > rule.idle_after_ms;
        let (time_ms, runs) = (&host.trace.samples.time_ms, &host.trace.segments);
        let back = return_of(time_ms, runs, &period, window_ms).filter(|_| is_lent);
        let demand = match &back {
            Some(back) => demands.of(host, by_sample, back)?,
            None => None,
        };
        Ok(Absence { demand, period })
    };
    idleness.periods.into_iter().map(&mut wanted).collect()
}

/// Demands at the returns seen so far, by window and time of the return: most rules see the same returns.
#[derive(Default)]
struct ReturnDemands(HashMap<(RangeInclusive<usize>, i64), Option<Demand>>);

impl ReturnDemands {
    fn of(
        &mut self,
        host: &HostHistory<'_>,
        by_sample: &[Range<usize>],
        back: &Return,
    ) -> Result<Option<Demand>> {
        let key = (back.window.clone(), back.at_ms);
        if let Some(known) = self.0.get(&key) {
            return Ok(*known);
        }
        let demand = return_demands_at(host, by_sample, back)?.map(|found| found.demand);
        self.0.insert(key, demand);
        Ok(demand)
    }
}
