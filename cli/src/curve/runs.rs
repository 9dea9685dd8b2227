//! Runs of a user's program without a limit, and with little local memory, for `measure` and `calibrate`.

use super::args::Local;
use super::limited::{ClerkProgram, LEAST_LOCAL_BYTES, LimitedRun};
use super::native::{self, RunUsage, interrupted};
use super::shown::local_bytes;
use anyhow::{Context, bail};
use gleaner_schemas::curve::{Curve, NativeRun};
use gleaner_schemas::units::Bytes;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most runs of one size that the kernel may kill.
const MOST_KILLED: u64 = 10;

/// A user's program, and the means to run it.
pub(super) struct ProgramRuns<'a> {
    /// Name of the program, without folders.
    pub(super) name: String,
    /// The program and its arguments.
    words: &'a [OsString],
    clerk: ClerkProgram,
    /// Flag that Ctrl-C sets: the run then ends.
    interrupted: Arc<AtomicBool>,
}

impl<'a> ProgramRuns<'a> {
    /// Prepares the runs. A curve of another program gets a warning.
    ///
    /// # Errors
    /// `gleaner-clerk` is not installed.
    pub(super) fn new(words: &'a [OsString], curve: Option<&Curve>) -> anyhow::Result<Self> {
        let runs = Self {
            name: name(words),
            words,
            clerk: ClerkProgram::find()?,
            interrupted: interrupted()?,
        };
        if let Some(curve) = curve.filter(|curve| curve.program != runs.name) {
            eprintln!(
                "gleaner: the curve is of {}, the program is {}",
                curve.program, runs.name
            );
        }
        Ok(runs)
    }

    /// Run of median duration among `count` runs without a limit; of an even number, the shorter one in the middle. The
    /// first run may read its files from the disk.
    ///
    /// # Errors
    /// The program cannot be started, or fails.
    pub(super) fn native(&self, count: u32) -> anyhow::Result<NativeRun> {
        let runs = (0..count).map(|_| self.native_run());
        let mut runs = runs.collect::<anyhow::Result<Vec<NativeRun>>>()?;
        runs.sort_by(|one, other| one.wall_s.total_cmp(&other.wall_s));
        let median = runs.get(runs.len().saturating_sub(1) / 2).copied();
        median.context("the program had no run without a limit")
    }

    fn native_run(&self) -> anyhow::Result<NativeRun> {
        let (path, arguments) = self.words.split_first().context("the program is missing")?;
        let ended = self.quiet_run(Command::new(path).args(arguments))?;
        if !ended.status.success() {
            bail!("without a limit, the program ended with {}", ended.status);
        }
        Ok(NativeRun {
            wall_s: ended.wall_s,
            cpu_s: ended.cpu_s,
            peak_bytes: ended.peak_bytes,
            major_faults_count: ended.major_faults,
        })
    }

    /// This number of runs that ended by themselves, and the number of those that the kernel killed.
    ///
    /// # Errors
    /// The program fails, or the kernel kills it too often.
    pub(super) fn limited(
        &self,
        local_bytes: u64,
        count: u32,
    ) -> anyhow::Result<(Vec<LimitedRun>, u64)> {
        let folder = tempfile::tempdir().context("cannot make a folder for reports")?;
        let local = Bytes::from(local_bytes);
        let (mut runs, mut killed) = (Vec::new(), 0);
        while (runs.len() as u64) < u64::from(count) {
            let report = folder.path().join(format!("{}-{killed}.json", runs.len()));
            let mut command = self.clerk.command(local_bytes, Some(&report), self.words);
            self.quiet_run(&mut command)?;
            let run = LimitedRun::read(&report, local_bytes)?;
            if run.is_killed() {
                killed += 1;
                if killed > MOST_KILLED {
                    bail!(
                        "with {local} the kernel killed the program {killed} times: take more --local"
                    );
                }
            } else if run.exit_code == 0 {
                runs.push(run);
            } else if run.is_swap_full {
                bail!("with {local} the program ended since swap was full: attach more swap");
            } else {
                bail!(
                    "with {local} the program ended with exit code {}",
                    run.exit_code
                );
            }
        }
        Ok((runs, killed))
    }

    /// Runs a command without input and output; errors of the program are shown.
    fn quiet_run(&self, command: &mut Command) -> anyhow::Result<RunUsage> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let ended = native::run(command, &self.interrupted, |_| ())?;
        if self.interrupted.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(ended)
    }
}

/// Bytes of local memory for a program.
///
/// # Errors
/// A share without a curve, whose footprint it is a share of; or too little memory.
pub(super) fn limit_bytes(local: Local, curve: Option<&Curve>) -> anyhow::Result<u64> {
    let local_bytes = match (local, curve) {
        (_, Some(curve)) => local_bytes(local, curve),
        (Local::Bytes(bytes), None) => bytes,
        (Local::Share(share), None) => {
            let percent = (share * 1e4).round() / 1e2;
            bail!("--local is {percent}% of the footprint: give the program's --curve, or a size")
        }
    };
    if local_bytes < LEAST_LOCAL_BYTES {
        let (local, least) = (Bytes::from(local_bytes), Bytes::from(LEAST_LOCAL_BYTES));
        bail!("--local is {local}, in which no program can start: take at least {least}");
    }
    Ok(local_bytes)
}

fn name(words: &[OsString]) -> String {
    let path = words.first().map(Path::new);
    let name = path.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_curve_for_shares_and_4_mib() {
        let refused = |local, curve| limit_bytes(local, curve).unwrap_err().to_string();
        assert_eq!(
            refused(Local::Share(0.07), None),
            "--local is 7% of the footprint: give the program's --curve, or a size"
        );
        assert!(refused(Local::Bytes(1 << 20), None).contains("at least 4.0 MiB"));
        let curve = Curve {
            page_bytes: 4096,
            footprint_pages: 4096,
            ..Curve::default()
        };
        assert!(refused(Local::Share(0.1), Some(&curve)).contains("at least 4.0 MiB"));
        assert_eq!(
            limit_bytes(Local::Share(0.5), Some(&curve)).unwrap(),
            8 << 20
        );
    }

    #[test]
    fn names_have_no_folders() {
        assert_eq!(name(&["/usr/bin/sort", "big"].map(OsString::from)), "sort");
        assert_eq!(name(&[]), "");
    }
}
