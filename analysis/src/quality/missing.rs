//! Measures that a dataset cannot give, and the reasons: reported instead of guessed.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use crate::trace::span::Span;
use gleaner_policy::idle::Verdict;
use gleaner_schemas::findings::{
    ActivitySource, Category, DipProcess, FindingList, Findings, HostMemory, LendingMode,
    LiveFileCache, MemoryContext, MemoryUsage, MissingMeasure, MissingValue, NotionSizes,
    Parameters, TopFile, TopProcess,
};
use gleaner_schemas::units::Seconds;

/// Measures that the dataset cannot give for a host, and the reasons.
pub(crate) struct MissingMeasures;

impl HostMeasure for MissingMeasures {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<MissingMeasure>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        let missing = of_host(host, findings, pass);
        findings.missing_measures.extend(missing);
        Ok(())
    }
}

fn of_host(host: &HostHistory<'_>, found: &Findings, pass: &Pass<'_>) -> Vec<MissingMeasure> {
    let parameters = pass.parameters;
    let idleness = &host.idleness;
    let mut missing = Vec::new();
    let mut say = |measure: &str, reason: String| {
        missing.push(MissingMeasure {
            measure: measure.to_owned(),
            host_id: host.id().to_owned(),
            reason,
        });
    };
    let categories = host.trace.samples.categories.iter().zip(Category::ALL);
    let others = [(&host.trace.samples.harvestable_bytes, "harvestable")];
    let named = categories.map(|(sizes, c)| (sizes, c.column().trim_end_matches("_bytes")));
    let is_wanted = parameters.wants(&[MemoryUsage::KEY, HostMemory::KEY]);
    for (sizes, category) in named.chain(others) {
        if is_wanted && sizes.iter().all(Option::is_none) {
            let why = why_missing(&found.missing_values, &format!("{category}_bytes"));
            say(
                "memory_usage",
                format!("{category} is absent in every sample{why}"),
            );
        }
    }
    let unknown = idleness
        .verdicts
        .iter()
        .filter(|v| **v == Verdict::Unknown)
        .count();
    if idleness.is_unknown() {
        let why = sources(&found.activity_sources);
        say(
            "idle_periods",
            format!(
                "no sample has both the owner's activity and the load{why}; availability periods \
                 in idle time leave this host out"
            ),
        );
    } else if unknown > 0 {
        say(
            "idle_periods",
            format!(
                "activity or load is unknown in {unknown} of {} samples, which end idle periods",
                idleness.verdicts.len()
            ),
        );
    }
    let longest = Seconds::from_ms(host.trace.longest_run_ms());
    if !idleness.is_unknown() && longest.0 < parameters.idle_after_s {
        let needed = Seconds(parameters.idle_after_s);
        say(
            "idle_periods",
            format!(
                "the longest time without a gap is {longest}, and the rule needs {needed}; \
                 availability periods in idle time leave this host out"
            ),
        );
    }
    if parameters.wants(&[LiveFileCache::KEY, MemoryUsage::KEY, NotionSizes::KEY])
        && host.live_files.is_absent()
    {
        let why = if host.trace.files.rows.rows_count() == 0 {
            let why = why_missing(&found.missing_values, "files");
            format!("no file was recorded{why}")
        } else {
            "of no sample with a file can it be told whether the owner was away".to_owned()
        };
        say("live_file_cache", why);
    }
    if pass.wants_returns {
        owner(host, found, parameters, &mut say);
    }
    if longest.0 < parameters.minimum_period_s {
        let needed = Seconds(parameters.minimum_period_s);
        say(
            "availability_periods",
            format!(
                "the longest time without a gap is {longest}, and periods count from {needed} on"
            ),
        );
    }
    if parameters.wants(&[TopProcess::KEY]) && found.top_processes.is_empty() {
        let why = why_missing(&found.missing_values, "processes");
        say(
            "top_processes",
            format!("no process with its memory was recorded{why}"),
        );
    }
    if parameters.wants(&[DipProcess::KEY])
        && !found.worst_dips.is_empty()
        && host.trace.processes.rows.rows_count() == 0
    {
        let why = why_missing(&found.missing_values, "processes");
        say("dip_processes", format!("no process was recorded{why}"));
    }
    if parameters.wants(&[TopFile::KEY]) && found.top_files.is_empty() {
        let why = why_missing(&found.missing_values, "files");
        say(
            "top_files",
            format!("no file with its cached bytes was recorded{why}"),
        );
    }
    missing
}

/// Notes which findings about the owner's returns are missing, both computed and measured ones.
fn owner(
    host: &HostHistory<'_>,
    found: &Findings,
    parameters: &Parameters,
    say: &mut impl FnMut(&str, String),
) {
    if !host.can_show_idle() {
        let why = "it cannot be told when the owner came back; absence lengths, memory context and the \
                   owner's cost leave this host out";
        return say("reclaims", why.to_owned());
    }
    if host.returns.is_empty() {
        let why = "no absence was seen to end; the owner's cost leaves this host out as well";
        return say("memory_context", why.to_owned());
    }
    let contexts = &found.memory_context;
    if parameters.wants(&[MemoryContext::KEY]) && contexts.is_empty() {
        let why = why_missing(&found.missing_values, "processes");
        say(
            "memory_context",
            format!("what processes held at a return was not recorded{why}"),
        );
    }
    if !contexts.is_empty() && contexts.iter().all(|m| m.mode == LendingMode::Paper) {
        let why = "in gentle mode: the kernel does not say what could be taken without harm \
                   (MemAvailable is missing)";
        say("memory_context", why.to_owned());
    }
    if host
        .trace
        .samples
        .counters
        .iter()
        .flatten()
        .all(Option::is_none)
    {
        let why = "the kernel's counters are absent in every sample";
        say("owner_cost", why.to_owned());
    }
}

/// Note on a host without samples in the span.
pub(crate) fn no_samples(host: &str, span: Span) -> MissingMeasure {
    MissingMeasure {
        measure: "hosts".to_owned(),
        host_id: host.to_owned(),
        reason: if span.is_cut() {
            "it has no samples in the span of time".to_owned()
        } else {
            "it has no samples".to_owned()
        },
    }
}

/// Note that no host's idle time is known.
pub(crate) fn no_idle_scope() -> MissingMeasure {
    MissingMeasure {
        measure: "availability_periods".to_owned(),
        host_id: "all".to_owned(),
        reason: "in idle time: of no host can it be told when it was idle".to_owned(),
    }
}

/// Note that `without` of `hosts_count` hosts have not sent their records to a collector.
pub(crate) fn no_arrivals(without: usize, hosts_count: usize) -> MissingMeasure {
    MissingMeasure {
        measure: "period_ends".to_owned(),
        host_id: "all".to_owned(),
        reason: format!(
            "by the network: of {without} of {hosts_count} hosts no arrivals at a collector are recorded"
        ),
    }
}

/// Reason in the form `: denied (Permission denied)`; empty if the host recorded no reason.
fn why_missing(missing_values: &[MissingValue], item: &str) -> String {
    let found = missing_values.iter().find(|a| a.item == item);
    found.map_or_else(String::new, |a| format!(": {} ({})", a.reason, a.detail))
}

fn sources(all: &[ActivitySource]) -> String {
    let states: Vec<String> = all
        .iter()
        .filter(|s| s.state != "ok")
        .map(|s| format!("{} {}", s.source, s.state))
        .collect();
    if states.is_empty() {
        String::new()
    } else {
        format!(" ({})", states.join(", "))
    }
}
