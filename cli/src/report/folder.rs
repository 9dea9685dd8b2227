//! The weekly reports: a folder with one page per week, and an index of them.

use super::files::{UNFINISHED, beside, write};
use super::job::Job;
use super::week::{self, Week};
use anyhow::Context;
use gleaner_reports::{IndexEntry, Report, Summary, index};
use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::umask;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::path::Path;

/// Suffix of the summary's file; the index is built from these files.
const SUMMARY: &str = ".summary.json";
/// Companion files of a page: a label, and the suffix that follows the week's name. Suffixes of folders end
/// with a slash.
const COMPANIONS: [(&str, &str); 7] = [
    ("Markdown", ".md"),
    ("CSV", "-tables/"),
    ("JSON", ".json"),
    ("PDF", ".pdf"),
    ("Pictures", "-figures/"),
    ("", "-sites/"),
    ("", ".html"),
];

/// Summary of a week for the index, stored beside its page.
#[derive(Serialize, Deserialize)]
struct WeekSummary {
    title: String,
    subject: String,
    period: String,
    lead: String,
    /// Name and address of each site's page; absent in summaries of reports without sites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sites: Vec<(String, String)>,
}

/// Writes the week's page and companions, then the index. Existing files are replaced, so that the command
/// can be repeated; concurrent commands wait for each other.
pub(super) fn publish(
    folder: &Path,
    job: &Job<'_>,
    report: &Report,
    html: &str,
    sites: Vec<(String, String)>,
) -> anyhow::Result<()> {
    begin(folder)?;
    let cannot = || format!("cannot write in the folder {}", folder.display());
    let lock = fs::File::create(folder.join(".lock")).with_context(cannot)?;
    flock(&lock, FlockOperation::LockExclusive).with_context(cannot)?;
    sweep(folder).with_context(cannot)?;

    let page = job.page();
    job.write(&page, report, html)?;
    let Summary {
        title,
        subject,
        period,
        lead,
        ..
    } = report.summary();
    let kept = WeekSummary {
        title,
        subject,
        period,
        lead,
        sites,
    };
    // The summary is written last, so that only complete weeks are in the index.
    write(
        &beside(&page, SUMMARY),
        serde_json::to_string_pretty(&kept)? + "\n",
    )?;
    let mut weeks = weeks(folder).with_context(cannot)?;
    if let Some(keep) = job.args.habit.keep {
        for old in weeks.drain(..).skip(keep.get()).collect::<Vec<_>>() {
            remove(folder, &old).with_context(cannot)?;
        }
        weeks = self::weeks(folder).with_context(cannot)?;
    }
    let entries: Vec<IndexEntry> = weeks
        .iter()
        .filter_map(|week| entry(folder, week))
        .collect();
    write(&folder.join("index.html"), index(&entries)?)
}

/// Makes the folder, and hides what this command writes from other users.
pub(super) fn begin(folder: &Path) -> anyhow::Result<()> {
    hide_from_others();
    let cannot = || format!("cannot write in the folder {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)
}

/// Sets the umask so that new folders get mode 0750 and new files 0640, also those that Chromium writes: the
/// reports contain names of hosts and users.
fn hide_from_others() {
    let before = umask(Mode::RWXO | Mode::WGRP);
    umask(before | Mode::RWXO | Mode::WGRP);
}

/// Removes the unfinished files of a run that was killed.
fn sweep(folder: &Path) -> std::io::Result<()> {
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file
            .file_name()
            .as_encoded_bytes()
            .starts_with(UNFINISHED.as_bytes())
        {
            fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

/// Names of the weeks that have a summary, newest first.
fn weeks(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut weeks = Vec::new();
    for file in fs::read_dir(folder)? {
        let name = file?.file_name();
        let week = name.to_str().and_then(|name| name.strip_suffix(SUMMARY));
        // Files with another name were not written by Gleaner, and are ignored.
        if let Some(week) = week.filter(|w| matches!(week::week(w), Ok(Week::Of(_)))) {
            weeks.push(week.to_owned());
        }
    }
    weeks.sort_unstable_by(|a, b| b.cmp(a));
    Ok(weeks)
}

/// Removes all files of a week, its summary first, so that the index never names a missing file.
fn remove(folder: &Path, week: &str) -> std::io::Result<()> {
    fs::remove_file(folder.join(format!("{week}{SUMMARY}")))?;
    for (_, suffix) in COMPANIONS {
        let path = folder.join(format!("{week}{suffix}"));
        let removed = if suffix.ends_with('/') {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Entry of a week in the index. If its summary cannot be read, prints a message and returns `None`: one bad
/// file does not affect the others.
fn entry(folder: &Path, week: &str) -> Option<IndexEntry> {
    let path = folder.join(format!("{week}{SUMMARY}"));
    let read = fs::read(&path).map_err(anyhow::Error::from);
    let kept: WeekSummary = match read.and_then(|text| Ok(serde_json::from_slice(&text)?)) {
        Ok(kept) => kept,
        Err(e) => {
            let _ = writeln!(
                std::io::stderr(),
                "gleaner: {} is left out of the index: {e}; make that week's report again",
                path.display()
            );
            return None;
        }
    };
    let there = |(label, suffix): (&str, &str)| {
        let href = format!("{week}{suffix}");
        let is_there = !label.is_empty() && folder.join(&href).exists();
        is_there.then(|| (label.to_owned(), href))
    };
    Some(IndexEntry {
        page: format!("{week}.html"),
        companions: COMPANIONS.into_iter().filter_map(there).collect(),
        sites: kept.sites,
        title: kept.title,
        subject: kept.subject,
        period: kept.period,
        lead: kept.lead,
    })
}
