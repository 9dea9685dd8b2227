//! `/run/user/UID/gleaner-session`: the report of a reporter inside a desktop session. The report consists
//! only of the file's times.
//!
//! The modification time is the owner's last activity, as set by the reporter. The change time is the time of
//! the last report; only the kernel sets it. Nothing is opened and no byte is read, so that a hostile user
//! can claim no more than "somebody was active then".

use crate::missing_values::{AbsentValue, Reason};
use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};
use rustix::io::Errno;
use std::path::Path;

/// The file's name in a user's runtime folder.
pub const FILE_NAME: &str = "gleaner-session";

/// Silence after which a reporter counts as ended.
pub const SILENT_AFTER_MS: i64 = 60_000;

/// Summary of the reports of all users.
#[derive(Debug)]
pub struct Reports {
    /// Newest activity on the wall clock; it may lie in the future. Unsupported without a reporter, vanished
    /// if a reporter has fallen silent.
    pub newest_ms: Result<i64, AbsentValue>,
    /// Number of reporters with a recent report.
    pub count: usize,
}

/// Reads the reports of all users whose runtime folder may be entered; an agent run by a user sees only
/// that user's.
#[must_use]
pub fn read(run_root: &Path, now_ms: i64) -> Reports {
    let mut reports = Reports {
        newest_ms: Err(AbsentValue::new(Reason::Unsupported, "no session reporter")),
        count: 0,
    };
    let mut silent = false;
    let users = std::fs::read_dir(run_root.join("user"));
    for user in users.into_iter().flatten().flatten() {
        let Some(stat) = stat(&user.path().join(FILE_NAME)) else {
            continue;
        };
        if (now_ms - milliseconds(stat.st_ctime, stat.st_ctime_nsec)).abs() > SILENT_AFTER_MS {
            silent = true;
            continue;
        }
        let active_ms = milliseconds(stat.st_mtime, stat.st_mtime_nsec);
        reports.count += 1;
        reports.newest_ms = Ok(reports.newest_ms.map_or(active_ms, |t| t.max(active_ms)));
    }
    if silent {
        reports.newest_ms = Err(AbsentValue::new(
            Reason::Vanished,
            "session reporter is silent",
        ));
    }
    reports
}

fn stat(path: &Path) -> Option<Stat> {
    let stat = loop {
        match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::INTR) => {}
            other => break other.ok()?,
        }
    };
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat)
}

const fn milliseconds(seconds: i64, nanoseconds: u64) -> i64 {
    seconds
        .saturating_mul(1000)
        .saturating_add((nanoseconds / 1_000_000) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::time::{Duration, SystemTime};

    #[test]
    fn the_newest_word_counts_and_a_silent_reporter_is_not_idle() {
        let run = tempfile::tempdir().unwrap();
        let read = |now_ms| {
            let reports = read(run.path(), now_ms);
            (reports.newest_ms.map_err(|a| a.reason), reports.count)
        };
        let now_ms = crate::clock::Moment::now().time_ms; // the kernel gives the files below this time
        assert_eq!(read(now_ms), (Err(Reason::Unsupported), 0));

        let report = |uid: &str, seconds| {
            let user = run.path().join("user").join(uid);
            std::fs::create_dir_all(&user).unwrap();
            let file = File::create(user.join(FILE_NAME)).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.set_times(FileTimes::new().set_modified(time)).unwrap();
        };
        std::fs::create_dir_all(run.path().join("user/1002")).unwrap(); // a user without a report
        report("1000", 500);
        report("1001", 400);
        assert_eq!(read(now_ms), (Ok(500_000), 2));
        for silent_ms in [SILENT_AFTER_MS + 30_000, -SILENT_AFTER_MS - 30_000] {
            assert_eq!(read(now_ms + silent_ms), (Err(Reason::Vanished), 0));
        }
    }

    #[test]
    fn only_a_plain_file_of_the_users_own_is_a_report() {
        let run = tempfile::tempdir().unwrap();
        let user = run.path().join("user/1000");
        std::fs::create_dir_all(&user).unwrap();
        let elsewhere = run.path().join("elsewhere");
        File::create(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, user.join(FILE_NAME)).unwrap();
        let reports = read(run.path(), crate::clock::Moment::now().time_ms);
        assert_eq!(
            reports.newest_ms.map_err(|a| a.reason),
            Err(Reason::Unsupported)
        );
    }
}
