//! The reporter inside a desktop session: asks the desktop for its idle time, and passes the time of the last
//! activity to the agent through the times of one file (see [`crate::read::report`]).

mod mutter;
mod wayland;
mod x11;

use crate::Error;
use crate::clock::Moment;
use crate::interval;
use crate::read::report::{FILE_NAME, SILENT_AFTER_MS};
use crate::ticker::{Ticker, WakeReason};
use rustix::fd::BorrowedFd;
use rustix::fs::{CWD, Mode, OFlags, Timespec, Timestamps, fstat, futimens, openat};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mutter::Mutter;
use wayland::Wayland;
use x11::X11;

/// Reason why XWayland's idle time is not used.
const XWAYLAND: &str = "XWayland observes only the input to X programs";

/// Source of the time since the session's keyboard or pointer was last touched. Errors are texts for people.
trait IdleSource {
    /// Time since the last activity; `None` if there is no answer for now. After an error the reporter ends.
    fn idle_ms(&mut self) -> Result<Option<i64>, String>;

    /// Descriptor that is readable if there is news before the next look.
    fn news(&self) -> Option<BorrowedFd<'_>>;

    /// Name of the source in messages.
    fn name(&self) -> &'static str;
}

/// Parses an interval that allows three looks before the agent counts the reporter as ended.
///
/// # Errors
/// Fault as a message.
pub fn look_interval(text: &str) -> Result<Duration, String> {
    let every = interval::parse(text).map_err(|e| e.to_string())?;
    let most = Duration::from_millis(SILENT_AFTER_MS.unsigned_abs() / 3);
    if every.is_zero() || every > most {
        return Err(format!("between 1ms and {}", interval::format(most)));
    }
    Ok(every)
}

/// Reports until SIGINT or SIGTERM arrives. Then, or on an error, removes the report, so that the agent does not
/// wait for a session that has ended.
///
/// # Errors
/// [`Error::Session`] without a runtime folder or a desktop that gives its idle time, and if the desktop ends.
pub fn run(every: Duration) -> Result<(), Error> {
    let session = |what| Error::Session { what };
    let folder = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .ok_or_else(|| session("XDG_RUNTIME_DIR is not set".to_owned()))?;
    let mut desktop = open(&folder).map_err(session)?;
    let no_looks = Duration::ZERO;
    let mut ticker = Ticker::new(every, no_looks).map_err(|source| Error::Wait { source })?;
    let report = Report(folder.join(FILE_NAME));
    eprintln!("gleaner-agent: asking {}", desktop.name());
    loop {
        if let Some(idle_ms) = desktop.idle_ms().map_err(session)? {
            let now_ms = Moment::now().time_ms;
            report
                .write(now_ms - idle_ms, now_ms)
                .map_err(|e| session(format!("cannot write {}: {e}", report.0.display())))?;
        }
        let wake = ticker.wait_or(desktop.news());
        if wake.map_err(|source| Error::Wait { source })? == WakeReason::Signal {
            return Ok(());
        }
    }
}

/// Opens the first source that gives its idle time: the compositor, GNOME or the X server. Under Wayland the X
/// server is not asked.
fn open(runtime_folder: &Path) -> Result<Box<dyn IdleSource>, String> {
    let compositor = Wayland::connect();
    let is_wayland =
        compositor.is_ok() || std::env::var_os("XDG_SESSION_TYPE").is_some_and(|t| t == "wayland");
    let no_wayland = match compositor.and_then(Wayland::watch) {
        Ok(compositor) => return Ok(Box::new(compositor)),
        Err(why) => why,
    };
    let no_mutter = match Mutter::open(runtime_folder) {
        Ok(mutter) => return Ok(Box::new(mutter)),
        Err(why) => why,
    };
    let no_x11 = if is_wayland {
        format!("not asked, for {XWAYLAND}")
    } else {
        match X11::open() {
            Ok(server) => return Ok(Box::new(server)),
            Err(why) => why,
        }
    };
    Err(format!(
        "no desktop reports how long it has been idle (Wayland: {no_wayland}; GNOME: {no_mutter}; X11: {no_x11})"
    ))
}

/// The report: a file whose times are the message. The file is removed when this is dropped.
struct Report(PathBuf);

impl Report {
    /// Records the last activity at `active_ms`. Sessions of one user share the file: a later activity of
    /// another session is kept, unless it is in the future.
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
        let _ = std::fs::remove_file(&self.0); // another session's reporter may have removed it
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
