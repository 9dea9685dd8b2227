//! Papers whose figures come from a model that is solved, not from synthetic clusters: one value for each figure, without
//! seeds.

mod felten_zahorjan;
mod output;
mod reading;
mod record;

use super::args::Fidelity;
use super::error::{FidelityError, Result};
use gleaner_traces::published::{FELTEN_ZAHORJAN_SOURCE, felten_zahorjan as published_figures};
use record::ModelRecord;

/// Command line that writes the tables as Markdown.
const COMMAND: &str = "gleaner fidelity --paper felten-zahorjan --markdown FILE";

/// Solves the model of Felten and Zahorjan, and returns the comparison for standard output.
pub(super) fn run(args: &Fidelity) -> Result<String> {
    args.refuse_options_of_clusters()?;
    let published = published_figures()?;
    args.refuse_unknown_items(&published, &[])?;
    let mut records = Vec::new();
    for figure in published.figures.iter().filter(|f| args.requests(&f.item)) {
        let ours = felten_zahorjan::ours(figure)?;
        records.push(ModelRecord::new(FELTEN_ZAHORJAN_SOURCE, figure, ours));
    }
    // Readings are of the whole paper, and so is the page.
    let readings = if args.item.is_empty() {
        felten_zahorjan::readings(&published)?
    } else {
        Vec::new()
    };
    if let Some(file) = &args.markdown {
        let page = output::markdown(&records, &readings, COMMAND);
        std::fs::write(file, page).map_err(|source| FidelityError::Page {
            path: file.clone(),
            source,
        })?;
    }
    Ok(if args.json {
        serde_json::to_string_pretty(&records)? + "\n"
    } else {
        output::text(&records, &readings)
    })
}
