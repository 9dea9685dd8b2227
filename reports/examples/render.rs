//! Renders findings as a report: `cargo run -p gleaner-reports --example render -- findings.json [before.json] out.html`.
//! Without a file of findings (`-`), the invented week of the tests.

#[path = "../tests/week/mod.rs"]
mod week;

use gleaner_reports::{Options, Report};
use gleaner_schemas::findings::Findings;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (input, before, output) = match arguments.as_slice() {
        [input, output] => (input, None, output),
        [input, before, output] => (input, Some(read(before)?), output),
        _ => return Err("usage: render FINDINGS.json|- [BEFORE.json] OUT.html".into()),
    };
    let findings = match input.as_str() {
        "-" => week::findings(),
        path => read(path)?,
    };
    let made_at_ms = findings
        .hosts
        .iter()
        .map(|h| h.to_time_ms)
        .max()
        .unwrap_or(0);
    let options = Options {
        made_at_ms,
        ..Options::default()
    };
    std::fs::write(
        output,
        Report::new(&findings, before.as_ref(), &options)?.html()?,
    )?;
    Ok(())
}

fn read(path: &str) -> Result<Findings, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}
