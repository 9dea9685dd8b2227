//! `gleaner report`: a page, its companion files, a folder of weeks, a mail.
//!
//! ```text
//! args ─► span (which time) ─► analyses (findings of it, and of the time before) ─► gleaner_reports::Report
//!           ─► files (page and companions) ─► chromium (PDF and pictures) ─► folder (summary, index) ─► mail
//! ```
//!
//! With `--sites`, `sites` makes a report of each site's hosts, and then the report of all hosts.

mod analyses;
pub(crate) mod args;
mod chromium;
mod files;
mod folder;
mod job;
mod mail;
mod own;
mod sites;
mod span;
mod week;

use anyhow::Context;
use args::Report as Args;
pub(crate) use files::{write, write_with};
use gleaner_dataset::Dataset;
use gleaner_reports::{Options, Report};
use gleaner_schemas::findings::Findings;
use jiff::Timestamp;
use job::{Job, heading};
pub(crate) use span::EmptyReport;
use span::RequestedTime;
use std::io::Write;
use std::path::Path;

/// Exit code if nothing was recorded in the requested time.
pub(crate) const NOTHING_TO_REPORT: u8 = 3;

pub(crate) fn run(args: &Args, output: &mut dyn Write) -> anyhow::Result<()> {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    let companions = &args.companions;
    anyhow::ensure!(
        !to_stdout || (companions.also.is_empty() && !companions.pdf),
        "companion files need a page in a file: name it with -o FILE"
    );
    anyhow::ensure!(
        !to_stdout || args.sites.file.is_none(),
        "the pages of sites need a page in a file: name it with -o FILE, or a folder with --folder DIR"
    );
    // Checked before the analysis, which may take long, so that a missing program is reported at once.
    let chromium = companions
        .pdf
        .then(|| chromium::find(companions.chromium.as_deref()))
        .transpose()?;
    let sender = mail::sender(&args.mail)?;
    if let Some(from) = sender.clone().filter(|_| args.mail.is_test) {
        mail::send_test(&args.mail, from)?;
        let to: Vec<_> = args.mail.to.iter().map(ToString::to_string).collect();
        writeln!(
            output,
            "{} took a test message for {}",
            args.mail.sendmail.display(),
            to.join(", ")
        )?;
        return Ok(());
    }

    let now = Timestamp::now();
    let zone = span::zone(&args.measures.time_zone)?;
    // The temporary export of this host's own trace is removed when `own` is dropped, after the report.
    let own = args.dataset.is_none().then(own::dataset).transpose()?;
    let dataset = match (&args.dataset, &own) {
        (Some(place), _) => gleaner_objects::open(place)?,
        (None, Some(own)) => Dataset::open(own.path().join("dataset"))?,
        (None, None) => anyhow::bail!("there is no dataset"),
    };
    let asked = RequestedTime::new(&args.time, &dataset, &zone, now)?;
    let job = Job {
        args,
        dataset: &dataset,
        asked: &asked,
        zone: &zone,
        made_at_ms: now.as_millisecond(),
        chromium: chromium.as_deref(),
    };
    let (report, html, sites) = match &args.sites.file {
        Some(file) => match sites::run(&job, file)? {
            Some(fleet) => (fleet.report, fleet.html, fleet.sites),
            // Only the pages of some sites were requested.
            None => return Ok(()),
        },
        None => {
            let (report, html) = whole(&job)?;
            (report, html, Vec::new())
        }
    };
    if to_stdout {
        output.write_all(html.as_bytes())?;
    } else {
        match &args.habit.folder {
            Some(folder) => folder::publish(folder, &job, &report, &html, sites)?,
            None => {
                job.write(&job.page(), &report, &html)?;
                if own.is_some() {
                    writeln!(output, "Report: {}", absolute(&job.page()))?;
                }
            }
        }
        if args.sites.file.is_some() {
            sites::remove_parts(&job.page())?;
        }
    }
    if let Some(from) = sender {
        let page_name = format!("{}.html", asked.name);
        mail::send(
            &args.mail,
            from,
            &report,
            &html,
            &page_name,
            page_url(args, &page_name),
        )?;
    }
    Ok(())
}

/// Report on all hosts, with a page for each host.
fn whole(job: &Job<'_>) -> anyhow::Result<(Report, String)> {
    let measured = analyses::measure(job.dataset, job.asked, job.zone, job.args)?;
    let options = job.options(heading(&measured.now, job.args));
    let report = Report::new(&measured.now, measured.before.as_ref(), &options)?;
    // The findings of a large fleet take much memory, and are no longer needed: the report contains
    // everything that is printed.
    drop(measured);
    let html = report.html()?;
    Ok((report, html))
}

/// URL of the page for the mail, whose readers may not get the page itself.
fn page_url(args: &Args, page_name: &str) -> Option<String> {
    let link = args.mail.link.as_ref();
    match (link, &args.habit.folder, &args.output) {
        (Some(link), Some(_), _) => Some(format!("{}/{page_name}", link.trim_end_matches('/'))),
        (Some(link), None, _) => Some(link.clone()),
        (None, Some(folder), _) => Some(absolute(&folder.join(page_name))),
        (None, None, Some(output)) if output == Path::new("-") => None,
        (None, None, output) => Some(absolute(output.as_deref().unwrap_or(Path::new(page_name)))),
    }
}

fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.display().to_string()
}

/// Page of the whole dataset, without a comparison.
pub(crate) fn page(findings: &Findings, title: String, time_zone: &str) -> anyhow::Result<String> {
    let options = Options {
        title,
        time_zone: time_zone.to_owned(),
        made_at_ms: Timestamp::now().as_millisecond(),
        ..Options::default()
    };
    let report = Report::new(findings, None, &options)?;
    report.html().context("cannot write the page")
}

/// Title: "Memory of lab-7", or with the number of hosts.
pub(crate) fn title(findings: &Findings) -> String {
    match findings.hosts.as_slice() {
        [host] => format!("Memory of {}", host.host_name),
        _ => anonymous_title(findings),
    }
}

fn anonymous_title(findings: &Findings) -> String {
    match findings.hosts.len() {
        1 => "Memory of one host".to_owned(),
        count => format!("Memory of {count} hosts"),
    }
}
