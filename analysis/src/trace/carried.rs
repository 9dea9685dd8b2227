//! Rows of a table of changes that were recorded before the span and are still valid in it.

use super::SampleRows;
use super::frame::Frame;
use super::span::Lead;
use crate::error::Result;
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, MissingValueRow};

/// Rows that are valid in the span, each with a sample of the span. A row from before the span that is still
/// valid at its first sample is assigned to that sample.
pub(super) fn into_span(all: SampleRows, table: &Table, lead: &Lead) -> Result<SampleRows> {
    let SampleRows { rows, sample_of } = all;
    let carried = carried_rows(&rows, &sample_of, table, lead)?;
    let counts = |sample: &usize| lead.place(*sample).is_some();
    let mut told_at: Vec<Option<usize>> = sample_of.iter().map(|s| s.filter(counts)).collect();
    let mut is_carried = vec![false; told_at.len()];
    for (row, sample) in carried {
        (told_at[row], is_carried[row]) = (Some(sample), true);
    }
    let kept: Vec<bool> = told_at.iter().map(Option::is_some).collect();
    let mut rows = rows.filter_rows(&kept)?;
    if table.name == FileRow::TABLE.name {
        // The file was opened only in the step of its own row.
        let carried = is_carried.iter().zip(&kept).filter(|(_, kept)| **kept);
        rows.forget("opens_count", carried.map(|(c, _)| *c).collect())?;
    }
    let told_at = told_at.into_iter().flatten();
    Ok(SampleRows {
        rows,
        sample_of: told_at.map(|sample| lead.place(sample)).collect(),
    })
}

/// Rows from outside the span that are carried into it, each with the span's sample: the last row of each
/// item, unless that sample itself has a row of the item.
fn carried_rows(
    rows: &Frame,
    sample_of: &[Option<usize>],
    table: &Table,
    lead: &Lead,
) -> Result<Vec<(usize, usize)>> {
    let lands: Vec<Option<usize>> = sample_of
        .iter()
        .map(|sample| sample.and_then(|s| lead.lands_at(s)))
        .collect();
    let mut is_landed_on = vec![false; lead.samples.len()];
    lands
        .iter()
        .flatten()
        .for_each(|&at| is_landed_on[at] = true);
    // Only few rows matter: those before the span, and those of its first sample.
    let told_at = |(lands, sample): (&Option<usize>, &Option<usize>)| {
        lands.or(sample.filter(|&s| is_landed_on[s]))
    };
    let told_at: Vec<Option<usize>> = lands.iter().zip(sample_of).map(told_at).collect();
    let near: Vec<bool> = told_at.iter().map(Option::is_some).collect();
    let row_of: Vec<usize> = (0..near.len()).filter(|&row| near[row]).collect();
    let rows = rows.filter_rows(&near)?;
    let is_over = is_over(&rows, table)?;
    let mut found = Vec::new();
    for of_thing in rows.groups(table.key)? {
        for same_sample in of_thing.chunk_by(|&a, &b| told_at[row_of[a]] == told_at[row_of[b]]) {
            if let Some(&last) = same_sample.last()
                && let Some(at) = lands[row_of[last]]
                && !is_over[last]
            {
                found.push((row_of[last], at));
            }
        }
    }
    Ok(found)
}

/// Returns true for each row that ends an item, or that was valid only in its own sample.
fn is_over(rows: &Frame, table: &Table) -> Result<Vec<bool>> {
    let all = 0..rows.rows_count();
    if table.name == MissingValueRow::TABLE.name {
        let (counts, reasons) = (rows.integers("missing_count")?, rows.texts("reason")?);
        let is_over = |row| counts.get(row) == Some(0) || reasons.get(row) == Some("vanished");
        return Ok(all.map(is_over).collect());
    }
    if table.name == FileRow::TABLE.name {
        let [open, mapped] =
            ["open_processes_count", "mapping_processes_count"].map(|column| rows.integers(column));
        let (open, mapped, cached) = (open?, mapped?, rows.integers("cached_bytes")?);
        let is_over = |row| {
            open.get(row) == Some(0) && mapped.get(row) == Some(0) && cached.get(row).is_none()
        };
        return Ok(all.map(is_over).collect());
    }
    Ok(vec![false; rows.rows_count()])
}
