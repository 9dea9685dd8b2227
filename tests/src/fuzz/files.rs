//! Decoders of files: of the kernel's files, Gleaner's own, and those of other programs.

use super::folder;
use clap::Parser;
use gleaner_agent::read;
use gleaner_commons::catalog::{Catalog, blocks_of};
use gleaner_dataset::Dataset;
use gleaner_schemas::rows::DATASET_TABLES;
use gleaner_simulator::models::{ProgramCurve, SHIPPED_TECHNOLOGIES, Technology, predict};
use gleaner_simulator::references;
use gleaner_simulator::streams::read::{BlockBytes, Columns, Format, open};
use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::csv::{Csv, Mapping};
use gleaner_traces::import::sysstat::Sysstat;
use gleaner_traces::import::{Importer, Readings, bitbrains, materna};
use std::fs;
use std::io;
use std::path::Path;

/// Number below `count` that the first byte selects, and the other bytes.
fn chosen(bytes: &[u8], count: u8) -> Option<(u8, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((first.wrapping_sub(b'0') % count, rest))
}

/// Opens the bytes as a catalog of the commons, and walks through the one that is accepted.
pub(super) fn catalog(bytes: &[u8]) {
    let Ok(catalog) = Catalog::of_contents(Path::new("fuzz"), bytes.to_vec()) else {
        return;
    };
    for row in 0..catalog.rows() {
        let entry = catalog.entry(row);
        assert!(entry.is_some_and(|e| e.blocks_count() == blocks_of(e.bytes)));
        let children = catalog.children(row, 0).count() as u64;
        assert!(children < catalog.rows(), "a folder is in itself");
    }
}

/// Decodes certificates, tokens and revocation lists.
pub(super) fn certificate(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = gleaner_trust::certificate::dates(text);
    let _ = gleaner_trust::certificate::serial(text);
    let _ = gleaner_trust::certificate::server_names(text);
    let _ = gleaner_trust::certificate::fingerprint(text);
    let _ = gleaner_trust::token::fingerprint(text);
    let _ = in_a_file("revoked.pem", bytes, |path| {
        let _ = gleaner_trust::revocation_dates(path);
    });
    // This authority signed only one list, which is in the corpus. Its key no longer exists, so that no input
    // can contain another valid list.
    let authority = include_str!("../../../fuzz/corpus/certificate/authority");
    let signed = gleaner_trust::count_signed_lists(text, authority);
    assert!(signed.unwrap_or(0) <= 1, "a list that nobody signed");
}

/// Reads the bytes as the configuration of two daemons.
pub(super) fn config(bytes: &[u8]) {
    let _ = in_a_file("daemon.toml", bytes, |path| {
        let path = path.display().to_string();
        let agent = ["gleaner-agent", "--config", &path, "check-config"];
        if let Ok(args) = gleaner_agent::args::Args::try_parse_from(agent) {
            let _ = gleaner_agent::config::Config::load(args.global);
        }
        let collector = ["gleaner-collector", "--config", &path, "check-config"];
        if let Ok(args) = gleaner_collector::args::Args::try_parse_from(collector) {
            let _ = gleaner_collector::config::Config::load(&args.global);
        }
    });
}

/// Reads the bytes as a dataset's file of samples, beside a manifest that lists the file.
pub(super) fn dataset_file(bytes: &[u8]) {
    let golden = crate::repository().join("dataset/golden/v5");
    let read = || -> io::Result<()> {
        let dataset = folder()?;
        fs::copy(
            golden.join("manifest.json"),
            dataset.path().join("manifest.json"),
        )?;
        for day in fs::read_dir(golden.join("samples"))? {
            let day = day?;
            let to = dataset.path().join("samples").join(day.file_name());
            fs::create_dir_all(&to)?;
            for file in fs::read_dir(day.path())? {
                fs::write(to.join(file?.file_name()), bytes)?;
            }
        }
        all_rows(dataset.path());
        Ok(())
    };
    let _ = read();
}

/// Reads the bytes as the manifest of a dataset that has no files.
pub(super) fn manifest(bytes: &[u8]) {
    let write = || -> io::Result<()> {
        let dataset = folder()?;
        fs::write(dataset.path().join("manifest.json"), bytes)?;
        all_rows(dataset.path());
        Ok(())
    };
    let _ = write();
}

fn all_rows(dataset: &Path) {
    let Ok(dataset) = Dataset::open(dataset) else {
        return;
    };
    let _ = dataset.hosts();
    let _ = dataset.verify();
    for table in DATASET_TABLES {
        let _ = dataset.scan(&table).take_while(Result::is_ok).count();
    }
}

/// Reads the bytes as a segment of the collector's journal. No byte may count both as part of an entry and as
/// lost.
pub(super) fn journal(bytes: &[u8]) {
    let (entries, lost) = gleaner_collector::journal::count_entries(bytes);
    assert!(lost <= bytes.len() && (entries == 0 || lost < bytes.len()));
}

