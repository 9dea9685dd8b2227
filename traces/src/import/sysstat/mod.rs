//! sysstat: recordings of `sadc` (the collector behind `sar`), as printed by `sadf -j`. Binary files are read
//! by running `sadf`.
//!
//! Names and units are taken from sysstat's `json_stats.c` and from its reader of /proc (`rd_stats.c`).

mod columns;
mod document;
mod figures;

use self::columns::COLUMNS;
use self::document::{Document, Entry, Host, Stamp, Zone};
use self::figures::UsedExclusion;
use super::tool::{Tool, failed};
use super::{Facts, ImportError, Importer, MachineList, Readings, Source, kernel};
use gleaner_schemas::column::Value;
use gleaner_schemas::units::kib_to_bytes;
use jiff::tz::TimeZone;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The source; hosts keep their own names.
pub const SOURCE: Source<'static> = Source {
    name: "sysstat",
    host_prefix: "",
    available_meaning: kernel::AVAILABLE,
    has_invented_sizes: false,
    fills: &columns::FILLS,
    columns: &columns::NAMES,
};

const SADF: Tool = Tool {
    programs: &["sadf"],
    package: "sysstat",
};
/// Arguments of `sadf` for memory, swap, huge pages and load.
const ACTIVITIES: [&str; 6] = ["--", "-r", "ALL", "-S", "-q", "-H"];
const PRINT: &str = "print it with `sadf -j FILE -- -A`";
/// First bytes of binary files (`SYSSTAT_MAGIC`), in either byte order.
const MAGIC: [[u8; 2]; 2] = [[0x96, 0xd5], [0xd5, 0x96]];
/// Maximum plausible memory size: 1 PiB.
const MEMORY_KIB: f64 = (1_u64 << 40) as f64;

/// Importer of sysstat's files, of any number of machines.
#[derive(Debug)]
pub struct Sysstat {
    inputs: Vec<PathBuf>,
    time_zone: Option<TimeZone>,
    /// Files, sorted: time of the first sample, machine, and path.
    files: Vec<(i64, String, PathBuf)>,
}

impl Sysstat {
    /// Importer of files and of folders of files. `time_zone` is used for times that have no zone, as printed
    /// by `sadf -t` and `sadf -T`.
    #[must_use]
    pub fn new(inputs: &[PathBuf], time_zone: Option<TimeZone>) -> Self {
        Self {
            inputs: inputs.to_vec(),
            time_zone,
            files: Vec::new(),
        }
    }

    /// Adds a file to the list, once for each machine in it. The file is read up to its first entry.
    fn list(&mut self, path: &Path) -> Result<(), ImportError> {
        let document = document(path, 1)?;
        let unfit = |found: &str, advice: &str| ImportError::Unfit {
            path: path.to_owned(),
            found: found.to_owned(),
            advice: advice.to_owned(),
        };
        match document.hosts.as_slice() {
            [] => {
                let found = document.cut.as_deref();
                return Err(unfit(found.unwrap_or("there is no host in it"), PRINT));
            }
            hosts if hosts.iter().any(|host| host.nodename.is_empty()) => {
                let found = document.cut.as_deref();
                return Err(unfit(found.unwrap_or("a host has no nodename"), PRINT));
            }
            _ => {}
        }
        for host in document.hosts {
            let first = host.entries.first();
            let is_local = first.is_some_and(|entry| entry.stamp.zone == Zone::Local);
            if is_local && self.time_zone.is_none() {
                return Err(unfit(
                    "its times are local, and do not say of which time zone",
                    "name that (--time-zone Europe/Paris), or print it without -t and -T: `sadf -j FILE -- -A`",
                ));
            }
            let first_ms = first.and_then(|entry| self.time_ms(&entry.stamp));
            let file = (first_ms.unwrap_or(i64::MAX), host.nodename, path.to_owned());
            self.files.push(file);
        }
        Ok(())
    }

