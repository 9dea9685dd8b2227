//! The reporter inside a desktop session: asks the X server how long nobody has touched it, and tells
//! the agent when the last activity was, through the times of one file (see [`crate::read::report`]).

use crate::Error;
use crate::clock::Moment;
use crate::interval;
use crate::read::report::{FILE_NAME, SILENT_AFTER_MS};
use crate::ticker::{Ticker, Wake};
use rustix::fs::{CWD, Mode, OFlags, Timespec, Timestamps, fstat, futimens, openat};
use std::path::PathBuf;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::screensaver::ConnectionExt;
use x11rb::rust_connection::RustConnection;

/// An interval that leaves time for three looks before the agent takes the reporter for gone.
///
/// # Errors
/// What is wrong with the text, for people.
pub fn look_interval(text: &str) -> Result<Duration, String> {
    let every = interval::parse(text).map_err(|e| e.to_string())?;
    let most = Duration::from_millis(SILENT_AFTER_MS.unsigned_abs() / 3);
    if every.is_zero() || every > most {
        return Err(format!("between 1ms and {}", interval::format(most)));
    }
    Ok(every)
}

/// Reports until SIGINT or SIGTERM comes; then, or when it fails, takes its word back, so that a
/// session that is over is not waited for.
///
/// # Errors
/// [`Error::Session`] without a display or a runtime folder, and when the X server goes away.
pub fn run(every: Duration) -> Result<(), Error> {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").ok_or_else(|| Error::Session {
        what: "XDG_RUNTIME_DIR is not set".to_owned(),
    })?;
    let screen = Screen::open()?;
    let no_looks = Duration::ZERO;
    let mut ticker = Ticker::new(every, no_looks).map_err(|source| Error::Wait { source })?;
    let report = Report(PathBuf::from(folder).join(FILE_NAME));
    loop {
        let idle_ms = screen.idle_ms()?;
        let now_ms = Moment::now().time_ms;
        report.write(now_ms - idle_ms, now_ms).map_err(|e| {
            let what = format!("cannot write {}: {e}", report.0.display());
            Error::Session { what }
        })?;
        if ticker.wait().map_err(|source| Error::Wait { source })? == Wake::Signal {
            return Ok(());
        }
    }
}

/// The X server of this session.
struct Screen {
    connection: RustConnection,
    root: u32,
}

impl Screen {
    fn open() -> Result<Self, Error> {
        let (connection, number) = x11rb::connect(None).map_err(|e| Error::Session {
            what: format!("no X display: {e}"),
        })?;
        let root = connection.setup().roots[number].root; // connect has checked the number
        Ok(Self { connection, root })
    }

    fn idle_ms(&self) -> Result<i64, Error> {
        let info = self.connection.screensaver_query_info(self.root);
        let info = info.map_err(|e| Error::Session {
            what: format!("the X server's screen saver extension: {e}"),
        })?;
        let info = info.reply().map_err(|e| Error::Session {
            what: format!("the X server: {e}"),
        })?;
        Ok(i64::from(info.ms_since_user_input))
    }
}

/// The file whose times are the word; gone when dropped.
struct Report(PathBuf);

impl Report {
    /// Says that the last activity was at `active_ms`. Sessions of one user share the file: a later
    /// activity in another stands, unless it lies ahead of the clock.
    fn write(&self, active_ms: i64, now_ms: i64) -> std::io::Result<()> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let is_new = !self.0.exists();
        let file = openat(CWD, &self.0, flags, Mode::RUSR | Mode::WUSR)?;
        let stat = fstat(&file)?;
        let said_ms = stat.st_mtime * 1000 + (stat.st_mtime_nsec / 1_000_000) as i64;
        let stands = !is_new && said_ms <= now_ms;
        let active_ms = if stands {
            active_ms.max(said_ms)
        } else {
            active_ms
        };
        let time = Timespec {
            tv_sec: active_ms.div_euclid(1000),
            tv_nsec: active_ms.rem_euclid(1000) * 1_000_000,
        };
        let times = Timestamps {
            last_access: time,
            last_modification: time,
        };
        Ok(futimens(&file, &times)?)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // another session's reporter may have been first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_never_taken_back_unless_it_lay_ahead() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let report = Report(path.clone());
        let said = |active_ms, now_ms| {
            report.write(active_ms, now_ms).unwrap();
            let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
            let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap();
            since.as_millis()
        };
        assert_eq!(said(5_250, 9_000), 5_250);
        assert_eq!(said(4_000, 9_000), 5_250);
        assert_eq!(said(8_000, 9_000), 8_000);
        assert_eq!(said(6_000, 7_000), 6_000); // the clock was set back
        drop(report);
        assert!(!path.exists());
    }

    #[test]
    fn three_looks_fit_before_silence() {
        assert_eq!(look_interval("20s"), Ok(Duration::from_secs(20)));
        assert!(look_interval("21s").is_err() && look_interval("soon").is_err());
    }
}
