//! The paper's workloads, and the recordings of ours.

use crate::error::{FidelityError, Result};
use gleaner_schemas::curve::Curve;
use gleaner_schemas::units::Bytes;
use gleaner_simulator::references::read_curve;
use std::path::{Path, PathBuf};

/// Second-level cache of the paper's machine, and the larger one of Table 2.
const CACHE_BYTES: u64 = 1 << 20;
const LARGER_CACHE_BYTES: u64 = 4 << 20;

/// Workload of the paper, of one or several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Workload {
    Pmake,
    Vcs,
    /// VCS with one process, of Figure 6.
    OneVcs,
    Splash,
    Db,
    Simos,
    Delay,
}

impl Workload {
    pub(super) const ALL: [Self; 7] = [
        Self::Pmake,
        Self::Vcs,
        Self::OneVcs,
        Self::Splash,
        Self::Db,
        Self::Simos,
        Self::Delay,
    ];
    /// Workloads of the paper's tables.
    pub(super) const PRINTED: [Self; 6] = [
        Self::Pmake,
        Self::Vcs,
        Self::Splash,
        Self::Db,
        Self::Simos,
        Self::Delay,
    ];

    /// Name in the paper.
    pub(super) const fn row(self) -> &'static str {
        match self {
            Self::Pmake => "PMAKE",
            Self::Vcs => "VCS",
            Self::OneVcs => "one VCS",
            Self::Splash => "SPLASH",
            Self::Db => "DB",
            Self::Simos => "SIMOS",
            Self::Delay => "DELAY",
        }
    }

    /// First part of the recordings' names.
    const fn file(self) -> &'static str {
        match self {
            Self::Pmake => "pmake",
            Self::Vcs => "vcs",
            Self::OneVcs => "vcs-one",
            Self::Splash => "splash",
            Self::Db => "db",
            Self::Simos => "simos",
            Self::Delay => "delay",
        }
    }

    /// Least number of processes.
    const fn least_processes(self) -> usize {
        match self {
            Self::Pmake | Self::Vcs | Self::Splash => 2,
            _ => 1,
        }
    }

    /// Processes that run at the same time: for PMAKE, two makes of two compilers each.
    pub(super) const fn at_once(self) -> usize {
        match self {
            Self::Pmake => 4,
            Self::Vcs | Self::Splash => 2,
            _ => 1,
        }
    }
}

/// Recordings of a workload.
#[derive(Debug)]
pub(super) struct Recordings {
    pub(super) workload: Workload,
    /// Processes in the order in which they begin.
    pub(super) processes: Vec<Process>,
}

/// Recordings of a process.
#[derive(Debug)]
pub(super) struct Process {
    /// Curve of the misses of the paper's cache.
    pub(super) misses: Curve,
    /// Curve of the misses of the larger cache.
    pub(super) larger: Curve,
    /// File with the order of page references of the misses; only for workloads of several processes.
    pub(super) order: PathBuf,
}

