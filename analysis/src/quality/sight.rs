//! Items that could not be read, and the sources of the owner's activity with their states.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::reads::ReadSet;
use crate::trace::standing::StandingTime;
use crate::trace::{HostTrace, SampleRows};
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Absence, ActivitySource, FindingList, Findings, Quota};
use gleaner_schemas::rows::{AbsenceRow, ActivityRow};

/// Items that could not be read, by host.
pub(crate) struct AbsenceRecords;

impl HostMeasure for AbsenceRecords {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<Absence>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        if pass.parameters.wants(&[Absence::KEY]) {
            findings.absences.extend(absences(&mut host.trace)?);
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
        // A quota's reason may name a source, too.
        if pass.parameters.wants(&[ActivitySource::KEY, Quota::KEY]) {
            let sources = activity_sources(&mut host.trace)?;
            findings.activity_sources.extend(sources);
        }
        Ok(())
    }
}

/// Counts each item and reason once, in the order of their first appearance. A vanished item counts only
/// for the sample of its row; all others hold until their next row, which has a count of 0 when the item is
/// readable again.
fn absences(trace: &mut HostTrace<'_>) -> Result<Vec<Absence>> {
    let columns = ["item", "reason", "detail", "absent_count"];
    let (reader, samples) = (&mut trace.reader, &trace.samples);
    let SampleRows { rows, sample_of } =
        reader.read_changes(&AbsenceRow::TABLE, &columns, samples)?;
    let standing = StandingTime::new(trace, sample_of);
    let counts = rows.present("absent_count")?;
    rows.groups(&["item", "reason"])?
        .into_iter()
        .map(|group| {
            let reason = rows.text("reason", group[0])?;
            let most = if reason == "vanished" { 1 } else { usize::MAX };
            let spans = standing.spans(&group).into_iter();
            let samples_count: usize = spans
                .filter(|(row, _)| counts[*row] > 0)
                .map(|(_, span)| span.len().min(most))
                .sum();
            Ok(Absence {
                host_id: trace.host().to_owned(),
                item: rows.text("item", group[0])?,
                detail: rows.text("detail", group[0])?,
                samples_count: samples_count as i64,
                reason,
            })
        })
        .collect()
}

/// Items that could not be read at a sample, in words.
pub(crate) fn absent_at(trace: &mut HostTrace<'_>, at: usize) -> Result<Vec<String>> {
    let columns = ["item", "reason", "detail", "absent_count"];
    let (reader, samples) = (&mut trace.reader, &trace.samples);
    let SampleRows { rows, sample_of } =
        reader.read_changes(&AbsenceRow::TABLE, &columns, samples)?;
    let standing = StandingTime::new(trace, sample_of);
    let counts = rows.present("absent_count")?;
    let mut found = Vec::new();
    for group in rows.groups(&["item", "reason"])? {
        for (row, span) in standing.spans(&group) {
            let reason = rows.text("reason", row)?;
            let holds = reason != "vanished" || span.start == at;
            if counts[row] > 0 && span.contains(&at) && holds {
                let (item, detail) = (rows.text("item", row)?, rows.text("detail", row)?);
                found.push(format!("{item}: {reason} ({detail})"));
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
