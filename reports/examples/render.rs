//! Renders findings as a report:
//! `cargo run -p gleaner-reports --example render -- [OPTIONS] FINDINGS.json|- [BEFORE.json] OUT.html`.
//!
//! Without a file of findings (`-`), the invented findings of the tests are used. Options:
//! `--time-zone NAME`, `--anonymous`, `--title TITLE`, `--span LABEL,FROM,UNTIL` (the requested time),
//! `--from MOMENT` (moves all times so that they begin then: `2026-10-23T22:00:00Z`), `--companions`
//! (also writes Markdown, JSON and CSV).

#[path = "../tests/week/mod.rs"]
mod week;

use gleaner_reports::{Options, Report, Span};
use gleaner_schemas::findings::Findings;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::default();
    let (mut from, mut companions) = (None, false);
    let mut paths = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--time-zone" => options.time_zone = value()?,
            "--title" => options.title = value()?,
            "--from" => from = Some(value()?.parse::<jiff::Timestamp>()?.as_millisecond()),
            "--span" => options.span = Some(span(&value()?)?),
            "--anonymous" => options.anonymous = true,
            "--companions" => companions = true,
            path => paths.push(path.to_owned()),
        }
    }
    let (input, before, output) = match paths.as_slice() {
        [input, output] => (input, None, output),
        [input, before, output] => (input, Some(read(before)?), output),
        _ => return Err("usage: render [OPTIONS] FINDINGS.json|- [BEFORE.json] OUT.html".into()),
    };
    let mut findings = match input.as_str() {
        "-" => week::whole(),
        path => read(path)?,
    };
    let first = |f: &Findings| f.hosts.iter().map(|h| h.from_time_ms).min().unwrap_or(0);
    if let Some(from) = from {
        findings = week::later(&findings, from - first(&findings));
    }
    let last = findings.hosts.iter().map(|h| h.to_time_ms).max();
    options.made_at_ms = last.unwrap_or(0);
    let report = Report::new(&findings, before.as_ref(), &options)?;
    std::fs::write(output, report.html()?)?;
    if companions {
        write_companions(&report, Path::new(output))?;
    }
    Ok(())
}

/// Parses a span, such as `A week,2026-11-15T23:00:00Z,2026-11-22T23:00:00Z`.
fn span(told: &str) -> Result<Span, Box<dyn Error>> {
    let parts: Vec<&str> = told.split(',').collect();
    let [label, from, until] = parts.as_slice() else {
        return Err("--span LABEL,FROM,UNTIL".into());
    };
    let ms =
        |moment: &str| Ok::<i64, jiff::Error>(moment.parse::<jiff::Timestamp>()?.as_millisecond());
    Ok(Span {
        label: (*label).to_owned(),
        from_ms: ms(from)?,
        until_ms: ms(until)?,
        before_label: "the week before".into(),
    })
}

fn write_companions(report: &Report, page: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::write(page.with_extension("md"), report.markdown())?;
    std::fs::write(page.with_extension("json"), report.json())?;
    for table in report.tables() {
        let name = page.with_extension(format!("{}.csv", table.name));
        std::fs::write(name, table.csv)?;
    }
    Ok(())
}

fn read(path: &str) -> Result<Findings, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
