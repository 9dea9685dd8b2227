//! Performance Co-Pilot: archives of `pmlogger`, read by PCP's own `pmlogdump` (`pmdumplog` before PCP 7).
//!
//! Names and units of metrics are taken from the archive, which describes its metrics, and from the help text
//! of PCP's Linux agent.

mod archive;
mod dump;
mod metrics;

use self::archive::{Archive, ArchiveItem, Inventory};
use self::metrics::{AVAILABLE, COLUMNS, FACTS, NEEDED};
use super::files::{Line, Lines};
use super::tool::{Tool, failed};
use super::{ImportError, Importer, MachineList, Readings, Source, kernel};
use std::fs;
use std::path::{Path, PathBuf};

/// The source; hosts keep their own names.
pub const SOURCE: Source<'static> = Source {
    name: "PCP",
    host_prefix: "",
    available_meaning: kernel::AVAILABLE,
    has_invented_sizes: false,
    fills: &metrics::FILLS,
    columns: &metrics::NAMES,
};

const PMLOGDUMP: Tool = Tool {
    programs: &["pmlogdump", "pmdumplog"],
    package: "pcp",
};
/// Options of the tool: print the label, descriptions, values and marks; with full dates; in UTC.
const OPTIONS: [&str; 3] = ["-ldmMx", "-Z", "UTC"];
/// Part of the tool's message about a metric that the archive lacks. This is no error.
const LACKS: &str = "Unknown metric name";

/// Importer of PCP archives, of any number of machines.
#[derive(Debug)]
pub struct Pcp {
    inputs: Vec<PathBuf>,
    archives: Vec<OpenedArchive>,
}

/// An archive of which only the beginning has been read.
#[derive(Debug)]
struct OpenedArchive {
    host: String,
    first_ms: Option<i64>,
    path: PathBuf,
    inventory: Inventory,
}

impl Pcp {
    /// Importer of archives and of folders of archives. An archive is given by its common name or by any of its files.
    #[must_use]
    pub fn new(inputs: &[PathBuf]) -> Self {
        Self {
            inputs: inputs.to_vec(),
            archives: Vec::new(),
        }
    }
}

