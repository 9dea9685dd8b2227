//! `gleaner import`.

use crate::args::{BitbrainsTrace, Import, ImportBitbrains, ImportSource};
use crate::{progress, tables};
use gleaner_schemas::units::Bytes;
use gleaner_traces::import::bitbrains::{self, FAST_STORAGE, RND};
use gleaner_traces::import::{Imported, Mended, Outcome, Progress};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Import) -> anyhow::Result<()> {
    match &args.source {
        ImportSource::Bitbrains(args) => bitbrains(args),
    }
}

fn bitbrains(args: &ImportBitbrains) -> anyhow::Result<()> {
    let source = match args.trace {
        BitbrainsTrace::Rnd => RND,
        BitbrainsTrace::FastStorage => FAST_STORAGE,
    };
    let bar = progress::bar("import", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.machines_in_all as u64);
        bar.set_position(p.machines as u64);
        bar.set_message(format!("machine {}", p.machine));
    };
    let imported = bitbrains::import(&args.folder, &args.output, source, progress)?;
    bar.finish_and_clear();
    let text = if args.json {
        let mut summary = serde_json::to_value(&imported)?;
        summary["dataset"] = serde_json::to_value(&args.output)?;
        format!("{summary:#}\n")
    } else {
        told(&imported, &args.output)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// What was mended, merged and dropped, by machine and in all.
fn told(imported: &Imported, dataset: &Path) -> String {
    let mut rows = tables::table(
        &[
            "machine",
            "rows",
            "samples",
            "unreadable",
            "repeated",
            "contradicted",
            "no memory",
            "out of order",
            "overused",
        ],
        1,
    );
    let mut add = |name: &str, m: &Mended| {
        let counts = [
            m.rows_count,
            m.samples_count,
            m.unreadable_count,
            m.repeated_count,
            m.contradicted_count,
            m.without_memory_count,
            m.out_of_order_count,
            m.overused_count,
        ];
        let name = std::iter::once(name.to_owned());
        rows.add_row(name.chain(counts.map(|n| n.to_string())));
    };
    let machines = &imported.machines;
    for machine in machines.iter().filter(|m| m.mended.is_mended()) {
        add(&machine.host_name, &machine.mended);
    }
    let total = &imported.total;
    add(&format!("all {}", machines.len()), total);

    // Writing to a String cannot fail.
    let mut text = format!("{}\n\n", rows.trim_fmt());
    for machine in machines {
        if machine.outcome != Outcome::Imported || machine.mended.first_unreadable.is_some() {
            let _ = writeln!(text, "{}: {}.", machine.host_name, machine.reason());
        }
    }
    let mut say = |count: u64, what: &str| {
        if count > 0 {
            let _ = writeln!(text, "{count} {what}.");
        }
    };
    say(
        total.in_seconds_count,
        "rows have their time in seconds, though the column says ms; read as seconds",
    );
    say(
        total.contradicted_count,
        "rows say other than another row of the same time; the one that leaves least available is kept",
    );
    say(
        total.overused_count,
        "samples used more memory than there was; available is 0",
    );
    say(
        total.unused_count,
        "samples are said to use no memory at all; taken as they are",
    );
    say(
        total.changes_count,
        "times a machine's memory or CPUs changed",
    );
    say(
        total.gaps_count,
        "times more than two of a machine's intervals passed between samples: gaps",
    );
    if !imported.passed_over.is_empty() {
        let _ = writeln!(text, "Not looked at: {}.", imported.passed_over.join(", "));
    }
    let kept = machines.iter().filter(|m| m.outcome == Outcome::Imported);
    let _ = writeln!(
        text,
        "\n{} rows of {} machines in {} files ({}) new in {}; {} were there already.\n\
         Available memory is an upper bound: use is what the hypervisor saw in active use.",
        imported.new_rows_count,
        kept.count(),
        imported.files_count,
        Bytes::from(imported.files_bytes),
        dataset.display(),
        imported.known_rows_count,
    );
    text
}
