//! Reader of the agent's socket (docs/live.md), in a thread of its own.

use gleaner_schemas::live::{Hello, Message, Owner, SILENT_AFTER_MS, Sample};
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Interval between attempts to connect to an agent.
const AGAIN: Duration = Duration::from_secs(2);

/// A message from the agent's socket, or the reason why no message arrives.
#[derive(Debug)]
pub(super) enum AgentEvent {
    Message(Box<Message>),
    /// The connection failed or ended; holds the reason.
    Lost(String),
}

/// State received from the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct AgentState {
    pub(super) hello: Hello,
    pub(super) sample: Option<Box<Sample>>,
    pub(super) owner: Option<Owner>,
    /// Time of the last message, on the monotonic clock.
    pub(super) heard_ms: i64,
}

impl AgentState {
    /// Processes a message; returns the reason if the agent refused the connection.
    pub(super) fn process_message(
        &mut self,
        message: Message,
        monotonic_ms: i64,
    ) -> Option<String> {
        self.heard_ms = monotonic_ms;
        match message {
            Message::Hello(hello) => self.hello = hello,
            Message::Sample(sample) => self.sample = Some(sample),
            Message::Owner(owner) => self.owner = Some(owner),
            Message::Refused(refused) => {
                return Some(format!("the agent refused: {}", refused.reason));
            }
            Message::Alive(_) | Message::Other => {}
        }
        None
    }
}

/// Connects to the agent at `socket` and reads messages; reconnects when the connection ends.
pub(super) fn listen(socket: Option<PathBuf>) -> Receiver<AgentEvent> {
    let (sender, heard) = channel();
    thread::spawn(move || {
        loop {
            let lost = match &socket {
                Some(path) => match connection(path, |message| sender.send(message).is_ok()) {
                    Some(lost) => lost,
                    None => return, // the receiver no longer exists
                },
                None => "no socket is configured".to_owned(),
            };
            if sender.send(AgentEvent::Lost(lost)).is_err() {
                return;
            }
            thread::sleep(AGAIN);
        }
    });
    heard
}

/// Reads messages from a connection until it ends. Returns the reason for the end, or `None` if `tell`
/// returned false.
fn connection(path: &Path, tell: impl Fn(AgentEvent) -> bool) -> Option<String> {
    let failed = |e: std::io::Error| Some(format!("{}: {}", path.display(), reason(&e)));
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(e) => return failed(e),
    };
    let silence = Duration::from_millis(SILENT_AFTER_MS.unsigned_abs());
    if let Err(e) = stream.set_read_timeout(Some(silence)) {
        return failed(e);
    }
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        match stream.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {
                let message = serde_json::from_slice(&line).unwrap_or(Message::Other);
                line.clear();
                if !tell(AgentEvent::Message(Box::new(message))) {
                    return None;
                }
            }
            Ok(_) => return Some("the agent has ended".to_owned()),
            // An incomplete line stays in the buffer until the rest arrives. If no more arrives, the view
            // shows the age of the last message.
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return failed(e),
        }
    }
}

/// Text of the system's error, and a remedy.
fn reason(error: &std::io::Error) -> String {
    const START: &str = "start it with `systemctl start gleaner-agent`, or `gleaner-agent run`; --socket names another place";
    match error.kind() {
        ErrorKind::NotFound => format!("there is no such file; {START}"),
        ErrorKind::ConnectionRefused => format!("no program listens there; {START}"),
        ErrorKind::PermissionDenied => {
            "permission denied: you are not in the socket's group (docs/live.md says how to get in)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}
