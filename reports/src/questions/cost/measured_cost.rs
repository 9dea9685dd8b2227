//! Measured cost of returns: the kernel's counters.

use super::decimal;
use crate::page::table::{Cell, Table, numbers, words as text};
use crate::view::View;
use crate::wording::{count, seconds};
use gleaner_schemas::findings::{CostWindow, Findings, OwnerCost};

fn pooled(f: &Findings) -> impl Iterator<Item = &OwnerCost> {
    let all = f.owner_cost.iter();
    all.filter(|c| c.size_class == "all" && c.windows_count > 0)
}

/// Sentences on whether memory was lent, and on its effect on returns.
pub(super) fn words(view: &View) -> Option<String> {
    let of = |lent| {
        let mut all = pooled(view.findings);
        all.find(|c| c.window == CostWindow::Return && c.had_guests == lent)
    };
    let stall = |c: &OwnerCost| match c.mean_psi_memory_some_us {
        Some(us) if us < 50.0 => "less than 0.1\u{a0}ms".into(),
        Some(us) => format!("{:.1}\u{a0}ms", us / 1000.0),
        None => "an unknown time".into(),
    };
    match (of(true), of(false)) {
        (None, None) => None,
        (None, Some(c)) => Some(format!(
            "No memory was lent in the traced time, so these are the costs of returns without lending, for later comparison: in the \
             first {} or so after each of {}, tasks waited for memory for {} on average.",
            seconds(c.mean_window_s.round()),
            count(c.windows_count, "return"),
            stall(c)
        )),
        (Some(lent), other) => Some(format!(
            "With memory lent, tasks waited for memory for {} on average after each of {}{}. Hosts and hours also differ, so lending need \
             not be the cause of a difference.",
            stall(lent),
            count(lent.windows_count, "return"),
            other
                .map(|c| format!(
                    "; without memory lent, for {} ({})",
                    stall(c),
                    count(c.windows_count, "return")
                ))
                .unwrap_or_default()
        )),
    }
}

/// Table of returns and of the busy time that follows, with and without lent memory.
pub(super) fn table(view: &View) -> Option<Table> {
    let any_lent = pooled(view.findings).any(|c| c.had_guests);
    let rows = pooled(view.findings).map(|c| {
        let window = match c.window {
            CostWindow::Return => "after a return",
            CostWindow::Busy => "later, while busy",
        };
        let ms = |us: Option<f64>| Cell::or_absent(us, |us| Cell::ms(us / 1000.0));
        let number = |n: Option<f64>| Cell::or_absent(n, decimal);
        let mut row = vec![Cell::text(window)];
        row.extend(any_lent.then(|| Cell::bytes(c.mean_guest_bytes)));
        row.extend([
            Cell::count(c.windows_count),
            Cell::seconds(c.mean_window_s.round()),
            ms(c.mean_psi_memory_some_us),
            ms(c.p99_psi_memory_some_us),
            number(c.mean_refault_file_count),
            number(c.mean_swap_in_count),
            number(c.mean_major_fault_count),
        ]);
        row
    });
    let mut columns = vec![text("time")];
    columns.extend(any_lent.then(|| numbers("lent")));
    columns.extend([
        numbers("windows"),
        numbers("length"),
        numbers("mean wait"),
        numbers("99th percentile of wait"),
        numbers("file pages read again"),
        numbers("swapped in"),
        numbers("major faults"),
    ]);
    let table = Table::new(
        format!("{}owner-cost", view.prefix),
        "The kernels’ counters after a return and later in the same busy period: means",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        "Wait: time during which at least one task waited for memory. A window is as long as the samples allow. The cost of a return is its \
         difference from the time later in the busy period.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::ask as of;

    fn cost(lent: bool, us: f64) -> OwnerCost {
        OwnerCost {
            size_class: "all".into(),
            window: CostWindow::Return,
            had_guests: lent,
            windows_count: 12,
            mean_window_s: 270.0,
            mean_guest_bytes: 0.0,
            mean_memory_context_bytes: None,
            mean_psi_memory_some_us: Some(us),
            median_psi_memory_some_us: None,
            p99_psi_memory_some_us: None,
            mean_psi_memory_full_us: None,
            median_psi_memory_full_us: None,
            p99_psi_memory_full_us: None,
            mean_refault_file_count: None,
            median_refault_file_count: None,
            p99_refault_file_count: None,
            mean_refault_anon_count: None,
            median_refault_anon_count: None,
            p99_refault_anon_count: None,
            mean_swap_in_count: None,
            median_swap_in_count: None,
            p99_swap_in_count: None,
            mean_major_fault_count: None,
            median_major_fault_count: None,
            p99_major_fault_count: None,
        }
    }

    #[test]
    fn it_is_said_whether_anything_was_lent() {
        let mut findings = Findings::default();
        assert_eq!(of(&findings, None, words), None);
        findings.owner_cost.push(cost(false, 170.0));
        let said = of(&findings, None, words).unwrap();
        assert!(
            said.starts_with("No memory was lent") && said.contains("0.2\u{a0}ms"),
            "{said}"
        );
        findings.owner_cost.push(cost(true, 2500.0));
        let said = of(&findings, None, words).unwrap();
        assert!(
            said.starts_with("With memory lent, tasks waited for memory for 2.5\u{a0}ms"),
            "{said}"
        );
        assert!(of(&findings, None, table).unwrap().rows[0][7].absent);
    }
}
