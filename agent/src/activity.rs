//! The owner's activity: reports of each source, the owner's idle time, and the first sign of their return.

use crate::Error;
use crate::config::Settings;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::access::{AccessKind, AccessWatch, News};
use crate::read::input::InputDevices;
use crate::read::logind::Sessions;
use crate::read::{report, terminal};
use gleaner_schemas::rows::ActivityRow;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Two activities reported within this time count as one. A reporter may report the same activity again; it
/// then computes the activity's time anew from its age, and the time varies a little.
pub(crate) const ACTIVITY_JITTER_MS: i64 = 1000;

/// Way in which a sample asks for the owner's activity: the watch itself, or the thread that has the watch.
pub trait Activity: Send {
    /// Asks all sources for the owner's last activity.
    ///
    /// # Errors
    /// [`Error::Wait`] when the thread that watches has ended.
    fn look(
        &mut self,
        look: Look,
        missing_values: &mut MissingValues,
    ) -> Result<Vec<ActivityRow>, Error>;
}

/// A sample's question about the owner's activity. It contains what took long to find out: the terminals in
/// use, and the sessions.
#[derive(Clone, Debug)]
pub struct Look {
    /// Wall-clock time of the sample.
    pub now_ms: i64,
    /// Terminals that control a process, as (major, minor).
    pub terminals: BTreeSet<(u32, u32)>,
    /// Sessions as reported by logind.
    pub sessions: Result<Sessions, AbsentValue>,
}

/// Watches all sources, and remembers the last activity that each source reported.
///
/// A source without activity counts from the first look: the owner has been idle at least since then.
#[derive(Debug)]
pub struct ActivityWatch {
    roots: Roots,
    first_look_ms: i64,
    devices: InputDevices,
    last_input_ms: Option<i64>,
    last_terminal_ms: Option<i64>,
    last_session_ms: Option<i64>,
    last_logind_ms: Option<i64>,
    /// Terminals that controlled a process at the last look.
    terminals: BTreeSet<(u32, u32)>,
    /// True while the owner is away and the agent waits for their return.
    armed: bool,
    /// Time of the newest event that a look read from an input device while armed; taken by
    /// [`ActivityWatch::first_sign`].
    input_at_look_ms: Option<i64>,
    accesses: Option<AccessWatch>,
}

/// First sign of the owner after an absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Source that saw the sign.
    pub source: &'static str,
    /// Wall-clock time of the sign.
    pub time_ms: i64,
}

/// Folders in which the sources lie.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/dev`, or a captured tree.
    pub dev: PathBuf,
    /// `/sys`, or a captured tree.
    pub sys: PathBuf,
    /// `/run`, or a captured tree.
    pub run: PathBuf,
}

impl Roots {
    /// Folders with the sources of the owner's activity.
    pub(crate) fn of(settings: &Settings) -> Self {
        Self {
            dev: settings.dev_root.clone(),
            sys: settings.sys_root.clone(),
            run: settings.run_root.clone(),
        }
    }
}

impl ActivityWatch {
    /// Begins to watch at the wall-clock time `now_ms`: input devices queue later events.
    #[must_use]
    pub fn new(roots: Roots, now_ms: i64) -> Self {
        let mut watch = Self {
            roots,
            first_look_ms: now_ms,
            devices: InputDevices::default(),
            last_input_ms: None,
            last_terminal_ms: None,
            last_session_ms: None,
            last_logind_ms: None,
            terminals: BTreeSet::new(),
            armed: false,
            input_at_look_ms: None,
            accesses: None,
        };
        let _ = watch.input(now_ms); // opens the devices; each sample reports failures
        watch
    }

    /// Asks all sources but logind, whose answer is in `look`. If a look reads an event from an input device
    /// while armed, the event is kept for [`Self::first_sign`].
    pub fn look(&mut self, look: Look, missing_values: &mut MissingValues) -> Vec<ActivityRow> {
        let now_ms = look.now_ms;
        self.terminals = look.terminals;
        let input = self.input(now_ms);
        let input = row("input", input, self.devices.count(), missing_values);
        let (terminal, count) = self.terminal(now_ms, missing_values);
        let terminal = row("terminal", terminal, count, missing_values);
        let (session, count) = self.session(now_ms);
        let session = row("session", session, count, missing_values);
        let (logind, count) = self.logind(now_ms, look.sessions);
        vec![
            input,
            terminal,
            session,
            row("logind", logind, count, missing_values),
        ]
    }

