//! Findings, which are the results of checks.

use super::message::Message;
use gleaner_schemas::diagnosis::{Check, CheckState};

/// A line of the diagnosis, before it is formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) subject: &'static str,
    /// Message that describes the fault or warning; `None` if all is well.
    pub(super) message: Option<Message>,
    pub(super) text: String,
    /// Command that fixes the fault, with `sudo` if it needs root.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// Makes a finding that says that something is well.
    pub(super) fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self {
            subject,
            message: None,
            text: text.into(),
            remedy: None,
        }
    }

    /// Makes a finding of a fault or warning.
    pub(super) fn of(message: Message, subject: &'static str, text: impl Into<String>) -> Self {
        Self {
            message: Some(message),
            ..Self::ok(subject, text)
        }
    }

    /// Adds the command that fixes the fault, with `sudo` if it needs root.
    pub(super) fn remedy(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(command.into());
        self
    }

    pub(super) fn state(&self) -> CheckState {
        self.message.map_or(CheckState::Ok, Message::state)
    }

    /// Converts the finding for display: without `sudo` if the user is root, and without control characters.
    pub(super) fn into_check(self, daemon: &str, is_root: bool) -> Check {
        let state = self.state();
        let remedy = self.remedy.map(|command| match is_root {
            true => command.replace("sudo ", ""),
            false => command,
        });
        Check {
            daemon: daemon.to_owned(),
            state,
            subject: self.subject.to_owned(),
            code: self.message.map(|message| message.code().to_owned()),
            finding: plain(&self.text),
            remedy: remedy.map(|command| plain(&command)),
        }
    }
}

/// Text in one line. Control characters are replaced, since a terminal would obey them.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    words.join(" ").chars().map(harmless).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_needs_no_sudo_and_terminals_obey_nothing() {
        let finding = Finding::of(Message::NotRunning, "running", "a\n  b\u{1b}[31m")
            .remedy("sudo systemctl restart x && sudo journalctl -u x");
        let check = finding.clone().into_check("agent", true);
        assert_eq!(
            check.remedy.as_deref(),
            Some("systemctl restart x && journalctl -u x")
        );
        assert_eq!(check.finding, "a b\u{fffd}[31m");
        assert_eq!(check.code.as_deref(), Some("not-running"));
        let check = finding.into_check("agent", false);
        assert!(
            check
                .remedy
                .is_some_and(|remedy| remedy.starts_with("sudo "))
        );
    }
}
