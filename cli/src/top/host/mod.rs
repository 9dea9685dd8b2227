//! View of this host: its agent's last messages, and the kernel's current figures.

mod agent;
mod document;
mod kernel;
mod owner;
mod view;

use super::ink::Ink;
use super::terminal::{NextStep, Screen};
use super::{args::Top, draw};
use agent::{AgentEvent, AgentState};
use gleaner_agent::args::GlobalArgs;
use gleaner_agent::config::Config;
use gleaner_hosts::derived::unsigned;
use gleaner_schemas::live::Message;
use jiff::tz::TimeZone;
use kernel::Reading;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::widgets::Paragraph;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Socket of an agent that runs as root; users of its group may connect too.
const SYSTEM_SOCKET: &str = "/run/gleaner/agent.sock";
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Time limit for the first sample. An agent sends its greeting immediately, but an agent that has just
/// started needs a second or two for its first sample.
const FIRST_SAMPLE: Duration = Duration::from_secs(5);
/// Maximum number of readings of /proc, and of samples, to keep: no terminal has more columns for them.
const REMEMBERED: usize = 500;

/// Content of a frame.
#[derive(Debug)]
struct Host {
    name: String,
    zone: TimeZone,
    /// Last messages of the agent; `None` while no agent answers.
    told: Option<AgentState>,
    /// Reason why no agent answers.
    lost: Option<String>,
    reading: Option<Reading>,
    before: Option<Reading>,
    /// Reason why /proc cannot be read.
    unreadable: Option<String>,
    interval: Duration,
    /// True if the view is updated and keys work; false if only one frame is printed.
    is_watched: bool,
    /// MemAvailable at each reading.
    looks: Vec<u64>,
    /// Time and available memory of each sample.
    samples: Vec<(i64, u64)>,
}

/// Current time on the wall clock and on the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct FrameTime {
    time_ms: i64,
    monotonic_ms: i64,
}

impl Host {
    fn new(interval: Duration) -> Self {
        Self {
            name: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            zone: TimeZone::system(),
            told: None,
            lost: None,
            reading: None,
            before: None,
            unreadable: None,
            interval,
            is_watched: true,
            looks: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn process_message(&mut self, heard: AgentEvent, now: FrameTime) {
        let lost = match heard {
            AgentEvent::Message(message) => {
                if let Message::Sample(sample) = &*message {
                    let available = unsigned(sample.row.available_bytes);
                    remember(&mut self.samples, (sample.time_ms, available));
                    self.samples.dedup_by_key(|(time_ms, _)| *time_ms);
                }
                let told = self.told.get_or_insert_default();
                told.process_message(*message, now.monotonic_ms)
            }
            AgentEvent::Lost(reason) => Some(reason),
        };
        if lost.is_some() {
            self.told = None;
            self.lost = lost;
        }
    }

    fn look(&mut self, proc: &Path, now: FrameTime) {
        match Reading::take(proc, now.time_ms) {
            Ok(reading) => {
                self.looks.extend(reading.mem_available_bytes);
                let extra = self.looks.len().saturating_sub(REMEMBERED);
                self.looks.drain(..extra);
                self.before = self.reading.replace(reading);
                self.unreadable = None;
            }
            Err(e) => self.unreadable = Some(gleaner_daemon::causes::told(e.as_ref())),
        }
    }
}

fn remember<T>(all: &mut Vec<T>, one: T) {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(one);
}

/// Socket of the agent in this configuration, otherwise of the system's agent if there is one.
fn configured() -> anyhow::Result<Option<PathBuf>> {
    let socket = Config::resolve(GlobalArgs::default())?.socket;
    let system = Path::new(SYSTEM_SOCKET);
    let is_missing = socket.as_ref().is_none_or(|socket| !socket.exists());
    Ok(if is_missing && system.exists() {
        Some(system.to_owned())
    } else {
        socket
    })
}

/// View of the host while it is watched.
struct WatchedHost {
    host: Host,
    heard: Receiver<AgentEvent>,
    began: Instant,
    looked: Option<Instant>,
    ink: Ink,
    has_help: bool,
}

impl WatchedHost {
    fn start(args: &Top, ink: Ink) -> anyhow::Result<Self> {
        let socket = match &args.socket {
            Some(given) => Some(given.clone()),
            None => configured()?,
        };
        Ok(Self {
            host: Host::new(args.interval.unwrap_or(LOOK_AGAIN)),
            heard: agent::listen(socket),
            began: Instant::now(),
            looked: None,
            ink,
            has_help: false,
        })
    }

    fn now(&self) -> FrameTime {
        FrameTime {
            time_ms: jiff::Timestamp::now().as_millisecond(),
            monotonic_ms: i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn look(&mut self) {
        let now = self.now();
        self.host.look(Path::new("/proc"), now);
        self.looked = Some(Instant::now());
    }

    /// Waits until there is a sample, or an error of the agent.
    fn wait_for_a_sample(&mut self) {
        let patience = |began: Instant| FIRST_SAMPLE.saturating_sub(began.elapsed());
        while self.host.lost.is_none() && self.host.told.as_ref().is_none_or(|t| t.sample.is_none())
        {
            match self.heard.recv_timeout(patience(self.began)) {
                Ok(heard) => self.host.process_message(heard, self.now()),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
        // The owner's state is sent immediately after the sample.
        while let Ok(heard) = self.heard.recv_timeout(Duration::from_millis(50)) {
            self.host.process_message(heard, self.now());
        }
    }
}

impl Screen for WatchedHost {
    fn refresh(&mut self) {
        while let Ok(heard) = self.heard.try_recv() {
            self.host.process_message(heard, self.now());
        }
        if self
            .looked
            .is_none_or(|looked| looked.elapsed() >= self.host.interval)
        {
            self.look();
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let lines = if self.has_help {
            view::help(area.width.into(), self.ink)
        } else {
            view::lines(&self.host, self.now(), area.width.into(), self.ink)
        };
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn key(&mut self, key: KeyEvent) -> NextStep {
        match key.code {
            KeyCode::Char('q') => return NextStep::Quit,
            KeyCode::Esc if !self.has_help => return NextStep::Quit,
            KeyCode::Char('?' | 'h') => self.has_help = !self.has_help,
            _ => self.has_help = false,
        }
        NextStep::Continue
    }
}

/// Watches this host until the user quits.
pub(super) fn watch(args: &Top, ink: Ink) -> anyhow::Result<()> {
    super::terminal::show(&mut WatchedHost::start(args, ink)?)
}

/// Current state of this host as text.
///
/// # Errors
/// No agent answers; then only the figures of /proc are printed.
pub(super) fn once(args: &Top, width: usize, ink: Ink) -> anyhow::Result<(String, Option<String>)> {
    let mut watched = WatchedHost::start(args, ink)?;
    watched.host.is_watched = false;
    watched.look();
    watched.wait_for_a_sample();
    let now = watched.now();
    let host = &watched.host;
    let text = if args.json {
        serde_json::to_string_pretty(&document::of(host, now))? + "\n"
    } else {
        draw::plain(&view::lines(host, now, width, ink))
    };
    let lost = match (&host.told, &host.lost) {
        (Some(_), _) => None,
        (None, Some(reason)) => Some(format!("no agent answers: {reason}")),
        (None, None) => Some("the agent does not answer".to_owned()),
    };
    Ok((text, lost))
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
