//! One command's report: its dataset, its time, and the files that it writes.

use super::args::{Companion, Report as Args};
use super::span::{EmptyReport, RequestedTime};
use super::{anonymous_title, chromium, files, title};
use gleaner_dataset::Dataset;
use gleaner_reports::{Options, Report};
use gleaner_schemas::findings::Findings;
use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};

/// A command's report.
pub(super) struct Job<'a> {
    pub(super) args: &'a Args,
    pub(super) dataset: &'a Dataset,
    pub(super) asked: &'a RequestedTime,
    pub(super) zone: &'a TimeZone,
    pub(super) made_at_ms: i64,
    /// Program that makes PDFs; absent if none are requested.
    pub(super) chromium: Option<&'a Path>,
}

impl Job<'_> {
    /// Options of a page with this title.
    pub(super) fn options(&self, title: String) -> Options {
        Options {
            title,
            time_zone: self.args.measures.time_zone.clone(),
            made_at_ms: self.made_at_ms,
            span: self.asked.span.clone(),
            anonymous: self.args.anonymous,
            sites: None,
        }
    }

    /// Path of the page of all hosts.
    pub(super) fn page(&self) -> PathBuf {
        let name = format!("{}.html", self.asked.name);
        match (&self.args.habit.folder, &self.args.output) {
            (Some(folder), _) => folder.join(name),
            (None, Some(output)) => output.clone(),
            (None, None) => PathBuf::from(name),
        }
    }

    /// Bounds of the time before; `None` if it is not compared.
    pub(super) fn before(&self) -> Option<(i64, i64)> {
        let before = self.asked.before(self.dataset);
        before.filter(|_| !self.args.time.no_comparison)
    }

    /// Error that nothing was recorded in the requested time.
    pub(super) fn nothing(&self) -> EmptyReport {
        self.asked.nothing(self.dataset, self.zone)
    }

    /// Writes a page and its companion files. A folder of weeks gets all companions.
    pub(super) fn write(&self, page: &Path, report: &Report, html: &str) -> anyhow::Result<()> {
        files::write(page, html)?;
        let also: &[Companion] = match self.args.habit.folder {
            Some(_) => &Companion::ALL,
            None => &self.args.companions.also,
        };
        files::companions(page, report, also)?;
        match self.chromium {
            Some(chromium) => chromium::print(chromium, page),
            None => Ok(()),
        }
    }
}

/// Heading of a page: the requested title, or the number of hosts.
pub(super) fn heading(findings: &Findings, args: &Args) -> String {
    match (&args.title, args.anonymous) {
        (Some(title), _) => title.clone(),
        (None, true) => anonymous_title(findings),
        (None, false) => title(findings),
    }
}
