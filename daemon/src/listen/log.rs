//! Log of texts that strangers cause: one line each, without repetitions, limited in length and number.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time after which the same text about the same sender is logged again.
const QUIET: Duration = Duration::from_secs(3600);
/// Maximum number of lines about one sender within [`QUIET`], even if the texts vary.
const LINES: u32 = 100;
/// Maximum number of senders remembered. More senders are an attack: the log then forgets all of them.
const REMEMBERED: usize = 65_536;
/// Maximum length of a line. Gleaner's own messages are shorter, even with a name or two in them.
const LONGEST_CHARS: usize = 1000;

/// Last text logged about each sender, and the number of recent lines.
#[derive(Debug, Default)]
pub struct Log(Mutex<HashMap<String, SenderLog>>);

#[derive(Debug)]
struct SenderLog {
    line: String,
    when: Instant,
    lines: u32,
    since: Instant,
}

impl Log {
    /// Returns the line to log for a text about a sender; `None` for a repetition, or if the sender has too
    /// many lines.
    #[must_use]
    pub fn news(&self, sender: &str, words: &str) -> Option<String> {
        let line = one_line(&format!("{sender}: {words}"));
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(last) = said.get_mut(sender) {
            if last.line == line && last.when.elapsed() < QUIET {
                return None;
            }
            if last.since.elapsed() >= QUIET {
                (last.since, last.lines) = (now, 0);
            }
            last.lines += 1;
            (last.line, last.when) = (line.clone(), now);
            return (last.lines <= LINES).then_some(line);
        }
        if said.len() >= REMEMBERED {
            said.clear();
        }
        let first = SenderLog {
            line: line.clone(),
            when: now,
            lines: 1,
            since: now,
        };
        said.insert(sender.to_owned(), first);
        Some(line)
    }

    /// Notes that the sender succeeded: the next text about it is news.
    pub fn forget(&self, sender: &str) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.remove(sender);
    }
}

/// Converts a text from outside to one line without control characters, of limited length.
fn one_line(words: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut line: String = words.chars().take(LONGEST_CHARS).map(plain).collect();
    if words.chars().nth(LONGEST_CHARS).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_is_one_short_line() {
        assert_eq!(one_line("no such host: \"x\""), "no such host: \"x\"");
        assert_eq!(one_line("a\nb\x1b[2Jc\r"), "a\u{fffd}b\u{fffd}[2Jc\u{fffd}");
        let long = one_line(&"é".repeat(1_000_000));
        assert_eq!(long.chars().count(), LONGEST_CHARS + 1);
        assert!(long.ends_with("é…"));
        let whole = "x".repeat(LONGEST_CHARS);
        assert_eq!(one_line(&whole), whole);
    }

    #[test]
    fn who_varies_its_words_comes_to_an_end() {
        let log = Log::default();
        assert_eq!(log.news("a", "late"), Some("a: late".to_owned()));
        assert_eq!(log.news("a", "late"), None);
        assert_eq!(log.news("b", "late"), Some("b: late".to_owned()));
        let said = (0..1000).filter_map(|i| log.news("a", &i.to_string()));
        assert_eq!(said.count(), LINES as usize - 1);
        assert!(log.news("b", "later").is_some());
        log.forget("a");
        assert!(log.news("a", "late").is_some());
    }
}