    /// Starts or continues to wait for the owner, also at terminals, reporters and devices that are new since
    /// the last call. Returns a sign of the owner that occurred between the last look and now.
    ///
    /// # Errors
    /// Terminals and reporters cannot be waited for; input devices still can.
    pub fn arm(&mut self, now_ms: i64) -> Result<Option<Sign>, Errno> {
        self.armed = true;
        let mut accesses = match self.accesses.take() {
            Some(accesses) => accesses,
            None => AccessWatch::new()?,
        };
        let Roots { dev, sys, run } = &self.roots;
        for node in terminal::nodes(dev, sys, &self.terminals) {
            accesses.add(AccessKind::Terminal, &node);
        }
        for user in std::fs::read_dir(run.join("user"))
            .into_iter()
            .flatten()
            .flatten()
        {
            accesses.add(AccessKind::Report, &user.path().join(report::FILE_NAME));
        }
        accesses.add(AccessKind::Terminals, &dev.join("pts"));
        accesses.add(AccessKind::Devices, &dev.join("input"));
        self.accesses = Some(accesses);
        let read_ms = terminal::last_access(dev, sys, &self.terminals).newest_ms;
        let was_read = read_ms > self.last_terminal_ms;
        let terminal = was_read.then(|| self.terminal_was_read(now_ms));
        Ok(self.first_sign(now_ms).or(terminal))
    }

    /// Stops waiting for the owner.
    pub fn disarm(&mut self) {
        self.input_at_look_ms = None;
        if std::mem::take(&mut self.armed)
            && let Some(accesses) = &mut self.accesses
        {
            accesses.clear();
        }
    }

    /// Returns true while the owner is away and the agent waits for their return.
    pub(crate) const fn is_armed(&self) -> bool {
        self.armed
    }

    /// Descriptors that become readable when the owner may have returned; none unless the watch is armed.
    pub fn wait_on(&self) -> Vec<BorrowedFd<'_>> {
        if !self.armed {
            return Vec::new();
        }
        let accesses = self.accesses.iter().map(AccessWatch::wait_on);
        self.devices.wait_on().chain(accesses).collect()
    }

    /// Reads the descriptors of [`Self::wait_on`]. Returns `None` if nothing there was a sign of the owner,
    /// for example because a reporter repeated itself or a device was plugged in.
    pub fn first_sign(&mut self, now_ms: i64) -> Option<Sign> {
        let mut news = News::default();
        if let Some(accesses) = &mut self.accesses {
            news = accesses.read();
            for terminal in &news.new_terminals {
                accesses.add(AccessKind::Terminal, terminal);
            }
        }
        if news.device {
            let _ = self.devices.open_new(&self.roots.dev, &self.roots.sys); // a sample reports failures
        }
        let at_look_ms = self.input_at_look_ms.take();
        if let Some(time_ms) = self.devices.drain().ok().flatten().max(at_look_ms) {
            self.last_input_ms = self.last_input_ms.max(Some(time_ms));
            let time_ms = time_ms.min(now_ms);
            return Some(Sign {
                source: "input",
                time_ms,
            });
        }
        if news.terminal {
            return Some(self.terminal_was_read(now_ms));
        }
        if news.report
            && let Ok(time_ms) = report::read(&self.roots.run, now_ms).newest_ms
            && self
                .last_session_ms
                .is_none_or(|last_ms| time_ms > last_ms + ACTIVITY_JITTER_MS)
        {
            self.last_session_ms = Some(time_ms);
            let time_ms = time_ms.min(now_ms);
            return Some(Sign {
                source: "session",
                time_ms,
            });
        }
        None
    }

    /// Moves all remembered times along with a step of the wall clock, so that their ages stay the same.
    pub fn clock_stepped(&mut self, stepped_ms: i64) {
        self.first_look_ms += stepped_ms;
        let remembered = [
            &mut self.last_input_ms,
            &mut self.last_terminal_ms,
            &mut self.last_session_ms,
            &mut self.last_logind_ms,
        ];
        for time_ms in remembered.into_iter().flatten() {
            *time_ms += stepped_ms;
        }
    }

    fn terminal_was_read(&mut self, now_ms: i64) -> Sign {
        self.last_terminal_ms = self.last_terminal_ms.max(Some(now_ms));
        Sign {
            source: "terminal",
            time_ms: now_ms,
        }
    }

    fn input(&mut self, now_ms: i64) -> Result<i64, AbsentValue> {
        let newest_ms = self.devices.newest_ms(&self.roots.dev, &self.roots.sys)?;
        if self.armed {
            self.input_at_look_ms = self.input_at_look_ms.max(newest_ms);
        }
        Ok(idle_ms(
            &mut self.last_input_ms,
            newest_ms,
            self.first_look_ms,
            now_ms,
        ))
    }

    fn terminal(
        &mut self,
        now_ms: i64,
        missing_values: &mut MissingValues,
    ) -> (Result<i64, AbsentValue>, usize) {
        if !terminal::exist(&self.roots.dev) {
            return (Err(AbsentValue::new(Reason::Unsupported, "no terminal")), 0);
        }
        let seen = terminal::last_access(&self.roots.dev, &self.roots.sys, &self.terminals);
        for _ in 0..seen.vanished {
            missing_values.note(
                "activity",
                AbsentValue::new(Reason::Vanished, "terminal without a node"),
            );
        }
        let idle = idle_ms(
            &mut self.last_terminal_ms,
            seen.newest_ms,
            self.first_look_ms,
            now_ms,
        );
        (Ok(idle), seen.count)
    }

    fn session(&mut self, now_ms: i64) -> (Result<i64, AbsentValue>, usize) {
        let reports = report::read(&self.roots.run, now_ms);
        let last_ms = &mut self.last_session_ms;
        let idle = reports
            .newest_ms
            .map(|newest_ms| idle_ms(last_ms, Some(newest_ms), self.first_look_ms, now_ms));
        (idle, reports.count)
    }

    fn logind(
        &mut self,
        now_ms: i64,
        sessions: Result<Sessions, AbsentValue>,
    ) -> (Result<i64, AbsentValue>, usize) {
        match sessions {
            Ok(seen) if seen.count == 0 => {
                let absent =
                    AbsentValue::new(Reason::Unsupported, "logind: no session with a hint");
                (Err(absent), 0)
            }
            Ok(seen) => {
                let last_ms = &mut self.last_logind_ms;
                let idle_ms = idle_ms(last_ms, seen.newest_ms, self.first_look_ms, now_ms);
                (Ok(idle_ms), seen.count)
            }
            Err(absent) => (Err(absent), 0),
        }
    }
}

