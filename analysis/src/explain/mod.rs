//! Origin of one host's figures at one instant: every category as the sum of the read values, the idle rule's
//! verdict, and the quota. It serves people who check the figures, and owners who ask for the reason.

mod categories;
mod consumers;
mod idle;
mod quota;

use crate::derived::HostHistory;
use crate::error::{AnalysisError, Result};
use crate::trace::HostTrace;
use crate::trace::calendar::Calendar;
use crate::trace::frame::Frame;
use crate::trace::reads::ReadSet;
use crate::trace::span::Span;
use crate::{parameters, quality::sight, sources};
use gleaner_dataset::Dataset;
use gleaner_hosts::recorded::Gap;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Explanation, Parameters, Term};
use gleaner_schemas::rows::SampleRow;

/// Explains what `analyze` derives for `host` (its id, or its name if only one host has it) from the last
/// sample at or before `at_ms`; `None`: from the trace's last sample.
///
/// # Errors
/// [`AnalysisError::UnknownHost`]; [`AnalysisError::NoSampleThen`] outside the trace and in its gaps;
/// otherwise as `analyze`.
pub fn explain(
    dataset: &Dataset,
    host: &str,
    at_ms: Option<i64>,
    asked: &Parameters,
) -> Result<Explanation> {
    parameters::check(asked)?;
    let host = host_id(dataset, host)?;
    let calendar = Calendar::new(&asked.time_zone)?;
    let Some(mut found) = HostHistory::read(dataset, &host, asked, ReadSet::ALL, &calendar)? else {
        return Err(AnalysisError::NoSamples { hosts_count: 1 });
    };
    let trace = &found.trace;
    let at = match at_ms {
        Some(at_ms) => sample_at(trace, at_ms)?,
        None => trace.samples.len() - 1,
    };
    let columns: Vec<&str> = SampleRow::TABLE.columns.iter().map(|c| c.name).collect();
    let rows = found.trace.reader.read(&SampleRow::TABLE, &columns)?;
    let missing_values = sight::absent_at(&mut found.trace, at)?;
    let trace = &found.trace;
    let sample = Sample { rows: &rows, at };
    let (processes, process_memory) = consumers::processes(trace, at)?;
    let (files, file_memory) = consumers::files(trace, at)?;
    let mut categories = categories::of(
        &sample,
        trace.inventory.headroom_share,
        process_memory,
        file_memory,
    )?;
    let source = trace.inventory.source.as_deref();
    let source =
        source.and_then(|name| sources::named_of(&sources::described_in(&[dataset]), name, 1));
    if let Some(source) = &source {
        categories = categories::as_imported(categories, source);
    }
    Ok(Explanation {
        source,
        host_name: (trace.inventory.host_name.clone()).unwrap_or_else(|| host.clone()),
        requested_time_ms: at_ms.unwrap_or(trace.samples.time_ms[at]),
        time_ms: trace.samples.time_ms[at],
        database_id: rows.text("database_id", at)?,
        sequence: trace.samples.sequence[at],
        categories,
        idle: idle::of(&found, at),
        quota: quota::of(&found, at, asked.headroom_share),
        processes,
        files,
        missing_values,
        host_id: host,
    })
}

/// Id of the host with the requested id, otherwise of the only host with that name.
fn host_id(dataset: &Dataset, asked: &str) -> Result<String> {
    let hosts = dataset.hosts().map_err(AnalysisError::Hosts)?;
    if hosts.iter().any(|id| id == asked) {
        return Ok(asked.to_owned());
    }
    let mut named = Vec::new();
    let ahead = dataset.read_ahead(&hosts);
    for id in hosts {
        let mut reader = crate::trace::reader::HostReader::new(&ahead, &id, Span::default());
        let inventory = crate::trace::inventory::Inventory::read(&mut reader)?;
        if inventory.host_name.as_deref() == Some(asked) {
            named.push(id);
        }
    }
    match <[String; 1]>::try_from(named) {
        Ok([only]) => Ok(only),
        Err(named) => Err(AnalysisError::UnknownHost {
            host: asked.to_owned(),
            named,
        }),
    }
}

/// The sample valid at a time: the last one at or before it, if no gap lies between.
fn sample_at(trace: &HostTrace<'_>, at_ms: i64) -> Result<usize> {
    let time = &trace.samples.time_ms;
    let outside = |why: String| AnalysisError::NoSampleThen {
        host: trace.host().to_owned(),
        why,
        from_ms: time.iter().copied().min().unwrap_or(0),
        to_ms: time.iter().copied().max().unwrap_or(0),
    };
    // After a clock was set back, some times occur twice: the run recorded later counts.
    let runs = trace.segments.iter().rev();
    for run in runs {
        let Some(&[first, .., last] | &[first @ last]) = time.get(run.clone()) else {
            continue;
        };
        // The last sample of a run stands for the interval that follows it.
        let stands = trace.intervals.last().unwrap_or(0);
        if (first..=last.saturating_add(stands)).contains(&at_ms) {
            let after = time[run.clone()].partition_point(|t| *t <= at_ms);
            return Ok(run.start + after.max(1) - 1);
        }
    }
    let gap = |g: &&Gap| (g.from_ms..g.to_ms).contains(&at_ms);
    Err(outside(match trace.gaps.iter().find(gap) {
        Some(gap) => format!("it lies in a gap ({})", gap.cause),
        None => "its trace does not reach there".to_owned(),
    }))
}

/// A row of `samples`.
struct Sample<'a> {
    rows: &'a Frame,
    at: usize,
}

impl Sample<'_> {
    fn bytes(&self, column: &str) -> Result<Option<i64>> {
        Ok(self.rows.integers(column)?.get(self.at))
    }
}

fn term(name: &str, bytes: Option<i64>) -> Term {
    Term {
        name: name.to_owned(),
        bytes,
    }
}

/// A term that is subtracted.
fn less(name: &str, bytes: Option<i64>) -> Term {
    term(name, bytes.map(i64::saturating_neg))
}
