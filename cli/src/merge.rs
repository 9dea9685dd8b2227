//! `gleaner merge`: parts of an analysis, merged into findings or into a larger part.

use crate::analyze;
use gleaner_analysis::Part;
use std::io::Write;
use std::path::PathBuf;

/// Merge parts of an analysis (`gleaner analyze --part`) into its findings, or into a larger part.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner merge part-1 part-2 part-3                  # tables
  gleaner merge part-* --json > findings.json         # the same document as of one analysis
  gleaner merge part-1* -o tens && gleaner merge part-? tens --json

The order of the parts changes nothing, and a part that is given twice counts once.
Scale, and how to divide the work: docs/scale.md.")]
pub(crate) struct Merge {
    /// Files of the parts.
    #[arg(required = true)]
    pub(crate) parts: Vec<PathBuf>,
    /// Print the findings as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Maximum number of rows printed per measure.
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(crate) rows: usize,
    /// Write the merged part into this file instead of printing findings; hosts may be missing.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "rows"])]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(args: &Merge, output: &mut dyn Write) -> anyhow::Result<()> {
    let bar = gleaner_terminal::bar("merge", args.parts.len() as u64);
    let mut merged: Option<Part> = None;
    for path in &args.parts {
        let part = Part::read(path)?;
        merged = Some(match merged {
            Some(merged) => merged.merge(part, &path.display().to_string())?,
            None => part,
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    match (merged, &args.output) {
        (Some(merged), Some(file)) => merged.write(file)?,
        (Some(merged), None) => {
            analyze::print(&merged.finish()?, args.json, &[], args.rows, output)?
        }
        (None, _) => {}
    }
    Ok(())
}
