//! Summary of an import, for display.

use gleaner_schemas::units::Bytes;
use gleaner_traces::import::{ImportSummary, Machine, Outcome, Repairs};
use std::fmt::Write as _;
use std::path::Path;

/// Share of a machine's span that is recorded, below which the summary warns: more than half of the span is
/// gaps.
const LOW_COVERAGE: f64 = 0.5;
/// If fewer than this number of steps between samples come with each gap, the gaps are explained as irregular
/// sampling, otherwise as pauses of the recording.
const IRREGULAR_PART: u64 = 10;

/// Summary of an import: a table of rows repaired, merged and dropped, by machine and in total, and notes
/// below it.
pub(crate) fn summary_text(imported: &ImportSummary, dataset: &Path) -> String {
    let mut rows = gleaner_terminal::table(
        &[
            "machine",
            "rows",
            "samples",
            "unreadable",
            "repeated",
            "contradicted",
            "merged",
            "no memory",
            "out of order",
            "above physical",
        ],
        1,
    );
    let mut add = |name: &str, m: &Repairs| {
        let counts = [
            m.rows_count,
            m.samples_count,
            m.unreadable_count,
            m.repeated_count,
            m.contradicted_count,
            m.merged_count,
            m.without_memory_count,
            m.out_of_order_count,
            m.above_physical_count,
        ];
        let name = std::iter::once(name.to_owned());
        rows.add_row(name.chain(counts.map(|n| n.to_string())));
    };
    let machines = &imported.machines;
    for machine in machines.iter().filter(|m| m.repairs.has_any()) {
        add(&machine.host_name, &machine.repairs);
    }
    let total = &imported.total;
    add(&format!("all {}", machines.len()), total);

    // Writing to a String cannot fail.
    let mut text = format!("{}\n\n", rows.trim_fmt());
    for machine in machines {
        if machine.outcome != Outcome::Imported || machine.repairs.first_unreadable.is_some() {
            let _ = writeln!(text, "{}: {}.", machine.host_name, machine.reason());
        }
    }
    if let Some(first) = &imported.without_machine.first_unreadable {
        let count = imported.without_machine.rows_count;
        let _ = writeln!(text, "{count} rows have no machine ({first}).");
    }
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}.");
        }
    };
    say(
        total.times_in_seconds_count,
        "rows have their time in seconds, though the column says ms; read as seconds",
    );
    say(
        total.contradicted_count,
        "rows contradicted another row of the same time; the row with the least available memory is kept",
    );
    say(
        total.merged_count,
        "rows within 500 ms of another were merged with it into one sample",
    );
    say(
        total.above_physical_count,
        "samples used more memory than there was; available is 0",
    );
    say(
        total.zero_use_count,
        "samples had no memory in use; imported unchanged",
    );
    say(
        total.changes_count,
        "times a machine's memory, CPUs or other properties changed",
    );
    say(
        total.gaps_count,
        "times more than two of a machine's intervals passed between samples, or the recording stopped: gaps",
    );
    if !imported.skipped_entries.is_empty() {
        let _ = writeln!(text, "Skipped: {}.", imported.skipped_entries.join(", "));
    }
    append_warnings(&mut text, imported);
    let kept = machines.iter().filter(|m| m.outcome == Outcome::Imported);
    let _ = writeln!(
        text,
        "\n{} rows of {} machines in {} files ({}) new in {}; {} were there already.\n{}",
        imported.new_rows_count,
        kept.count(),
        imported.files_count,
        Bytes::from(imported.files_bytes),
        dataset.display(),
        imported.existing_rows_count,
        imported.available_meaning,
    );
    text
}

/// Appends warnings about missing, contradicting or sparse data, each with its reason.
fn append_warnings(text: &mut String, imported: &ImportSummary) {
    for what in &imported.unusable_parts {
        let _ = writeln!(text, "warning: left out: {what}.");
    }
    if imported.contradicting_rows_count > 0 {
        let _ = writeln!(
            text,
            "warning: {} rows say otherwise than what the dataset holds of the same machine and time; they were left \
             out. Import into a new dataset to have them.",
            imported.contradicting_rows_count
        );
    }
    let low = |m: &&Machine| m.outcome == Outcome::Imported && m.repairs.coverage() < LOW_COVERAGE;
    let low: Vec<&Machine> = imported.machines.iter().filter(low).collect();
    let worst = low
        .iter()
        .min_by(|a, b| a.repairs.coverage().total_cmp(&b.repairs.coverage()));
    if let Some(worst) = worst {
        let _ = writeln!(
            text,
            "warning: low coverage: of {} of {} machines less than half of the time between first and last sample is \
             recorded; the rest is gaps. {}",
            low.len(),
            imported.machines.len(),
            low_reason(worst)
        );
    }
}

fn low_reason(worst: &Machine) -> String {
    let m = &worst.repairs;
    let interval_s = m.nominal_interval_ms.unwrap_or_default() as f64 / 1000.0;
    let steps = m.samples_count.saturating_sub(1);
    let what = format!(
        "Of {} it is {:.1} %: {} of {steps} steps between its samples are longer than two intervals of {interval_s} s",
        worst.host_name,
        100.0 * m.coverage(),
        m.gaps_count,
    );
    if m.gaps_count.saturating_mul(IRREGULAR_PART) > steps {
        format!(
            "{what}. Its samples come irregularly; where the source was recorded at an interval, import it into a \
             new dataset with --interval TIME."
        )
    } else {
        format!("{what}, in which it was off or not recorded.")
    }
}