    fn time_ms(&self, stamp: &Stamp) -> Option<i64> {
        let date_time = stamp.date_time()?;
        let time = match stamp.zone {
            Zone::Offset(offset) => offset.to_timestamp(date_time).ok()?,
            // When clocks change, a local hour is repeated or skipped; its times are ambiguous, and the
            // result is `None`.
            Zone::Local => {
                let zone = self.time_zone.as_ref()?;
                zone.to_ambiguous_timestamp(date_time).unambiguous().ok()?
            }
        };
        Some(time.as_millisecond())
    }

    /// Adds the rows of a host from the file called `name`.
    fn rows(&self, host: &Host, name: &str, readings: &mut Readings<'_>) {
        let used = UsedExclusion::of(host.entries.iter().map(|entry| &entry.figures));
        let restarts = host.restarts.iter().filter_map(|restart| {
            let time_ms = self.time_ms(&restart.stamp)?;
            Some((time_ms, restart.cpus_count))
        });
        let mut restarts: Vec<(i64, Option<i64>)> = restarts.collect();
        restarts.sort_unstable();
        for (time_ms, _) in &restarts {
            readings.note_stop(*time_ms, "boot");
        }
        readings.host_is(facts(host));
        for (at, entry) in host.entries.iter().enumerate() {
            match self.row(entry, used) {
                Ok((mut reading, values)) => {
                    let before =
                        restarts.partition_point(|(boot_ms, _)| *boot_ms <= reading.time_ms);
                    let mut counts = restarts[..before].iter().rev();
                    let counted = counts.find_map(|(_, cpus_count)| *cpus_count);
                    reading.cpus_count = counted.or(host.cpus_count).unwrap_or(0);
                    readings.push(reading, &values);
                }
                Err(why) => readings.unreadable(format_args!("{name}, entry {}", at + 1), why),
            }
        }
    }

    /// Makes the row of an entry. An error describes why the entry has none.
    fn row(
        &self,
        entry: &Entry,
        used: Option<UsedExclusion>,
    ) -> Result<(super::Reading, Vec<Option<f64>>), String> {
        if let Some(wrong) = &entry.wrong {
            return Err(wrong.clone());
        }
        let time_ms = self
            .time_ms(&entry.stamp)
            .ok_or("it has no time, or one that local clocks show twice or never")?;
        let figures = &entry.figures;
        if let Some((name, kib)) = figures.memory().find(|(_, kib)| *kib > MEMORY_KIB) {
            return Err(format!("{name} is {kib} KiB, more than any machine has"));
        }
        // The value 0 means that the kernel or sadc is too old to report available memory.
        let available = figures.get("avail").filter(|kib| *kib > 0.0);
        let available = available
            .ok_or("no memory is said to be available (before Linux 3.14 and sysstat 11.5.3)")?;
        let total = used.and_then(|used| used.mem_total_kib(figures));
        let total = total.ok_or(
            "its figures do not say how much memory there is; print it with `sadf -j FILE -- -A`",
        )?;
        if available > total {
            return Err(format!(
                "{available} KiB of {total} are said to be available"
            ));
        }
        let [total_bytes, available_bytes] = [total, available].map(bytes);
        let mut values = kernel::values(total_bytes, available_bytes).to_vec();
        values.extend(COLUMNS.iter().map(|column| column.value(figures)));
        Ok((
            kernel::reading(time_ms, total_bytes, available_bytes),
            values,
        ))
    }
}

