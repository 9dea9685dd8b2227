//! Runs `promtool tsdb dump`, Prometheus' own reader of its folders.

use super::Times;
use super::dump::{self, Labels};
use super::error::PrometheusError;
use crate::import::files::{Line, Lines};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// Maximum length of promtool's error output in a message, in characters.
const SAID_CHARACTERS: usize = 600;

/// Receiver of a dump. For each series it receives the labels, then the samples.
pub(super) trait Sink {
    fn series(&mut self, labels: &Labels<'_>);
    fn sample(&mut self, time_ms: i64, value: f64);
}

pub(super) struct Promtool {
    folder: PathBuf,
    /// Folder of links that promtool reads in place of the original, because promtool creates files in the
    /// folder that it reads.
    links: TempDir,
}

impl Promtool {
    /// # Errors
    /// [`PrometheusError::NoTsdb`]; or an error of the system.
    pub(super) fn of(folder: &Path) -> Result<Self, PrometheusError> {
        let failed = |source| PrometheusError::Io {
            folder: folder.to_owned(),
            source,
        };
        Ok(Self {
            links: links(folder)
                .map_err(failed)?
                .ok_or_else(|| PrometheusError::NoTsdb {
                    folder: folder.to_owned(),
                })?,
            folder: folder.to_owned(),
        })
    }

    /// Passes the samples of every series that matches `selector` to `sink`.
    pub(super) fn dump(
        &self,
        selector: &str,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), PrometheusError> {
        let failed = |source| PrometheusError::Io {
            folder: self.folder.clone(),
            source,
        };
        let complaints = self.links.path().join("complaints");
        let mut command = Command::new("promtool");
        command
            .args(["tsdb", "dump"])
            .arg(format!("--match={selector}"));
        if let Some(from_ms) = times.from_ms {
            command.arg(format!("--min-time={from_ms}"));
        }
        if let Some(until_ms) = times.until_ms {
            command.arg(format!("--max-time={}", until_ms - 1));
        }
        command.arg(self.links.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(File::create(&complaints).map_err(failed)?);
        let child = command.spawn();
        let mut child = Running(child.map_err(|source| PrometheusError::NoPromtool { source })?);
        if let Some(output) = child.0.stdout.take() {
            self.lines(output, times, sink)?;
        }
        if child.0.wait().map_err(failed)?.success() {
            return Ok(());
        }
        let said = fs::read(&complaints).map_err(failed)?;
        let said = String::from_utf8_lossy(&said);
        Err(PrometheusError::Promtool {
            folder: self.folder.clone(),
            said: said.trim().chars().take(SAID_CHARACTERS).collect(),
        })
    }

    fn lines(
        &self,
        output: ChildStdout,
        times: Times,
        sink: &mut impl Sink,
    ) -> Result<(), PrometheusError> {
        let mut lines = Lines::of(output);
        let mut before = String::new();
        let failed = |source| PrometheusError::Io {
            folder: self.folder.clone(),
            source,
        };
        while let Some((number, line)) = lines.next().map_err(failed)? {
            let read = match line {
                Line::Text(line) => line_of(line, &mut before, times, sink),
                Line::Unreadable(why) => Err(format!("it is {why}")),
            };
            read.map_err(|why| PrometheusError::Dump {
                folder: self.folder.clone(),
                number,
                why,
            })?;
        }
        Ok(())
    }
}

/// Passes a line of the dump to `sink`. `before` holds the labels of the previous line; most lines have the same.
fn line_of(
    line: &str,
    before: &mut String,
    times: Times,
    sink: &mut impl Sink,
) -> Result<(), String> {
    let rest = match line.strip_prefix(before.as_str()) {
        Some(rest) if !before.is_empty() => rest,
        _ => {
            let (labels, rest) = dump::split(line)?;
            sink.series(&Labels::of(labels)?);
            labels.clone_into(before);
            rest
        }
    };
    let (value, time_ms) = dump::sample(rest)?;
    if times.hold(time_ms) {
        sink.sample(time_ms, value);
    }
    Ok(())
}

/// Creates a folder whose subfolder `data` has the entries of `folder`, except for promtool's own; `None` if
/// there are no entries. promtool skips blocks that are links: each block is therefore a real folder with
/// links to its files.
fn links(folder: &Path) -> io::Result<Option<TempDir>> {
    let folder = folder.canonicalize()?;
    let links = tempfile::tempdir()?;
    let data = links.path().join("data");
    fs::create_dir(&data)?;
    let mut is_empty = true;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let (from, to) = (entry.path(), data.join(entry.file_name()));
        if ["wal", "wbl"].map(Into::into).contains(&entry.file_name()) {
            symlink(&from, &to)?;
            is_empty = false;
        } else if from.join("meta.json").is_file() {
            fs::create_dir(&to)?;
            for part in fs::read_dir(&from)? {
                let part = part?;
                symlink(part.path(), to.join(part.file_name()))?;
            }
            is_empty = false;
        }
    }
    let log = data.join("wal");
    if !log.exists() {
        fs::create_dir(log)?; // a snapshot has none
    }
    Ok((!is_empty).then_some(links))
}

/// Running promtool. It is killed on drop, when nobody reads its output any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct SinkLog(Vec<String>);

    impl Sink for SinkLog {
        fn series(&mut self, labels: &Labels<'_>) {
            self.0.push(labels.get("__name__").to_owned());
        }

        fn sample(&mut self, time_ms: i64, value: f64) {
            self.0.push(format!("{value} at {time_ms}"));
        }
    }

    #[test]
    fn a_series_is_told_once_and_times_are_kept_to() {
        let mut heard = SinkLog::default();
        let mut before = String::new();
        let times = Times {
            from_ms: Some(2),
            until_ms: Some(4),
        };
        for line in [
            "{__name__=\"a\"} 1 1",
            "{__name__=\"a\"} 2 2",
            "{__name__=\"a\"} 3 3",
            "{__name__=\"b\"} 4 4",
            "{__name__=\"b\", c=\"}\"} 5 3",
        ] {
            line_of(line, &mut before, times, &mut heard).unwrap();
        }
        assert_eq!(heard.0, ["a", "2 at 2", "3 at 3", "b", "b", "5 at 3"]);
        let wrong = line_of("{__name__=\"b\", c=\"}\"}", &mut before, times, &mut heard);
        assert!(wrong.unwrap_err().contains("no value and time"));
    }

    #[test]
    fn a_folder_is_read_through_links_and_one_without_samples_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let refused = Promtool::of(folder.path()).err().unwrap().to_string();
        assert!(
            refused.contains("neither a folder `wal` nor a block"),
            "{refused}"
        );
        let block = folder.path().join("01HX");
        for made in [
            &block,
            &block.join("chunks"),
            &folder.path().join("chunks_head"),
        ] {
            fs::create_dir(made).unwrap();
        }
        fs::write(block.join("meta.json"), "{}").unwrap();
        let promtool = Promtool::of(folder.path()).unwrap();
        let data = promtool.links.path().join("data");
        assert!(!data.join("01HX").is_symlink() && data.join("01HX/chunks").is_symlink());
        assert_eq!(
            fs::read_to_string(data.join("01HX/meta.json")).unwrap(),
            "{}"
        );
        assert!(data.join("wal").is_dir() && !data.join("chunks_head").exists());
        let gone = Promtool::of(&folder.path().join("gone")).err().unwrap();
        assert!(gone.to_string().contains("gone"), "{gone}");
    }
}
