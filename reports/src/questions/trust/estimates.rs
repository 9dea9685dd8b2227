//! Figures based on estimates, and their possible error.

use crate::view::View;
use crate::wording::{bytes, count, share};
use gleaner_schemas::findings::{Notion, Scope};

pub(super) fn words(view: &View) -> Vec<String> {
    let said = [cut(view), unknown(view), residual(view), clocks(view)];
    said.into_iter().flatten().collect()
}

/// Sentence on periods that were cut.
fn cut(view: &View) -> Option<String> {
    let periods = view.findings.availability_periods.iter().filter(|p| {
        p.size_class == "all" && p.scope == Scope::All && p.notion == Notion::Available
    });
    let (all, cut) = periods.fold((0, 0), |(all, cut), p| {
        (all + p.periods_count, cut + p.censored_count)
    });
    (all > 0).then(|| {
        format!(
            "Of {} over all sizes of regions, {} were cut short by a gap or an end of the requested time. Their full length is estimated from the other \
             periods (Kaplan-Meier).",
            count(all, "availability period"),
            share(cut as f64 / all as f64)
        )
    })
}

/// Sentence on hosts without known idle periods.
fn unknown(view: &View) -> Option<String> {
    let hosts = &view.findings.hosts;
    let blind = hosts.iter().filter(|h| h.idle_share.is_none()).count() as i64;
    (blind > 0).then(|| {
        let excluded = if blind == 1 { "is" } else { "are" };
        format!(
            "{} of {} {excluded} excluded from all figures on idle hosts, because it is not known when the owner was away. No values are guessed.",
            blind,
            count(hosts.len() as i64, "host")
        )
    })
}

/// Sentence on the difference between the two ways to count available memory.
fn residual(view: &View) -> Option<String> {
    let residuals = &view.findings.residuals;
    let worst = residuals
        .iter()
        .max_by(|a, b| a.max_abs_share.total_cmp(&b.max_abs_share))?;
    let mean = residuals.iter().map(|r| r.mean_bytes.abs()).sum::<f64>() / residuals.len() as f64;
    let on = match view.only_host() {
        Some(_) => String::new(),
        None => format!(" on {}", view.host_name(&worst.host_id)),
    };
    Some(format!(
        "Available memory is calculated as physical memory less the other categories. The sum of its parts (free, idle processes, unused \
         cache, reclaimable kernel memory) differs from it by {} per host on average, and by {} of memory at most{on}.",
        bytes(mean),
        share(worst.max_abs_share)
    ))
}

/// Sentence on the clocks of hosts, if there are several hosts.
fn clocks(view: &View) -> Option<String> {
    (view.findings.hosts.len() > 1).then(|| {
        "Hosts are compared by their own clocks. Observed clock errors are recorded but not corrected.".into()
    })
}
