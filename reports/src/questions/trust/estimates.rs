//! Figures that rest on an estimate, and the error that this may mean.

use crate::view::View;
use crate::wording::{bytes, count, share};
use gleaner_schemas::findings::{Notion, Scope};

pub(super) fn words(view: &View) -> Vec<String> {
    let said = [cut(view), unknown(view), residual(view), clocks(view)];
    said.into_iter().flatten().collect()
}

/// Periods that were not seen to their end.
fn cut(view: &View) -> Option<String> {
    let periods = view.findings.availability_periods.iter().filter(|p| {
        p.size_class == "all" && p.scope == Scope::All && p.notion == Notion::Available
    });
    let (all, cut) = periods.fold((0, 0), |(all, cut), p| (all + p.periods, cut + p.censored));
    (all > 0).then(|| {
        format!(
            "Of {}, over all sizes of regions, {} were cut short by a gap or an end of the time: how long those would have lasted is \
             estimated from the others (Kaplan-Meier).",
            count(all, "availability period"),
            share(cut as f64 / all as f64)
        )
    })
}

/// Hosts of which it is not known whether they were idle, or what could be taken from them.
fn unknown(view: &View) -> Option<String> {
    let hosts = &view.findings.hosts;
    let blind = hosts.iter().filter(|h| h.idle_share.is_none()).count() as i64;
    (blind > 0).then(|| {
        let left = if blind == 1 { "is" } else { "are" };
        format!(
            "Of {} of {} it is not known when the owner was away: what is said of idle hosts leaves them out, and nothing {left} guessed.",
            blind,
            count(hosts.len() as i64, "host")
        )
    })
}

/// Two ways to count what is available.
fn residual(view: &View) -> Option<String> {
    let residuals = &view.findings.residuals;
    let worst = residuals
        .iter()
        .max_by(|a, b| a.max_abs_share.total_cmp(&b.max_abs_share))?;
    let mean = residuals.iter().map(|r| r.mean_bytes.abs()).sum::<f64>() / residuals.len() as f64;
    let on = match view.only_host() {
        Some(_) => String::new(),
        None => format!(" on {}", view.host_name(&worst.host)),
    };
    Some(format!(
        "Available memory is what the other categories leave over. Summed from its parts instead (free, idle processes, unused cache, \
         reclaimable kernel memory), it differs by {} a host on average, and by {} of memory at most{on}.",
        bytes(mean),
        share(worst.max_abs_share)
    ))
}

/// Hosts' clocks, where several are put side by side.
fn clocks(view: &View) -> Option<String> {
    (view.findings.hosts.len() > 1).then(|| {
        "Hosts are put side by side by their own clocks; where one was seen to be off, that is recorded but not corrected for.".into()
    })
}
