//! `gleaner merge`: parts of an analysis or of a sweep, merged into their results or into a larger part.

use crate::document::Form;
use crate::simulate;
use anyhow::{Context, bail};
use gleaner_analysis::Part;
use gleaner_simulator::sweep::SweepPart;
use std::io::Write;
use std::path::PathBuf;

/// Merge parts of an analysis (`gleaner analyze --part`) or of a sweep (`gleaner simulate --part`) into their
/// results, or into a larger part.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner merge part-1 part-2 part-3                  # tables
  gleaner merge part-* --json > findings.json         # the same document as of one analysis
  gleaner merge part-* --json --records records > findings.json
  gleaner merge part-1* -o tens && gleaner merge part-? tens --json
  gleaner merge sweep-* --csv study.csv --page study.html

The order of the parts changes nothing, and a part that is given twice counts once.
Scale, and how to divide the work: docs/scale.md.")]
pub(crate) struct Merge {
    /// Files of the parts.
    #[arg(required = true)]
    pub(crate) parts: Vec<PathBuf>,
    /// Print the results as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write an analysis' records of single hosts into Parquet files in this new folder, and leave them out of the JSON document.
    #[arg(long, value_name = "FOLDER", requires = "json")]
    pub(crate) records: Option<PathBuf>,
    /// Maximum number of rows printed per measure of an analysis.
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(crate) rows: usize,
    /// Write the CSV of a sweep, one line per row (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the HTML page of a sweep.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Write the merged part into this file instead of printing results; hosts or runs may be missing.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "records", "rows", "csv", "page"])]
    pub(crate) output: Option<PathBuf>,
}

/// Content of a part's file, and the file's name for errors.
struct StoredPart {
    origin: String,
    bytes: Vec<u8>,
}

pub(crate) fn run(args: &Merge, output: &mut dyn Write) -> anyhow::Result<()> {
    let bar = gleaner_terminal::bar("merge", args.parts.len() as u64);
    let read = |path: &PathBuf| {
        let origin = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| origin.clone())?;
        bar.inc(1);
        anyhow::Ok(StoredPart { origin, bytes })
    };
    // The files are read one at a time: many parts of an analysis may not fit in memory.
    let mut parts = args.parts.iter().map(read);
    let Some(first) = parts.next().transpose()? else {
        return Ok(());
    };
    if SweepPart::is_stored_in(&first.bytes) {
        if args.records.is_some() {
            bail!("--records is for parts of an analysis (`gleaner analyze --part`)");
        }
        let to = simulate::args::Results {
            json: args.json.then(|| PathBuf::from("-")),
            csv: args.csv.clone(),
            page: args.page.clone(),
        };
        simulate::refuse_outputs(&to)?;
        let merged = sweep(first, parts)?;
        bar.finish_and_clear();
        if let Some(file) = &args.output {
            return simulate::write_part(&merged, file, output);
        }
        let (summary, rows) = merged.finish()?;
        let results = simulate::Results {
            summary: &summary,
            rows: &rows,
        };
        return simulate::write(&results, &to, output);
    }
    if args.csv.is_some() || args.page.is_some() {
        bail!("--csv and --page are for parts of a sweep (`gleaner simulate --part`)");
    }
    let form = Form {
        json: args.json,
        records: args.records.as_deref(),
        measures: &[],
        rows: args.rows,
    };
    let first = Part::from_bytes(&first.bytes, &first.origin)?;
    form.check(first.hosts_count(), first.parameters())?;
    let merged = analysis(first, parts)?;
    bar.finish_and_clear();
    match &args.output {
        Some(file) => Ok(merged.write(file)?),
        None => form.print(merged.finish()?, output),
    }
}

fn analysis(
    first: Part,
    others: impl Iterator<Item = anyhow::Result<StoredPart>>,
) -> anyhow::Result<Part> {
    let mut merged = first;
    for other in others {
        let StoredPart { origin, bytes } = other?;
        merged = merged.merge(Part::from_bytes(&bytes, &origin)?, &origin)?;
    }
    Ok(merged)
}

fn sweep(
    first: StoredPart,
    others: impl Iterator<Item = anyhow::Result<StoredPart>>,
) -> anyhow::Result<SweepPart> {
    let mut merged = SweepPart::from_bytes(&first.bytes, &first.origin)?;
    for other in others {
        let StoredPart { origin, bytes } = other?;
        merged = merged.merge(SweepPart::from_bytes(&bytes, &origin)?, &origin)?;
    }
    Ok(merged)
}