impl Importer for Sysstat {
    fn source(&self) -> Source<'_> {
        SOURCE
    }

    fn origin(&self) -> String {
        let inputs = self.inputs.iter().map(|input| input.display().to_string());
        inputs.collect::<Vec<_>>().join(", ")
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        let mut listed = MachineList::default();
        for input in self.inputs.clone() {
            let files = if input.is_dir() {
                of_folder(&input, &mut listed.skipped_entries)?
            } else {
                vec![input]
            };
            for file in files {
                self.list(&file)?;
            }
        }
        self.files.sort();
        self.files.dedup();
        let mut machines: Vec<String> =
            self.files.iter().map(|(_, name, _)| name.clone()).collect();
        machines.sort();
        machines.dedup();
        listed.machines = machines;
        Ok(listed)
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        for (_, _, path) in self.files.iter().filter(|(_, name, _)| name == machine) {
            let document = document(path, usize::MAX)?;
            let name = path
                .file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy();
            for host in document
                .hosts
                .iter()
                .filter(|host| host.nodename == machine)
            {
                self.rows(host, &name, readings);
            }
            let is_listed = |host: &&Host| {
                let mut listed = self.files.iter();
                listed.any(|(_, name, file)| *name == host.nodename && file == path)
            };
            // The list has only the hosts up to a file's first entry. Output of sadf itself has just one host.
            for other in document.hosts.iter().filter(|host| !is_listed(host)) {
                let why = format_args!("it holds {:?} as well; a machine a file", other.nodename);
                readings.unreadable(&name, why);
            }
            if let Some(cut) = document.cut {
                readings.unreadable(name, format_args!("cut short: {cut}"));
            }
        }
        Ok(())
    }
}

/// Files of sysstat in a folder, in the order of their names. Other entries' names are appended to
/// `skipped_entries`.
fn of_folder(
    folder: &Path,
    skipped_entries: &mut Vec<String>,
) -> Result<Vec<PathBuf>, ImportError> {
    let listed = ImportError::io("list folder", folder);
    let entries = fs::read_dir(folder).map_err(listed)?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(ImportError::io("list folder", folder))?
            .path();
        let is_json = path.extension().is_some_and(|ending| ending == "json");
        if path.is_file() && (is_json || is_binary(&path)?) {
            files.push(path);
        } else {
            let name = path.file_name().unwrap_or(path.as_os_str());
            skipped_entries.push(name.to_string_lossy().into_owned());
        }
    }
    files.sort();
    skipped_entries.sort();
    if files.is_empty() {
        return Err(ImportError::Unfit {
            path: folder.to_owned(),
            found: "there is no file of sysstat's in it".to_owned(),
            advice: "name files or a folder of what `sadf -j` printed (.json) or sadc wrote (sa21)"
                .to_owned(),
        });
    }
    Ok(files)
}

fn is_binary(path: &Path) -> Result<bool, ImportError> {
    let found = fs::metadata(path).map_err(ImportError::io("open", path))?;
    if !found.is_file() {
        return Err(ImportError::Unfit {
            path: path.to_owned(),
            found: "it is no file".to_owned(),
            advice: "what sadf prints is read twice: put it into a file first".to_owned(),
        });
    }
    let mut file = File::open(path).map_err(ImportError::io("open", path))?;
    let mut start = [0; 2];
    match file.read_exact(&mut start) {
        Ok(()) => Ok(MAGIC.contains(&start)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(ImportError::io("read", path)(error)),
    }
}

/// Reads the document of a file, with at most `most` entries.
fn document(path: &Path, most: usize) -> Result<Document, ImportError> {
    if !is_binary(path)? {
        let file = File::open(path).map_err(ImportError::io("open", path))?;
        return Ok(document::read(std::io::BufReader::new(file), most));
    }
    let mut running = SADF.run(&["-j"], path, &ACTIVITIES)?;
    let mut document = document::read(std::io::BufReader::new(&mut running), most);
    if document.is_enough {
        return Ok(document); // the tool need not print the rest
    }
    match running.end(None) {
        Some(said) if document.hosts.iter().all(|host| host.entries.is_empty()) => {
            Err(failed(path, said))
        }
        said => {
            document.cut = said.or(document.cut);
            Ok(document)
        }
    }
}

/// Facts about the machine that the document states outside the samples.
fn facts(host: &Host) -> Facts {
    let text = |name, text: &Option<String>| Some((name, Value::Text(text.clone()?)));
    let said = [
        text("kernel_release", &host.kernel_release),
        text("architecture", &host.architecture),
    ];
    said.into_iter()
        .flatten()
        .chain([kernel::headroom()])
        .collect()
}

/// Converts whole KiB to bytes; the result is less than 2⁵³.
fn bytes(kib: f64) -> i64 {
    kib as i64 * kib_to_bytes(1) as i64
}