impl Importer for Pcp {
    fn source(&self) -> Source<'_> {
        SOURCE
    }

    fn origin(&self) -> String {
        let inputs = self.inputs.iter().map(|input| input.display().to_string());
        inputs.collect::<Vec<_>>().join(", ")
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        let (mut listed, mut unusable) = (MachineList::default(), Vec::new());
        for input in &self.inputs {
            let paths = if input.is_dir() {
                of_folder(input, &mut listed.skipped_entries)?
            } else {
                // A name like `20261121.00.10` may be a common name, or volume 10 of `20261121.00`.
                let file = base(input).filter(|_| input.is_file());
                vec![file.unwrap_or_else(|| input.clone())]
            };
            for path in paths {
                match known(path) {
                    Ok(known) => self.archives.push(known),
                    // A faulty archive does not affect the others.
                    Err(error @ (ImportError::Tool { .. } | ImportError::Unfit { .. })) => {
                        unusable.push(error);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        listed.unusable_parts = unusable.iter().map(ToString::to_string).collect();
        if self.archives.is_empty()
            && let Some(error) = unusable.into_iter().next()
        {
            return Err(error);
        }
        self.archives.sort_by(|a, b| {
            let key =
                |known: &OpenedArchive| (known.host.clone(), known.first_ms, known.path.clone());
            key(a).cmp(&key(b))
        });
        self.archives.dedup_by(|a, b| a.path == b.path);
        listed.machines = self
            .archives
            .iter()
            .map(|known| known.host.clone())
            .collect();
        listed.machines.dedup();
        Ok(listed)
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        for known in self.archives.iter().filter(|known| known.host == machine) {
            let name = known
                .path
                .file_name()
                .unwrap_or(known.path.as_os_str())
                .to_string_lossy();
            let (mut samples, mut facts_now) = (0_u64, None);
            let take = |said: ArchiveItem, _: &Archive| {
                match said {
                    ArchiveItem::Sample {
                        reading,
                        values,
                        facts,
                    } => {
                        if facts_now.as_ref() != Some(&facts) {
                            readings.host_is(facts.clone());
                            facts_now = Some(facts);
                        }
                        readings.push(reading, &values);
                        samples += 1;
                    }
                    ArchiveItem::Unreadable { time_ms, why } => {
                        let time = jiff::Timestamp::from_millisecond(time_ms);
                        let time =
                            time.map_or_else(|_| time_ms.to_string(), |time| time.to_string());
                        readings.unreadable(format_args!("{name} at {time}"), why);
                        samples += 1;
                    }
                    ArchiveItem::Mark { time_ms } => readings.note_stop(time_ms, "stopped"),
                }
                true
            };
            let (_, failed) = read(&known.path, known.inventory.clone(), take)?;
            match failed {
                Some(said) => readings.unreadable(name, format_args!("cut short: {said}")),
                None if samples == 0 => readings.unreadable(
                    name,
                    format_args!("{AVAILABLE} is not in it; have pmlogger record it"),
                ),
                None => {}
            }
        }
        Ok(())
    }
}

/// Reads an archive until its end, or until `take` returns false. Returns the tool's error output if it
/// failed.
fn read(
    path: &Path,
    inventory: Inventory,
    mut take: impl FnMut(ArchiveItem, &Archive) -> bool,
) -> Result<(Archive, Option<String>), ImportError> {
    let names = NEEDED.iter().map(|(name, _)| *name);
    let names = names.chain(FACTS.iter().map(|(_, name)| *name));
    let columns = COLUMNS.iter().flat_map(|column| column.metrics);
    let names: Vec<&str> = names.chain(columns.map(|metric| metric.name)).collect();
    let mut running = PMLOGDUMP.run(&OPTIONS, path, &names)?;

    let mut archive = Archive::new(inventory);
    let mut said = Vec::new();
    let mut lines = Lines::of(&mut running);
    while let Some((_, line)) = lines.next().map_err(ImportError::io("read", path))? {
        if let Line::Text(text) = line {
            archive.take(dump::line(text), &mut said);
        }
        for said in said.drain(..) {
            if !take(said, &archive) {
                return Ok((archive, None));
            }
        }
    }
    archive.ends(&mut said);
    for said in said {
        take(said, &archive);
    }
    Ok((archive, running.end(Some(LACKS))))
}

/// Reads the beginning of an archive, until the machine's memory size is known.
fn known(path: PathBuf) -> Result<OpenedArchive, ImportError> {
    let (archive, said) = read(&path, Inventory::default(), |_, archive| {
        !archive.has_memory()
    })?;
    match (archive.host, archive.foreign_unit) {
        (None, _) => {
            let nothing = || "there is no host in it".to_owned();
            Err(failed(&path, said.unwrap_or_else(nothing)))
        }
        (_, Some(found)) => Err(ImportError::Unfit {
            path,
            found,
            advice: "that is no unit of its kind: is it an archive of a Linux host?".to_owned(),
        }),
        (Some(host), None) => Ok(OpenedArchive {
            host,
            first_ms: archive.first_ms,
            path,
            inventory: archive.inventory,
        }),
    }
}

/// Archives in a folder, in the order of their names. Other entries' names are appended to `skipped_entries`.
fn of_folder(
    folder: &Path,
    skipped_entries: &mut Vec<String>,
) -> Result<Vec<PathBuf>, ImportError> {
    let listed = ImportError::io("list folder", folder);
    let (mut archives, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(listed)? {
        let path = entry
            .map_err(ImportError::io("list folder", folder))?
            .path();
        match base(&path) {
            Some(base) if path.is_file() => archives.push(base),
            _ => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                others.push(name.to_string_lossy().into_owned());
            }
        }
    }
    archives.sort();
    archives.dedup();
    others.sort();
    skipped_entries.extend(others);
    if archives.is_empty() {
        return Err(ImportError::Unfit {
            path: folder.to_owned(),
            found: "there is no archive in it".to_owned(),
            advice: "name archives, or the folder in which pmlogger keeps those of a host"
                .to_owned(),
        });
    }
    Ok(archives)
}

/// Common name of an archive, from one of its files: `20261121` for `20261121.meta`, `20261121.index` and
/// `20261121.0.xz`.
fn base(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let plain = ["xz", "lzma", "bz2", "gz", "zst"]
        .iter()
        .find_map(|packed| name.strip_suffix(packed)?.strip_suffix('.'))
        .unwrap_or(name);
    let (base, ending) = plain.rsplit_once('.')?;
    let is_volume = !ending.is_empty() && ending.bytes().all(|b| b.is_ascii_digit());
    let is_one = is_volume || matches!(ending, "meta" | "index");
    (is_one && !base.is_empty()).then(|| file.with_file_name(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_archive_have_one_name() {
        for (file, expected) in [
            ("a/20261121.00.10.meta", Some("a/20261121.00.10")),
            ("a/20261121.00.10.0.xz", Some("a/20261121.00.10")),
            ("a/20261121.index", Some("a/20261121")),
            ("a/pmlogger.log", None),
            ("a/Latest", None),
            (".meta", None),
        ] {
            assert_eq!(base(Path::new(file)), expected.map(PathBuf::from), "{file}");
        }
    }
}