impl Activity for ActivityWatch {
    fn look(
        &mut self,
        look: Look,
        missing_values: &mut MissingValues,
    ) -> Result<Vec<ActivityRow>, Error> {
        Ok(Self::look(self, look, missing_values))
    }
}

/// Time since the newest known activity; 0 if its time is in the future.
fn idle_ms(
    last_ms: &mut Option<i64>,
    newest_ms: Option<i64>,
    first_look_ms: i64,
    now_ms: i64,
) -> i64 {
    *last_ms = (*last_ms).max(newest_ms).map(|t| t.min(now_ms));
    // A file's owner can set its times to anything, also to the future.
    let last_ms = last_ms.unwrap_or(first_look_ms);
    now_ms.saturating_sub(last_ms).max(0)
}

fn row(
    source: &str,
    idle: Result<i64, AbsentValue>,
    devices: usize,
    missing_values: &mut MissingValues,
) -> ActivityRow {
    let state = idle
        .as_ref()
        .map_or_else(|absent| absent.reason.as_str(), |_| "ok");
    ActivityRow {
        source: source.to_owned(),
        state: state.to_owned(),
        devices_count: devices as i64,
        idle_ms: missing_values.keep("activity", idle),
    }
}

/// Time since the owner's last activity, from the least idle source.
///
/// # Errors
/// A source may not be read, is malformed or has fallen silent (somebody may be active there unseen), or
/// there is no source.
pub fn owner_idle_ms(sources: &[ActivityRow]) -> Result<i64, AbsentValue> {
    for reason in [Reason::Denied, Reason::Malformed, Reason::Vanished] {
        if let Some(blind) = sources.iter().find(|s| s.state == reason.as_str()) {
            return Err(AbsentValue::new(reason, blind.source.as_str()));
        }
    }
    sources
        .iter()
        .filter_map(|s| s.idle_ms)
        .min()
        .ok_or_else(|| AbsentValue::new(Reason::Unsupported, "no source of activity"))
}

/// Name of the source with the owner's latest activity.
pub(crate) fn least_idle(sources: &[ActivityRow]) -> Option<&str> {
    let seen = sources.iter().filter(|s| s.idle_ms.is_some());
    seen.min_by_key(|s| s.idle_ms).map(|s| s.source.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, state: &str, idle_ms: Option<i64>) -> ActivityRow {
        ActivityRow {
            source: name.into(),
            state: state.into(),
            idle_ms,
            devices_count: 1,
        }
    }

    #[test]
    fn the_least_idle_source_wins_and_a_blind_one_forbids_an_answer() {
        let terminal = || source("terminal", "ok", Some(5000));
        let cases = [
            (vec![source("input", "ok", Some(700)), terminal()], Ok(700)),
            (
                vec![source("input", "unsupported", None), terminal()],
                Ok(5000),
            ),
            (
                vec![source("input", "denied", None), terminal()],
                Err(Reason::Denied),
            ),
            (
                vec![source("input", "malformed", None), terminal()],
                Err(Reason::Malformed),
            ),
            (
                vec![terminal(), source("session", "vanished", None)],
                Err(Reason::Vanished),
            ),
            (
                vec![source("input", "unsupported", None)],
                Err(Reason::Unsupported),
            ),
        ];
        for (sources, idle) in cases {
            assert_eq!(
                owner_idle_ms(&sources).map_err(|a| a.reason),
                idle,
                "{sources:?}"
            );
        }
    }

    #[test]
    fn idle_since_the_last_activity_or_the_first_look() {
        let mut last = None;
        assert_eq!(idle_ms(&mut last, None, 1000, 4000), 3000);
        assert_eq!(idle_ms(&mut last, Some(500), 1000, 4000), 3500); // a known activity before the first look
        assert_eq!(idle_ms(&mut last, None, 1000, 5000), 4500);
        assert_eq!(idle_ms(&mut last, Some(9000), 1000, 6000), 0); // the clock was set back
        assert_eq!(idle_ms(&mut last, None, 1000, 7000), 1000);
        assert_eq!(idle_ms(&mut None, Some(i64::MIN), 1000, 7000), i64::MAX);
    }
}