/// Reads the recordings of all workloads in a folder.
///
/// # Errors
/// A recording that is missing, cut or of something else, by path.
pub(super) fn read(folder: &Path) -> Result<Vec<Recordings>> {
    let unreadable = |error: std::io::Error| FidelityError::Recording {
        path: folder.to_owned(),
        fault: format!("the folder cannot be read ({error})"),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    let of = |workload: Workload| -> Result<Recordings> {
        let numbers = names.iter().filter_map(|name| number(workload, name));
        let last = numbers.fold(workload.least_processes(), usize::max);
        let mut processes = Vec::new();
        for number in 1..=last {
            processes.push(process(folder, workload, number, last > 1)?);
        }
        Ok(Recordings {
            workload,
            processes,
        })
    };
    Workload::ALL.into_iter().map(of).collect()
}

/// Number of the process whose curve of misses has this name.
fn number(workload: Workload, name: &str) -> Option<usize> {
    let rest = name.strip_prefix(workload.file())?.strip_prefix('.')?;
    rest.strip_suffix(".misses.curve")?.parse().ok()
}

fn process(folder: &Path, workload: Workload, number: usize, is_shared: bool) -> Result<Process> {
    let path = |what: &str| folder.join(format!("{}.{number}.{what}", workload.file()));
    let order = path("misses.order");
    let process = Process {
        misses: curve(&path("misses.curve"), CACHE_BYTES)?,
        larger: curve(&path("misses-4MiB.curve"), LARGER_CACHE_BYTES)?,
        order,
    };
    if is_shared && !process.order.is_file() {
        return Err(missing(&process.order));
    }
    Ok(process)
}

fn missing(path: &Path) -> FidelityError {
    FidelityError::Recording {
        path: path.to_owned(),
        fault: "there is no such recording".to_owned(),
    }
}

/// Reads the curve of the misses of a cache of this size.
fn curve(path: &Path, cache_bytes: u64) -> Result<Curve> {
    if !path.is_file() {
        return Err(missing(path));
    }
    let curve = read_curve(path)?;
    let misses = curve.first_touch.last();
    let fault = if let Some(cut) = &curve.cut {
        Some(format!("the recording is cut: {cut}"))
    } else if curve.misses_of_bytes != Some(cache_bytes) {
        let cache = Bytes::from(cache_bytes);
        Some(format!(
            "this is no curve of the misses of a cache of {cache}"
        ))
    } else if curve.instructions_count.is_none_or(|count| count == 0)
        || misses.is_none_or(|point| point.references_count == 0)
    {
        Some("the curve has no instructions or no misses".to_owned())
    } else {
        None
    };
    match fault {
        Some(fault) => Err(FidelityError::Recording {
            path: path.to_owned(),
            fault,
        }),
        None => Ok(curve),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_are_read_from_names() {
        let of_vcs = |name| number(Workload::Vcs, name);
        assert_eq!(of_vcs("vcs.12.misses.curve"), Some(12));
        for other in [
            "vcs-one.1.misses.curve",
            "vcs.1.misses-4MiB.curve",
            "vcs.1.references.curve",
            "vcs.misses.curve",
            "vcs.x.misses.curve",
            "pmake.1.misses.curve",
        ] {
            assert_eq!(of_vcs(other), None, "{other}");
        }
        assert_eq!(number(Workload::OneVcs, "vcs-one.1.misses.curve"), Some(1));
    }

    #[test]
    fn missing_and_other_recordings_are_refused_by_path() {
        let folder = tempfile::tempdir().unwrap();
        let refused = || read(folder.path()).unwrap_err().to_string();
        let first = folder.path().join("pmake.1.misses.curve");
        let expected = format!(
            "{}: there is no such recording; run bench/simulated/record",
            first.display()
        );
        assert!(refused().starts_with(&expected), "{}", refused());
        std::fs::write(&first, "{\"curve_version\":1,").unwrap();
        assert!(refused().contains("pmake.1.misses.curve: this is no curve"));
        let of = |cut: Option<&str>, bytes| Curve {
            curve_version: gleaner_schemas::curve::CURVE_VERSION,
            page_bytes: 4096,
            sampled_share: 1.0,
            faults: vec![gleaner_schemas::curve::FaultPoint::default()],
            misses_of_bytes: bytes,
            cut: cut.map(str::to_owned),
            ..Curve::default()
        };
        for (curve, found) in [
            (of(Some("it was killed"), None), "is cut: it was killed"),
            (of(None, Some(4 << 20)), "misses of a cache of 1"),
            (of(None, Some(1 << 20)), "no instructions or no misses"),
        ] {
            std::fs::write(&first, serde_json::to_vec(&curve).unwrap()).unwrap();
            let refused = refused();
            assert!(refused.contains("pmake.1.misses.curve: "), "{refused}");
            assert!(refused.contains(found), "{refused}");
        }
        let nowhere = read(Path::new("/missing")).unwrap_err().to_string();
        assert!(
            nowhere.starts_with("/missing: the folder cannot be read"),
            "{nowhere}"
        );
    }
}
