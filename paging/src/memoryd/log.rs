//! The lending log: one JSON object per line for each reclaim.

use gleaner_schemas::lending::ReclaimRecord;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "lending.jsonl";
/// Name to which a log file is renamed once it is too large.
const BEFORE: &str = "lending.jsonl.1";
/// Size limit of one log file; there are at most two.
const MOST_BYTES: u64 = 1 << 20;
/// Number of lines shown to the owner.
const REMEMBERED: usize = 200;
/// Maximum number of clients in a line; a recruiter may invent any number.
pub(crate) const MOST_CLIENTS: usize = 32;
/// Maximum time between two steps of one cause that share a line.
const SAME_LINE_MS: i64 = 5000;
/// Maximum time between the first and the last step that share a line.
const LONGEST_LINE_MS: i64 = 600_000;

/// The log file, with its latest lines in memory.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    before: PathBuf,
    most_bytes: u64,
    /// Open file; `None` before the first write.
    file: Option<File>,
    remembered: VecDeque<ReclaimRecord>,
    /// Unwritten lines of reclaims that happen in steps: at most one line per cause, ordered by beginning.
    under_way: Vec<OpenLine>,
}

/// A line that is not written yet, since further steps may be added.
#[derive(Debug)]
struct OpenLine {
    line: ReclaimRecord,
    began_ms: i64,
}

impl OpenLine {
    fn has_ended(&self, now_ms: i64) -> bool {
        now_ms - self.line.time_ms > SAME_LINE_MS || now_ms - self.began_ms > LONGEST_LINE_MS
    }

    fn add(&mut self, step: ReclaimRecord) {
        let line = &mut self.line;
        line.time_ms = step.time_ms;
        line.peak_lent_bytes = line.peak_lent_bytes.max(step.peak_lent_bytes);
        line.bytes += step.bytes;
        line.remaining_lent_bytes = step.remaining_lent_bytes;
        line.full_reclaim_us = line.full_reclaim_us.max(step.full_reclaim_us);
        line.steps_count += step.steps_count;
        line.clients.extend(step.clients);
        line.clients.sort_unstable();
        line.clients.dedup();
        line.clients.truncate(MOST_CLIENTS);
    }
}

impl Log {
    /// Opens the log in `folder`. Unreadable lines are skipped.
    pub(crate) fn open(folder: &Path) -> Self {
        let mut log = Self {
            path: folder.join(FILE),
            before: folder.join(BEFORE),
            most_bytes: MOST_BYTES,
            file: None,
            remembered: VecDeque::new(),
            under_way: Vec::new(),
        };
        for path in [&log.before, &log.path] {
            let text = fs::read(path).unwrap_or_default();
            for line in text.split(|byte| *byte == b'\n') {
                // A crash may have cut the last line off.
                let Ok(reclaim) = serde_json::from_slice(line) else {
                    continue;
                };
                log.remembered.push_back(reclaim);
                if log.remembered.len() > REMEMBERED {
                    log.remembered.pop_front();
                }
            }
        }
        log
    }

    /// Returns the lines of the log, the oldest first.
    pub(crate) fn lines(&self) -> Vec<ReclaimRecord> {
        let under_way = self.under_way.iter().map(|under_way| &under_way.line);
        self.remembered.iter().chain(under_way).cloned().collect()
    }

    /// Adds an immediate reclaim.
    ///
    /// # Errors
    /// The error names the path; the line stays in memory.
    pub(crate) fn add(&mut self, reclaim: ReclaimRecord) -> io::Result<()> {
        let earlier = self.settle(|_| true);
        self.write(reclaim).and(earlier)
    }

    /// Adds a step: part of a gradual reclaim, or one of several leases that end one after the other.
    ///
    /// # Errors
    /// Errors of [`Self::add`], when writing earlier lines.
    pub(crate) fn add_step(&mut self, step: ReclaimRecord) -> io::Result<()> {
        let now_ms = step.time_ms;
        let earlier = self.settle(|under_way| under_way.has_ended(now_ms));
        let mut under_way = self.under_way.iter_mut();
        match under_way.find(|same| same.line.cause == step.cause) {
            Some(same) => same.add(step),
            None => self.under_way.push(OpenLine {
                line: step,
                began_ms: now_ms,
            }),
        }
        earlier
    }

    /// Writes the lines to which no step can be added after `now_ms`.
    ///
    /// # Errors
    /// Errors of [`Self::add`].
    pub(crate) fn tick(&mut self, now_ms: i64) -> io::Result<()> {
        self.settle(|under_way| under_way.has_ended(now_ms))
    }

    /// Writes the unwritten lines for which `is_over` holds.
    fn settle(&mut self, is_over: impl Fn(&OpenLine) -> bool) -> io::Result<()> {
        let mut settled = Ok(());
        for under_way in self
            .under_way
            .extract_if(.., |one| is_over(one))
            .collect::<Vec<_>>()
        {
            settled = settled.and(self.write(under_way.line));
        }
        settled
    }

