//! What every importer does alike: machine by machine, from its readings into the dataset.

use super::nominal;
use super::write::Importing;
use super::{ImportError, Imported, Machine, Mended, Outcome, Progress, Readings, Source};
use std::path::Path;

/// The trace of another program: its machines, and what is said of each.
pub trait Importer {
    /// Where it comes from, and which columns it fills.
    fn source(&self) -> Source<'_>;

    /// What it reads, as messages name it: a path or an address.
    fn origin(&self) -> String;

    /// Its machines. Asked once and first; nothing is written before it has answered, so that what is hopeless
    /// is best refused here.
    ///
    /// # Errors
    /// [`ImportError`]: nothing will be imported.
    fn machines(&mut self) -> Result<Listed, ImportError>;

    /// What was found in rows of which the machine cannot be said. Asked once, after [`Importer::machines`].
    fn of_no_machine(&mut self) -> Mended {
        Mended::default()
    }

    /// The readings of one of them, in whatever order. Asked once for each, in the order in which they were
    /// listed.
    ///
    /// # Errors
    /// [`ImportError`]: the import ends here. A row that is no reading is none: [`Readings::unreadable`].
    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError>;
}

/// What a source holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Names of its machines, each once, in the order in which they are to be read.
    pub machines: Vec<String>,
    /// Names of what else lies there, and is not looked at.
    pub passed_over: Vec<String>,
    /// Parts of the source that cannot be used, each with its reason; the rest is imported.
    pub set_aside: Vec<String>,
}

/// Imports every machine of `importer` into the dataset in `dataset`, which is made where there is none. In memory
/// are one machine's readings, and what waits to be sealed. `progress` is called after each machine.
///
/// # Errors
/// [`ImportError`]. Of what fails after the machines were listed, those sealed before stay, and importing again
/// goes on.
pub fn import(
    importer: &mut impl Importer,
    dataset: &Path,
    progress: impl FnMut(&Progress<'_>),
) -> Result<Imported, ImportError> {
    import_at(importer, dataset, None, progress)
}

/// As [`import`], of machines that were recorded every `interval_ms`, where that is stated: else each machine's
/// interval is found in the steps between its samples.
///
/// # Errors
/// As [`import`].
pub fn import_at(
    importer: &mut impl Importer,
    dataset: &Path,
    interval_ms: Option<i64>,
    mut progress: impl FnMut(&Progress<'_>),
) -> Result<Imported, ImportError> {
    let listed = importer.machines()?;
    let of_no_machine = importer.of_no_machine();
    let source = importer.source();
    let mut done = Imported {
        source: source.name.to_owned(),
        available: source.available.to_owned(),
        machines: Vec::with_capacity(listed.machines.len()),
        total: of_no_machine.clone(),
        of_no_machine,
        passed_over: listed.passed_over,
        set_aside: listed.set_aside,
        new_rows_count: 0,
        known_rows_count: 0,
        contradicting_rows_count: 0,
        files_count: 0,
        files_bytes: 0,
    };
    let columns = source.columns.to_vec();
    let mut importing = Importing::into(dataset);
    for (at, machine) in listed.machines.iter().enumerate() {
        let mut readings = Readings::new(&columns);
        importer.read(machine, &mut readings)?;
        let (samples, mended) = readings.mend_at(interval_ms);
        let source = importer.source();
        let times_ms: Vec<i64> = samples.iter().map(|sample| sample.time_ms).collect();
        // Readers of the dataset find the median by themselves.
        let is_said =
            |ms: &i64| interval_ms.is_some() || nominal::median_ms(&times_ms) != Some(*ms);
        let said_ms = mended.nominal_interval_ms.filter(is_said);
        importing.add(&source, machine, &samples, said_ms, &mut done)?;
        done.total.add(&mended);
        done.machines.push(Machine {
            machine: machine.clone(),
            host_name: source.host_name(machine),
            host_id: source.host_id(machine),
            outcome: Outcome::of(&mended),
            mended,
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
