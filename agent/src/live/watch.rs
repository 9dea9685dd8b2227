//! `gleaner-agent watch`: a listener that prints the messages.

use crate::Error;
use gleaner_schemas::live::{HostState, Message, Owner, OwnerState, SILENT_AFTER_MS, Sample};
use gleaner_schemas::units::{Bytes, Seconds};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Prints the messages of the agent at `socket`, until it ends or standard output is closed.
///
/// # Errors
/// [`Error::Listen`] if there is no agent, if it ends, or if no socket is configured.
pub fn run(socket: Option<&Path>, json: bool) -> Result<(), Error> {
    let Some(path) = socket else {
        let source = io::Error::new(ErrorKind::NotFound, "no socket is configured");
        return Err(listen("none".as_ref(), source));
    };
    let stream = UnixStream::connect(path).map_err(|e| listen(path, e))?;
    let silence = Duration::from_millis(SILENT_AFTER_MS.unsigned_abs());
    let set = stream.set_read_timeout(Some(silence));
    set.map_err(|e| listen(path, e))?;
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let printed = match stream.read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => {
                let line = std::mem::take(&mut line);
                if json {
                    print(&line)
                } else {
                    print(text(&line).as_bytes())
                }
            }
            Ok(_) => {
                let ended = io::Error::new(ErrorKind::UnexpectedEof, "the agent has ended");
                return Err(listen(path, ended));
            }
            // No message came in time. The received part of a line stays in the buffer.
            Err(e) if e.kind() == ErrorKind::WouldBlock && json => Ok(()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => print(silent().as_bytes()),
            Err(e) => return Err(listen(path, e)),
        };
        match printed {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => return Ok(()),
            other => other.map_err(|e| listen(path, e))?,
        }
    }
}

fn listen(path: &Path, source: io::Error) -> Error {
    Error::Listen {
        path: path.to_owned(),
        source,
    }
}

fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

/// Renders a message as text; the text is empty for messages that are only for programs.
fn text(line: &[u8]) -> String {
    match serde_json::from_slice(line) {
        Ok(Message::Hello(hello)) => format!(
            "gleaner-agent {}, a sample every {}; times are UTC\n{:<10}{:<8}{:>12}{:>12}{:>12}{:>8}  state\n",
            hello.agent_version,
            Seconds::from_ms(hello.sample_interval_ms),
            "time",
            "what",
            "available",
            "harvestable",
            "owner idle",
            "load5",
        ),
        Ok(Message::Sample(sample)) => of_sample(&sample),
        Ok(Message::Owner(owner)) => of_owner(&owner),
        Ok(Message::Refused(refused)) => format!("refused: {}\n", refused.reason),
        Ok(Message::Alive(_) | Message::Other) => String::new(),
        Err(e) => format!("an invalid message: {e}\n"),
    }
}

fn of_sample(sample: &Sample) -> String {
    let row = &sample.row;
    let unknown = || "unknown".to_owned();
    let size = |bytes: Option<i64>| bytes.map_or_else(unknown, |b| Bytes::from(b).to_string());
    let idle_ms = row.owner_idle_ms;
    let state = match sample.state {
        HostState::Idle { since_time_ms } => format!("idle since {}", clock(since_time_ms)),
        HostState::InUse { idle_at_time_ms } => {
            format!("in use; idle at {}", clock(idle_at_time_ms))
        }
        HostState::Loaded => "in use: loaded".to_owned(),
        HostState::Unknown => unknown(),
    };
    format!(
        "{:<10}{:<8}{:>12}{:>12}{:>12}{:>8}  {state}\n",
        clock(sample.time_ms),
        "sample",
        size(Some(row.available_bytes)),
        size(row.harvestable_bytes),
        idle_ms.map_or_else(unknown, |ms| Seconds::from_ms(ms).to_string()),
        row.load5.map_or_else(unknown, |load| format!("{load:.2}")),
    )
}

fn of_owner(owner: &Owner) -> String {
    let source = owner.source.as_deref().unwrap_or("unknown");
    let what = match (owner.state, owner.absence_ms) {
        (OwnerState::InUse, Some(absence_ms)) => {
            let away = Seconds::from_ms(absence_ms);
            format!("back after {away} ({source})")
        }
        (OwnerState::InUse, None) => format!("in use ({source})"),
        (OwnerState::Idle, _) => "idle".to_owned(),
        (OwnerState::Unknown, _) => "unknown: counts as in use".to_owned(),
    };
    format!("{:<10}{:<8}{what}\n", clock(owner.time_ms), "owner")
}

fn silent() -> String {
    let silence = Seconds::from_ms(SILENT_AFTER_MS);
    format!(
        "{:<18}silent for {silence}: counts as the owner's return\n",
        ""
    )
}

/// Time of day in UTC.
fn clock(time_ms: i64) -> String {
    let seconds = time_ms.div_euclid(1000).rem_euclid(86_400);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_for_people_are_aligned_and_say_what_counts() {
        let text = |line: &str| text(line.as_bytes());
        assert_eq!(
            text(
                r#"{"type":"owner","state":"in_use","time_ms":3723000,"absence_ms":720000,"source":"input"}"#
            ),
            "01:02:03  owner   back after 12 min (input)\n"
        );
        assert_eq!(
            text(r#"{"type":"owner","state":"idle","time_ms":3723000,"since_time_ms":1}"#),
            "01:02:03  owner   idle\n"
        );
        assert_eq!(text(r#"{"type":"alive","time_ms":1}"#), "");
        assert_eq!(text(r#"{"type":"lease"}"#), "");
        assert!(text("{}").starts_with("an invalid message"));
        let hello = text(&serde_json::to_string(&Message::Hello(Default::default())).unwrap());
        let sample = text(&serde_json::to_string(&Message::Sample(Box::default())).unwrap());
        let heading = hello.lines().nth(1).unwrap();
        assert_eq!(
            heading.find("state"),
            sample.find("unknown\n"),
            "{heading}\n{sample}"
        );
    }
}