    fn write(&mut self, reclaim: ReclaimRecord) -> io::Result<()> {
        let line = serde_json::to_vec(&reclaim);
        self.remembered.push_back(reclaim);
        if self.remembered.len() > REMEMBERED {
            self.remembered.pop_front();
        }
        let mut line = line?;
        line.push(b'\n');
        let written = self.append(&line);
        if written.is_err() {
            self.file = None; // reopened by the next write
        }
        written.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", self.path.display())))
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                self.opened()?
            }
        };
        if file.metadata()?.len() + line.len() as u64 > self.most_bytes {
            fs::rename(&self.path, &self.before)?;
            file = self.opened()?;
        }
        file.write_all(line)?;
        self.file = Some(file);
        Ok(())
    }

    fn opened(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true).open(&self.path)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = self.settle(|_| true); // an error can no longer be reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time_ms: i64, cause: &str, bytes: u64) -> ReclaimRecord {
        ReclaimRecord {
            time_ms,
            cause: cause.to_owned(),
            bytes,
            steps_count: 1,
            ..ReclaimRecord::default()
        }
    }

    #[test]
    fn two_files_hold_the_latest() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path());
        log.most_bytes = 2000;
        for time_ms in 0..100 {
            log.add(line(time_ms, "owner", 1)).unwrap();
        }
        let sizes =
            [FILE, BEFORE].map(|name| fs::metadata(folder.path().join(name)).unwrap().len());
        assert!(
            sizes.iter().all(|size| (1..=2000).contains(size)),
            "{sizes:?}"
        );
        // Simulates a crash in the middle of a line.
        let mut file = OpenOptions::new()
            .append(true)
            .open(folder.path().join(FILE))
            .unwrap();
        file.write_all(b"{\"time_ms\":1").unwrap();
        let found = Log::open(folder.path()).lines();
        assert_eq!(found.last().unwrap().time_ms, 99);
        assert!(
            found.len() > 10
                && found
                    .windows(2)
                    .all(|two| two[0].time_ms + 1 == two[1].time_ms)
        );
    }

    #[test]
    fn what_went_in_steps_is_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path());
        for time_ms in [0, 100, 200, 9000] {
            log.add_step(line(time_ms, "quota", 10)).unwrap();
        }
        log.add_step(line(9100, "pressure", 5)).unwrap();
        let of = |log: &Log| {
            let short = |line: &ReclaimRecord| (line.cause.clone(), line.bytes, line.steps_count);
            log.lines().iter().map(short).collect::<Vec<_>>()
        };
        let expected = [
            ("quota".to_owned(), 30, 3),
            ("quota".to_owned(), 10, 1),
            ("pressure".to_owned(), 5, 1),
        ];
        assert_eq!(of(&log), expected);
        log.tick(9200).unwrap();
        assert_eq!(of(&Log::open(folder.path())), expected[..1]);
        log.tick(20_000).unwrap();
        assert_eq!(of(&Log::open(folder.path())), expected);
        log.add(line(20_001, "owner", 1)).unwrap();
        assert_eq!(log.lines().len(), 4);
    }

    #[test]
    fn leases_that_end_by_hundreds_push_nothing_out_and_name_few_clients() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::open(folder.path());
        log.add(line(0, "owner", 1)).unwrap();
        for number in 0..2000 {
            let cause = if number % 2 == 0 {
                "released"
            } else {
                "expired"
            };
            let step = ReclaimRecord {
                clients: vec![format!("{number:04}")],
                ..line(number, cause, 1)
            };
            log.add_step(step).unwrap();
        }
        let lines = log.lines();
        let short = |line: &ReclaimRecord| (line.cause.clone(), line.steps_count);
        let expected = [("owner", 1), ("released", 1000), ("expired", 1000)];
        let expected = expected.map(|(cause, count)| (cause.to_owned(), count));
        assert_eq!(lines.iter().map(short).collect::<Vec<_>>(), expected);
        assert_eq!(lines[1].clients.len(), MOST_CLIENTS);
        // Even if steps never pause, a line is written after some time.
        for minute in 0..30 {
            for second in (0..60).step_by(4) {
                let time_ms = 10_000 + (minute * 60 + second) * 1000;
                log.add_step(line(time_ms, "released", 1)).unwrap();
            }
        }
        let written = Log::open(folder.path()).lines();
        assert!((5..8).contains(&written.len()), "{written:?}");
    }

    #[test]
    fn where_nothing_can_be_written_it_says_so_and_remembers() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        let mut log = Log::open(&blocked);
        let said = log.add(line(1, "owner", 1)).unwrap_err().to_string();
        assert!(said.contains("lending.jsonl"), "{said}");
        assert_eq!(log.lines().len(), 1);
    }
}
