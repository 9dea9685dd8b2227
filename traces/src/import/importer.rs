//! The common part of all importers: turns each machine's readings into rows of the dataset.

use super::nominal;
use super::write::ImportWriter;
use super::{ImportError, ImportSummary, Machine, Outcome, Progress, Readings, Repairs, Source};
use std::path::Path;

/// A trace of another program: its machines and their readings.
pub trait Importer {
    /// Source of the trace, and the columns that it fills.
    fn source(&self) -> Source<'_>;

    /// Path or address of the trace, for messages.
    fn origin(&self) -> String;

    /// Lists the machines. Called once, before all other methods; nothing is written before it returns, so
    /// that unusable input is best rejected here.
    ///
    /// # Errors
    /// [`ImportError`]: nothing will be imported.
    fn machines(&mut self) -> Result<MachineList, ImportError>;

    /// Counts of the rows whose machine is unknown. Called once, after [`Importer::machines`].
    fn without_machine(&mut self) -> Repairs {
        Repairs::default()
    }

    /// Reads one machine's rows, in any order. Called once for each machine, in the order of the list.
    ///
    /// # Errors
    /// [`ImportError`] ends the import. A malformed row is no error, but counted with
    /// [`Readings::unreadable`].
    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError>;
}

/// The machines of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineList {
    /// Names of the machines, each once, in reading order.
    pub machines: Vec<String>,
    /// Names of other entries, which are skipped.
    pub skipped_entries: Vec<String>,
    /// Parts of the source that cannot be used, each with its reason; the rest is imported.
    pub unusable_parts: Vec<String>,
}

/// Imports every machine of `importer` into the folder `dataset`, which is created if necessary. One
/// machine's readings, and the rows that are not sealed yet, are in memory. `progress` is called after each
/// machine.
///
/// # Errors
/// [`ImportError`]. After an error while machines are read, the machines that are already sealed stay in the
/// dataset; importing again adds the others.
pub fn import(
    importer: &mut impl Importer,
    dataset: &Path,
    progress: impl FnMut(&Progress<'_>),
) -> Result<ImportSummary, ImportError> {
    import_at(importer, dataset, None, progress)
}

/// Does the same as [`import`], with a given recording interval. `None`: each machine's interval is
/// determined from the steps between its samples.
///
/// # Errors
/// Those of [`import`].
pub fn import_at(
    importer: &mut impl Importer,
    dataset: &Path,
    interval_ms: Option<i64>,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<ImportSummary, ImportError> {
    let listed = importer.machines()?;
    let without_machine = importer.without_machine();
    let source = importer.source();
    let mut done = ImportSummary {
        source: source.name.to_owned(),
        available_meaning: source.available_meaning.to_owned(),
        machines: Vec::with_capacity(listed.machines.len()),
        total: without_machine.clone(),
        without_machine,
        skipped_entries: listed.skipped_entries,
        unusable_parts: listed.unusable_parts,
        new_rows_count: 0,
        existing_rows_count: 0,
        contradicting_rows_count: 0,
        files_count: 0,
        files_bytes: 0,
    };
    let columns = source.columns.to_vec();
    let mut importing = ImportWriter::into(dataset);
    for (at, machine) in listed.machines.iter().enumerate() {
        let mut readings = Readings::new(&columns);
        importer.read(machine, &mut readings)?;
        let (samples, repairs) = readings.repair_at(interval_ms);
        let source = importer.source();
        let times_ms: Vec<i64> = samples.iter().map(|sample| sample.time_ms).collect();
        // The median step is not recorded: readers of the dataset compute it themselves.
        let is_said =
            |ms: &i64| interval_ms.is_some() || nominal::median_ms(&times_ms) != Some(*ms);
        let said_ms = repairs.nominal_interval_ms.filter(is_said);
        importing.add(&source, machine, &samples, said_ms, &mut done)?;
        done.total.add(&repairs);
        done.machines.push(Machine {
            machine: machine.clone(),
            host_name: source.host_name(machine),
            host_id: source.host_id(machine),
            outcome: Outcome::of(&repairs),
            repairs,
        });
        progress(&Progress {
            machines: at + 1,
            machines_in_all: listed.machines.len(),
            machine,
        });
    }
    importing.finish(&importer.source(), &mut done)?;
    if done.total.samples_count > 0 {
        return Ok(done);
    }
    let first = done.machines.first();
    Err(ImportError::NoSamples {
        origin: importer.origin(),
        machines: done.machines.len(),
        first: first.map_or_else(String::new, |m| {
            format!("; of {}: {}", m.machine, m.reason())
        }),
    })
}
