//! Renders findings as a report: `cargo run -p gleaner-reports --example render -- findings.json out.html`.
//! Without a file of findings (`-`), the invented week of the tests.

#[path = "../tests/week/mod.rs"]
mod week;

use gleaner_reports::{Options, html};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output] = arguments.as_slice() else {
        return Err("usage: render FINDINGS.json|- OUT.html".into());
    };
    let findings = match input.as_str() {
        "-" => week::findings(),
        path => serde_json::from_str(&std::fs::read_to_string(path)?)?,
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
    std::fs::write(output, html(&findings, &options)?)?;
    Ok(())
}
