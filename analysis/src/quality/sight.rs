//! Items that could not be read, and the sources of the owner's activity with their states.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use crate::trace::standing::StandingTime;
use crate::trace::{HostTrace, SampleRows};
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{ActivitySource, FindingList, Findings, MissingValue, Quota};
use gleaner_schemas::renames::item_name;
use gleaner_schemas::rows::{ActivityRow, MissingValueRow};

/// Items that could not be read, by host.
pub(crate) struct MissingValueRecords;

impl HostMeasure for MissingValueRecords {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<MissingValue>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        if pass.parameters.wants(&[MissingValue::KEY]) {
            findings
                .missing_values
                .extend(missing_values(&mut host.trace)?);
        }
        Ok(())
    }
}

/// Sources of the owner's activity and their states, by host.
pub(crate) struct ActivitySources;

impl HostMeasure for ActivitySources {
    const OUTPUTS: &'static [MeasureOutput] =
        &[MeasureOutput::of::<ActivitySource>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        // The reason of a quota may name a source, too.
        if pass.parameters.wants(&[ActivitySource::KEY, Quota::KEY]) {
            let sources = activity_sources(&mut host.trace)?;
            findings.activity_sources.extend(sources);
        }
        Ok(())
    }
}

/// Counts each item and reason once, in the order of their first appearance. A vanished item counts only for
/// the sample of its row. All others hold until their next row; this row has a count of 0 when the item is
/// readable again.
fn missing_values(trace: &mut HostTrace<'_>) -> Result<Vec<MissingValue>> {
    let columns = ["item", "reason", "detail", "missing_count"];
    let (reader, samples) = (&mut trace.reader, &trace.samples);
    let SampleRows { rows, sample_of } =
        reader.read_changes(&MissingValueRow::TABLE, &columns, samples)?;
    let standing = StandingTime::new(trace, sample_of);
    let counts = rows.present("missing_count")?;
    let mut found: Vec<MissingValue> = Vec::new();
    for group in rows.groups(&["item", "reason"])? {
        let reason = rows.text("reason", group[0])?;
        let most = if reason == "vanished" { 1 } else { usize::MAX };
        let spans = standing.spans(&group).into_iter();
        let samples_count: usize = spans
            .filter(|(row, _)| counts[*row] > 0)
            .map(|(_, span)| span.len().min(most))
            .sum();
        let samples_count = samples_count as i64;
        let item = item_name(&rows.text("item", group[0])?).to_owned();
        // Other versions of the agent may have recorded a part of the trace under another name of the item.
        let known = found
            .iter_mut()
            .find(|m| m.item == item && m.reason == reason);
        match known {
            Some(known) => known.samples_count += samples_count,
            None => found.push(MissingValue {
                host_id: trace.host().to_owned(),
                item,
                detail: rows.text("detail", group[0])?,
                samples_count,
                reason,
            }),
        }
    }
    Ok(found)
}

/// Items that could not be read at a sample, in words.
pub(crate) fn absent_at(trace: &mut HostTrace<'_>, at: usize) -> Result<Vec<String>> {
    let columns = ["item", "reason", "detail", "missing_count"];
    let (reader, samples) = (&mut trace.reader, &trace.samples);
    let SampleRows { rows, sample_of } =
        reader.read_changes(&MissingValueRow::TABLE, &columns, samples)?;
    let standing = StandingTime::new(trace, sample_of);
    let counts = rows.present("missing_count")?;
    let mut found = Vec::new();
    for group in rows.groups(&["item", "reason"])? {
        for (row, span) in standing.spans(&group) {
            let reason = rows.text("reason", row)?;
            let holds = reason != "vanished" || span.start == at;
            if counts[row] > 0 && span.contains(&at) && holds {
                let (item, detail) = (rows.text("item", row)?, rows.text("detail", row)?);
                found.push(format!("{}: {reason} ({detail})", item_name(&item)));
            }
        }
    }
    Ok(found)
}

/// Counts each source and state once, in the order of their first appearance.
fn activity_sources(trace: &mut HostTrace<'_>) -> Result<Vec<ActivitySource>> {
    let (reader, samples) = (&mut trace.reader, &trace.samples);
    let columns = ["source", "state"];
    let SampleRows { rows, sample_of } =
        reader.read_changes(&ActivityRow::TABLE, &columns, samples)?;
    let standing = StandingTime::new(trace, sample_of);
    let mut found: Vec<ActivitySource> = Vec::new();
    for group in rows.groups(&["source"])? {
        for (row, span) in standing.spans(&group) {
            let (source, state) = (rows.text("source", row)?, rows.text("state", row)?);
            let samples_count = span.len() as i64;
            let known = found
                .iter_mut()
                .find(|s| s.source == source && s.state == state);
            match known {
                Some(known) => known.samples_count += samples_count,
                None => found.push(ActivitySource {
                    host_id: trace.host().to_owned(),
                    source,
                    state,
                    samples_count,
                }),
            }
        }
    }
    Ok(found)
}
