//! Can the data be trusted?

mod tables;

use super::parts;
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{bytes, count, share, stored_bytes};

pub(crate) fn section(view: &View) -> Section {
    Section {
        id: "trust".into(),
        title: "Can the data be trusted?",
        answer: String::new(),
        parts: trusted(view),
    }
}

fn trusted(view: &View) -> Vec<Part> {
    let f = &view.findings;
    let samples: i64 = f.hosts.iter().map(|h| h.samples_count).sum();
    let cover: Vec<String> = f
        .hosts
        .iter()
        .map(|h| h.coverage_share)
        .reduce(f64::min)
        .map(share)
        .into_iter()
        .collect();
    let least = if f.hosts.len() > 1 { "at least " } else { "" };
    let summary = match cover.first() {
        Some(cover) => format!(
            "The figures rest on {}, which cover {least}{cover} of the time traced. {} in the trace and {}.",
            count(samples, "sample"),
            match f.gaps.len() as i64 {
                0 => "There is no gap".into(),
                1 => "There is 1 gap".into(),
                n => format!("There are {n} gaps"),
            },
            match f.absences.len() as i64 {
                0 => "nothing was left unread".into(),
                1 => "1 thing could not be read".into(),
                n => format!("{n} things could not be read"),
            }
        ),
        None => "There are no samples.".into(),
    };
    let residual = f
        .residuals
        .iter()
        .max_by(|a, b| a.max_abs_share.total_cmp(&b.max_abs_share));
    let residual = residual.map(|r| {
        Part::Say(format!(
            "Available memory is what the other categories leave over. Summed from its parts instead (free, idle processes, unused \
             cache, reclaimable kernel memory), it differs by {} on average and by {} at most, {} of memory.",
            bytes(r.mean_bytes),
            stored_bytes(r.max_abs_bytes),
            share(r.max_abs_share)
        ))
    });
    let cost = f
        .agent_cost
        .iter()
        .max_by(|a, b| a.mean_cpu_ms.total_cmp(&b.mean_cpu_ms));
    let cost = cost.map(|c| {
        Part::Say(format!(
            "Tracing itself took {:.1}\u{a0}ms of CPU time a sample on average, {:.1}\u{a0}ms at most{}, and {} of memory at most.",
            c.mean_cpu_ms,
            c.max_cpu_ms,
            c.cpu_share.map(|s| format!(" ({} of one CPU)", share(s))).unwrap_or_default(),
            stored_bytes(c.max_rss_bytes)
        ))
    });
    parts([
        Some(Part::Say(summary)),
        tables::coverage(view).map(Part::Table),
        tables::gaps(view).map(Part::Table),
        tables::absences(view).map(Part::Table),
        tables::activity(view).map(Part::Table),
        residual,
        tables::residuals(view).map(Part::Table),
        cost,
        tables::cost(view).map(Part::Table),
        tables::not_measured(view).map(Part::Table),
        view.prefix
            .is_empty()
            .then(|| tables::parameters(view))
            .flatten()
            .map(Part::Table),
    ])
}