/// Reads the bytes as a trace or stream of another program. The first byte selects the format.
pub(super) fn import(bytes: &[u8]) {
    let Some((which, rest)) = chosen(bytes, 9) else {
        return;
    };
    let name = if which == 0 { "a.json" } else { "a.csv" };
    let _ = in_a_file(name, rest, |path| match which {
        0 => readings(&mut Sysstat::new(&[path.to_owned()], None)),
        1 => readings(&mut Alibaba::new(path, None)),
        2 | 3 => {
            let folder = path.parent().unwrap_or(path);
            readings(&mut match which {
                2 => bitbrains::importer(folder, bitbrains::RND),
                _ => {
                    let [source, ..] = materna::TRACES;
                    materna::importer(folder, source)
                }
            });
        }
        4 => {
            // The input is a mapping, an empty line, and the text that the mapping describes.
            let text = String::from_utf8_lossy(rest);
            let (mapping, rows) = text.split_once("\n\n").unwrap_or((&text, ""));
            let Ok(mapping) = Mapping::parse(path, mapping) else {
                return;
            };
            if fs::write(path, rows).is_ok() {
                readings(&mut Csv::new(&mapping, &[path.to_owned()]));
            }
        }
        5 => requests(path, &Format::OracleGeneral),
        6 => requests(path, &Format::Csv(Columns::ours())),
        7 => {
            requests(path, &Format::Spc(BlockBytes::default()));
            requests(path, &Format::BlockCsv(BlockBytes::default()));
        }
        _ => requests(path, &Format::Lackey(BlockBytes::default())),
    });
}

/// Reads the bytes as a curve, a file of its recorder, or a technology. The first byte selects one.
pub(super) fn curve(bytes: &[u8]) {
    match chosen(bytes, 3) {
        Some((0, text)) => {
            let Ok(curve) = references::parse_curve(text, Path::new("a.curve")) else {
                return;
            };
            for (name, text) in SHIPPED_TECHNOLOGIES {
                let Ok(technology) = Technology::parse(name, text) else {
                    continue;
                };
                if let Ok(predicted) = predict(ProgramCurve(&curve), &technology, 1 << 20, 2) {
                    assert!(predicted.low <= predicted.slowdown);
                    assert!(predicted.slowdown <= predicted.high);
                }
            }
        }
        Some((1, records)) => {
            let read = || -> io::Result<()> {
                let folder = folder()?;
                fs::write(folder.path().join("000000000000"), records)?;
                let control = crate::repository().join("tests/data/recorder/control");
                fs::copy(control, folder.path().join("control"))?;
                let _ = references::Recording::analyse(folder.path(), 1_000_000_000, |_, _| ());
                Ok(())
            };
            let _ = read();
        }
        Some((_, text)) => {
            let _ = Technology::parse("mine", &String::from_utf8_lossy(text));
        }
        None => {}
    }
}

fn readings(importer: &mut impl Importer) {
    let Ok(listed) = importer.machines() else {
        return;
    };
    let columns = importer.source().columns.to_vec();
    for machine in listed.machines.iter().take(8) {
        let mut readings = Readings::new(&columns);
        if importer.read(machine, &mut readings).is_ok() {
            let _ = readings.repair_at(None);
        }
    }
}

fn requests(path: &Path, format: &Format) {
    if let Ok(requests) = open(path, format, 0) {
        // Only the first requests are read, since compressed bytes may contain very many.
        let _ = requests.take(1 << 16).count();
    }
}

/// Reads the bytes as a file of /proc or /sys. The first byte selects the file.
pub(super) fn proc(bytes: &[u8]) {
    let Some((which, text)) = chosen(bytes, 16) else {
        return;
    };
    match which {
        0 => {
            let _ = read::meminfo::Meminfo::parse(text);
            let _ = read::meminfo::Meminfo::parse_node(text);
            let _ = read::meminfo::mem_available_bytes(text);
        }
        1 => drop(read::vmstat::Vmstat::parse(text)),
        2 => {
            if let Some(nodes) = read::zoneinfo::Zones::by_node(text) {
                let _ = read::zoneinfo::Zones::sum(nodes.values());
            }
        }
        3 => drop(read::iomem::system_ram_bytes(text)),
        4 => drop(read::loadavg::LoadAverage::parse(text)),
        5 => drop(read::pressure::Pressure::parse(text)),
        6 => drop(read::process::Stat::parse(text)),
        7 => drop(read::process::Statm::parse(text)),
        8 => {
            let _ = read::process::Split::from_smaps_rollup(text);
            let _ = read::process::RecentUse::from_smaps_rollup(text);
            let _ = read::process::Split::from_status(text);
            let _ = read::process::Split::from_older_status(text, 1 << 30, 1 << 20);
        }
        9 => {
            let lines = text.split(|byte| *byte == b'\n');
            let ranges = lines.filter_map(read::maps::file_mapping);
            let _ = ranges.count();
        }
        10 => drop(read::mountinfo::mounts(text).count()),
        11 => drop(read::cgroup::path(text)),
        12 => drop(read::arcstats::Arc::parse(text)),
        13 => drop(read::zram::Zram::parse(text)),
        14 => drop(read::fanotify::events(text).take(1 << 16).count()),
        _ => drop(read::list::numbers(&String::from_utf8_lossy(text))),
    }
}

fn in_a_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) -> io::Result<()> {
    let folder = folder()?;
    let path = folder.path().join(name);
    fs::write(&path, bytes)?;
    read(&path);
    Ok(())
}
