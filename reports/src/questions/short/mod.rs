//! Who is short, who has too much?

pub(crate) mod tables;

use super::parts;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{count, list, size};
use gleaner_schemas::findings::Findings;

pub(crate) fn section(view: &View) -> Section {
    Section {
        id: "short".into(),
        title: "Who is short, who has too much?",
        answer: dips_sentence(view.findings),
        parts: parts([
            tables::overview(view).map(Part::Table),
            tables::dips(view).map(Part::Table),
        ]),
    }
}

fn dips_sentence(findings: &Findings) -> String {
    let mut thresholds: Vec<i64> = findings
        .absolute_dips()
        .map(|d| d.threshold_bytes)
        .collect();
    thresholds.sort_unstable_by(|a, b| b.cmp(a));
    thresholds.dedup();
    let said: Vec<String> = thresholds
        .into_iter()
        .map(|threshold| {
            let below = |d: &&gleaner_schemas::findings::Dip| {
                d.threshold_bytes == threshold && d.intervals > 0
            };
            let hosts = findings.absolute_dips().filter(below).count() as i64;
            format!("{} below {}", count(hosts, "host"), size(threshold))
        })
        .collect();
    match said.is_empty() {
        true => "Dips were not counted.".into(),
        false => format!("Dipped at least once: {}.", list(&said)),
    }
}
