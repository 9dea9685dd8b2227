//! `gleaner fidelity`: the figures that a paper prints, beside those of synthetic clusters made after it.
//!
//! ```text
//! traces/published ─► figures ──────────────────────┐
//! seeds ─► clusters (made, analysed) ─► cells ─► record ─► text, markdown, JSON
//!                                                    └──► aims, contradictions
//! ```

mod aims;
pub(crate) mod args;
mod cells;
mod clusters;
mod contradictions;
mod markdown;
mod record;
mod text;
mod wording;

use crate::progress;
use anyhow::{Context, bail};
use args::Fidelity;
use clusters::Name;
use gleaner_traces::published::{Published, acharya_setia};
use gleaner_traces::synth::Cluster;
use record::{Record, Values};
use std::io::Write;

pub(crate) fn run(args: &Fidelity) -> anyhow::Result<()> {
    let published = acharya_setia()?;
    refuse_unknown(&args.item, &published)?;
    let mut records = measured(args, &published)?;
    if let Some(file) = &args.markdown {
        let page = markdown::markdown(&records, &command(args), &seeds(args));
        std::fs::write(file, page).with_context(|| file.display().to_string())?;
    }
    records.retain(|r| args.item.is_empty() || args.item.contains(&r.item));
    let text = if args.json {
        serde_json::to_string_pretty(&records)? + "\n"
    } else {
        text::text(&records)
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn refuse_unknown(asked: &[String], published: &Published) -> anyhow::Result<()> {
    let mut known: Vec<&str> = published.figures.iter().map(|f| f.item.as_str()).collect();
    known.dedup();
    match asked.iter().find(|item| !known.contains(&item.as_str())) {
        Some(item) => bail!("--item {item}: the paper's are {}", known.join(", ")),
        None => Ok(()),
    }
}

/// A record for each figure, over all seeds.
fn measured(args: &Fidelity, published: &Published) -> anyhow::Result<Vec<Record>> {
    let work = args.work.clone().unwrap_or_else(std::env::temp_dir);
    let bar = progress::bar("fidelity", 1);
    let mut of_seeds: Vec<Values> = Vec::new();
    for done in 0..args.seeds {
        let seed = args.first_seed.wrapping_add(done);
        let cluster = |name| clusters::cluster(name, seed, args.days);
        let both: [Cluster; 2] = [cluster(Name::A)?, cluster(Name::B)?];
        let host_days = |c: &Cluster| c.parameters().hosts as u64 * u64::from(c.parameters().days);
        let steps: u64 = both.iter().map(host_days).sum();
        bar.set_length(steps * args.seeds);
        bar.set_message(format!("seed {seed}, {} of {}", done + 1, args.seeds));
        let observed = clusters::observe(&both, &work, &bar);
        let observed = observed.with_context(|| format!("seed {seed}"))?;
        of_seeds.push(record::values(&published.figures, &observed));
    }
    bar.finish_and_clear();
    Ok(record::records(&published.figures, &of_seeds))
}

/// The line that does it again.
fn command(args: &Fidelity) -> String {
    let mut line = format!(
        "gleaner fidelity --seeds {} --first-seed {}",
        args.seeds, args.first_seed
    );
    if args.days != 14 {
        line += &format!(" --days {}", args.days);
    }
    if let Some(file) = &args.markdown {
        line += &format!(" --markdown {}", file.display());
    }
    line
}

fn seeds(args: &Fidelity) -> String {
    let last = args.first_seed.wrapping_add(args.seeds - 1);
    match args.seeds {
        1 => format!("the seed {last}"),
        many => format!("{many} seeds ({} to {last})", args.first_seed),
    }
}
