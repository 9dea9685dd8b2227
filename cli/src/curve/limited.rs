//! Runs programs with little local memory, by `gleaner-clerk run`, which is installed beside this program.

use anyhow::{Context, bail};
use gleaner_schemas::units::Bytes;
use serde::Deserialize;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Least local memory that `gleaner-clerk run` accepts.
pub(super) const LEAST_LOCAL_BYTES: u64 = 4 << 20;

/// Report of `gleaner-clerk run --json`: the keys that are used here. Values that the kernel does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct LimitedRun {
    /// Exit code; 128 and the signal's number if a signal ended the program.
    pub(super) exit_code: u8,
    /// Time from the program's start to its end.
    pub(super) wall_s: f64,
    /// CPU time of the program and of the children that it waited for.
    pub(super) cpu_s: Option<f64>,
    /// Page faults that waited for a device.
    pub(super) major_faults: Option<u64>,
    /// Pages that the whole host read from swap.
    pub(super) host_pages_swapped_in: Option<u64>,
    /// Pages that the whole host wrote to swap.
    pub(super) host_pages_swapped_out: Option<u64>,
    /// Processes that the kernel killed for lack of memory.
    pub(super) oom_kills: Option<u64>,
    /// True if memory and swap were full.
    pub(super) is_swap_full: bool,
}

/// The program `gleaner-clerk`.
#[derive(Clone, Debug)]
pub(super) struct ClerkProgram(PathBuf);

impl ClerkProgram {
    /// Finds the program.
    ///
    /// # Errors
    /// It is not installed.
    pub(super) fn find() -> anyhow::Result<Self> {
        let path = beside("gleaner-clerk")?;
        if !path.exists() {
            bail!(
                "{} is missing: install Gleaner's package gleaner-clerk, or build it into this folder",
                path.display()
            );
        }
        Ok(Self(path))
    }

    /// Command that runs a program with this much local memory. With `report`, it writes its JSON there.
    pub(super) fn command(
        &self,
        local_bytes: u64,
        report: Option<&Path>,
        program: &[OsString],
    ) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["run", "--by", "swap", "--local"]);
        command.arg(format!("{local_bytes}B"));
        if let Some(report) = report {
            command.arg("--json").arg(report);
        }
        command.arg("--").args(program);
        command
    }
}

impl LimitedRun {
    /// Reads the report of a run that has ended.
    ///
    /// # Errors
    /// There is none, since `gleaner-clerk` could not run the program; its message is on standard error.
    pub(super) fn read(report: &Path, local_bytes: u64) -> anyhow::Result<Self> {
        let text = fs::read_to_string(report).with_context(|| {
            let local = Bytes::from(local_bytes);
            format!(
                "gleaner-clerk did not run the program with {local} (its message is above): no report"
            )
        })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        serde_json::from_str(text).context("gleaner-clerk's report is of another version")
    }

    /// Returns true if the kernel killed the program although swap had room.
    pub(super) fn is_killed(&self) -> bool {
        self.oom_kills.is_some_and(|kills| kills > 0) && !self.is_swap_full
    }
}

/// Path of a program in the folder of the running one, where all of Gleaner's programs are.
pub(super) fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's folder")?;
    Ok(own.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_the_clerk_is_read() {
        let text = r#"{"program": "sort", "exit_code": 0, "local_bytes": 62914560, "wall_s": 3.4, "cpu_s": 1.5,
            "peak_local_bytes": 62914560, "peak_swap_bytes": 41943040, "major_faults": 17464,
            "host_pages_swapped_in": 18000, "host_pages_swapped_out": 22000, "oom_wait_s": 0.01, "limit_raises": 3,
            "oom_kills": 0, "is_swap_full": false}"#;
        let run = LimitedRun::parse(text).unwrap();
        let expected = LimitedRun {
            exit_code: 0,
            wall_s: 3.4,
            cpu_s: Some(1.5),
            major_faults: Some(17_464),
            host_pages_swapped_in: Some(18_000),
            host_pages_swapped_out: Some(22_000),
            oom_kills: Some(0),
            is_swap_full: false,
        };
        assert_eq!(run, expected);
        assert!(!run.is_killed());
        let killed = text.replace(r#""oom_kills": 0"#, r#""oom_kills": 1"#);
        assert!(LimitedRun::parse(&killed).unwrap().is_killed());
        let absent = text.replace("17464", "null");
        assert_eq!(LimitedRun::parse(&absent).unwrap().major_faults, None);
        assert!(LimitedRun::parse("{}").is_err());
    }

    #[test]
    fn a_missing_report_names_the_clerk() {
        let error = LimitedRun::read(Path::new("/missing/report"), 60 << 20).unwrap_err();
        let said = format!("{error:#}");
        assert!(
            said.contains("gleaner-clerk did not run the program with 60.0 MiB"),
            "{said}"
        );
    }

    #[test]
    fn a_command_limits_the_program() {
        let program = ["sort", "big"].map(OsString::from);
        let command = ClerkProgram("/bin/gleaner-clerk".into()).command(8 << 20, None, &program);
        let words: Vec<_> = command.get_args().collect();
        let expected = [
            "run", "--by", "swap", "--local", "8388608B", "--", "sort", "big",
        ];
        assert_eq!(words, expected);
    }
}
