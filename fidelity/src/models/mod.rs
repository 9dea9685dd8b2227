//! Papers whose figures come from a model that is solved or simulated, not from synthetic clusters.

mod anemone;
mod felten_zahorjan;
mod gms;
mod output;
mod reading;
mod record;
mod verghese_rosenblum;

use super::args::Fidelity;
use super::error::{FidelityError, Result};
use gleaner_traces::published::{
    ANEMONE_SOURCE, FEELEY_SOURCE, FELTEN_ZAHORJAN_SOURCE, Figure, PublishedWork,
    VERGHESE_ROSENBLUM_SOURCE, anemone as anemone_figures, feeley,
    felten_zahorjan as published_figures, verghese_rosenblum as published_remote_access,
};
use reading::Reading;
use record::ModelRecord;

/// Command line that writes the tables of Felten and Zahorjan's model as Markdown.
const COMMAND: &str = "gleaner fidelity --paper felten-zahorjan --markdown FILE";
/// Command line that writes the tables of Verghese and Rosenblum's models as Markdown.
const REMOTE_ACCESS_COMMAND: &str =
    "gleaner fidelity --paper verghese-rosenblum --workloads FOLDER --markdown FILE";
/// Note of a figure that lacks the recordings of our workloads.
const NOT_RECORDED: &str =
    "not recorded: run bench/simulated/record FOLDER and pass --workloads FOLDER";

/// Solves the model of Felten and Zahorjan, and returns the comparison for standard output.
pub(super) fn felten_zahorjan(args: &Fidelity) -> Result<String> {
    args.refuse_seeds()?;
    args.refuse_options_of_clusters()?;
    let published = published_figures()?;
    args.refuse_unknown_items(&published, &[])?;
    let mut records = Vec::new();
    for figure in published.figures.iter().filter(|f| args.requests(&f.item)) {
        let ours = felten_zahorjan::ours(figure)?;
        records.push(ModelRecord::new(FELTEN_ZAHORJAN_SOURCE, figure, ours));
    }
    let readings = |published: &PublishedWork| felten_zahorjan::readings(published);
    print(args, &records, &whole(args, &published, readings)?, COMMAND)
}

/// Simulates the cluster of Feeley et al., and returns the comparison for standard output.
pub(super) fn global_memory(args: &Fidelity) -> Result<String> {
    args.refuse_options_of_clusters()?;
    let published = feeley()?;
    args.refuse_unknown_items(&published, &[])?;
    let requested = published.figures.iter().filter(|f| args.requests(&f.item));
    let requested: Vec<_> = requested.collect();
    let values = gms::values(&requested, args.first_seed, args.seeds)?;
    let mut records = Vec::new();
    for (figure, values) in requested.iter().zip(&values) {
        records.push(ModelRecord::of_seeds(FEELEY_SOURCE, figure, values));
    }
    let readings = whole(args, &published, |_| Ok(gms::readings()))?;
    let command = format!(
        "gleaner fidelity --paper gms --seeds {} --first-seed {} --markdown FILE",
        args.seeds, args.first_seed
    );
    print(args, &records, &readings, &command)
}

/// Compares results of the benches with Anemone's figures, and returns the comparison for standard output.
pub(super) fn anemone(args: &Fidelity) -> Result<String> {
    const COMMAND: &str = "gleaner fidelity --paper anemone --measured FILE --markdown FILE";
    args.refuse_seeds()?;
    args.refuse_options_of_clusters()?;
    let published = anemone_figures()?;
    args.refuse_unknown_items(&published, &[])?;
    let measured = anemone::Measured::read(&args.measured)?;
    let mut records = Vec::new();
    for figure in published.figures.iter().filter(|f| args.requests(&f.item)) {
        let ours = anemone::ours(figure, &measured, &published);
        let mut record = ModelRecord::new(ANEMONE_SOURCE, figure, ours);
        if ours.is_none() {
            record.note = anemone::missing(figure);
        }
        records.push(record);
    }
    let readings = |published: &PublishedWork| Ok(anemone::readings(published, &measured));
    print(args, &records, &whole(args, &published, readings)?, COMMAND)
}

/// Applies the models of Verghese and Rosenblum to the recordings of our workloads, if there are any, and returns the
/// comparison for standard output.
pub(super) fn remote_memory_access(args: &Fidelity) -> Result<String> {
    args.refuse_seeds()?;
    args.refuse_options_of_clusters()?;
    let published = published_remote_access()?;
    args.refuse_unknown_items(&published, &[])?;
    let requested = published.figures.iter().filter(|f| args.requests(&f.item));
    let requested: Vec<_> = requested.collect();
    let needs = |figure: &&Figure| verghese_rosenblum::needs_recordings(figure);
    let folder = args.workloads.as_deref();
    let folder = folder.filter(|_| requested.iter().any(needs));
    let observed = folder
        .map(verghese_rosenblum::WorkloadObservations::of)
        .transpose()?;
    let mut records = Vec::new();
    for figure in requested {
        let ours = verghese_rosenblum::ours(figure, &published, observed.as_ref())?;
        let note = match &observed {
            Some(observed) => verghese_rosenblum::shared_use(figure, observed),
            None => needs(&figure).then(|| NOT_RECORDED.to_owned()),
        };
        let record = ModelRecord::new(VERGHESE_ROSENBLUM_SOURCE, figure, ours);
        records.push(match note {
            Some(note) => record.with_note(&note),
            None => record,
        });
    }
    let readings = whole(args, &published, verghese_rosenblum::readings)?;
    print(args, &records, &readings, REMOTE_ACCESS_COMMAND)
}

/// Readings are of the whole paper: there are none if only some items are requested.
fn whole(
    args: &Fidelity,
    published: &PublishedWork,
    readings: impl Fn(&PublishedWork) -> Result<Vec<Reading>>,
) -> Result<Vec<Reading>> {
    if args.item.is_empty() {
        readings(published)
    } else {
        Ok(Vec::new())
    }
}

/// Writes the page, if one is requested, and returns the output.
fn print(
    args: &Fidelity,
    records: &[ModelRecord],
    readings: &[Reading],
    command: &str,
) -> Result<String> {
    if let Some(file) = &args.markdown {
        let page = output::markdown(records, readings, command);
        std::fs::write(file, page).map_err(|source| FidelityError::Page {
            path: file.clone(),
            source,
        })?;
    }
    Ok(if args.json {
        serde_json::to_string_pretty(records)? + "\n"
    } else {
        output::text(records, readings)
    })
}
