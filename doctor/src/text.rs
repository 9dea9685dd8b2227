//! Formats the diagnosis for display, grouped by daemon and aligned. Commands stay on one line so that they
//! can be copied.

use gleaner_schemas::diagnosis::{Check, CheckState, Diagnosis};
use std::fmt::Write;

/// Width of the column for states: the longest state is "not used".
const STATE_COLUMNS: usize = 8;
/// Minimum width of the column for subjects: a subject as long as "collector" fits.
const LEAST_SUBJECT_COLUMNS: usize = 9;
/// Minimum width of wrapped text, even if the terminal is narrower.
const LEAST_COLUMNS: usize = 24;

/// Formats the diagnosis in lines of at most `columns` columns; commands are never wrapped.
#[must_use]
pub fn text(diagnosis: &Diagnosis, columns: usize, has_colours: bool) -> String {
    let checks = &diagnosis.checks;
    let is_used = |daemon: &str| {
        let mut of_daemon = checks.iter().filter(|check| check.daemon == daemon);
        of_daemon.any(|check| check.state != CheckState::NotUsed)
    };
    let (used, unused): (Vec<_>, Vec<_>) = checks.iter().partition(|check| is_used(&check.daemon));
    let subject_columns = used.iter().map(|check| check.subject.chars().count());
    let page = Page {
        subject_columns: subject_columns.fold(LEAST_SUBJECT_COLUMNS, usize::max),
        columns,
        has_colours,
    };
    let mut text = String::new();
    let mut daemon = "";
    for check in used {
        if check.daemon != daemon {
            let gap = if daemon.is_empty() { "" } else { "\n" };
            daemon = &check.daemon;
            let _ = writeln!(text, "{gap}{}", paint(daemon, "1", has_colours));
        }
        page.line(&mut text, check, &check.subject);
    }
    if !unused.is_empty() {
        let _ = writeln!(text, "\n{}", paint("not used here", "1", has_colours));
    }
    for check in unused {
        page.line(&mut text, check, &check.daemon);
    }
    let _ = writeln!(
        text,
        "\n{}",
        wrapped(&summary(diagnosis), columns.max(LEAST_COLUMNS)).join("\n")
    );
    text
}

/// Widths of the output, and whether it has colours.
struct Page {
    subject_columns: usize,
    columns: usize,
    has_colours: bool,
}

impl Page {
    fn line(&self, text: &mut String, check: &Check, subject: &str) {
        let state = format!("{:<STATE_COLUMNS$}", check.state.word());
        let state = paint(&state, colour(check.state), self.has_colours);
        let subject_columns = self.subject_columns;
        let indent = 2 + STATE_COLUMNS + 2 + subject_columns + 2;
        let mut finding = check.finding.clone();
        if let Some(code) = &check.code {
            let _ = write!(finding, " [{code}]");
        }
        let width = self.columns.saturating_sub(indent).max(LEAST_COLUMNS);
        for (i, part) in wrapped(&finding, width).into_iter().enumerate() {
            let _ = match i {
                0 => writeln!(text, "  {state}  {subject:<subject_columns$}  {part}"),
                _ => writeln!(text, "{:indent$}{part}", ""),
            };
        }
        if let Some(remedy) = &check.remedy {
            let _ = writeln!(text, "{:1$}remedy: {remedy}", "", 2 + STATE_COLUMNS + 2);
        }
    }
}

/// Summary: numbers of faults, warnings and checks without fault, and the duration.
fn summary(diagnosis: &Diagnosis) -> String {
    let of = |count: u64, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let mut parts = Vec::new();
    if diagnosis.fault_count > 0 {
        parts.push(of(diagnosis.fault_count, "fault", "faults"));
    }
    if diagnosis.warning_count > 0 {
        parts.push(of(diagnosis.warning_count, "warning", "warnings"));
    }
    parts.push(format!("{} ok", diagnosis.ok_count));
    let head = match (diagnosis.fault_count, diagnosis.warning_count) {
        (0, 0) => "All is well: ",
        (0, _) => "All works: ",
        _ => "",
    };
    let mut text = format!(
        "{head}{}, in {:.1} s.",
        parts.join(", "),
        diagnosis.duration_ms as f64 / 1000.0
    );
    if diagnosis.user != "root" {
        let user = &diagnosis.user;
        let _ = write!(text, " Seen as {user}: `sudo gleaner doctor` sees more.");
    }
    if diagnosis.fault_count + diagnosis.warning_count > 0 {
        text.push_str(" What each [message] means: docs/doctor.md.");
    }
    text
}

const fn colour(state: CheckState) -> &'static str {
    match state {
        CheckState::Ok => "32",
        CheckState::Warning => "33",
        CheckState::Fault => "1;31",
        CheckState::NotUsed => "2",
    }
}

/// Paints text with the escape sequence "Select Graphic Rendition" (ECMA-48, 8.3.117).
fn paint(text: &str, rendition: &str, has_colours: bool) -> String {
    match has_colours {
        true => format!("\x1b[{rendition}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Wraps text into lines of at most `width` characters. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let mut length = 0;
    for word in text.split(' ') {
        let word_length = word.chars().count();
        if length > 0 && length + 1 + word_length > width {
            lines.push(String::new());
            length = 0;
        }
        if let Some(line) = lines.last_mut() {
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            line.push_str(word);
            length += word_length;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(daemon: &str, state: CheckState, subject: &str, finding: &str) -> Check {
        Check {
            daemon: daemon.to_owned(),
            state,
            subject: subject.to_owned(),
            code: (state != CheckState::Ok).then(|| "some-code".to_owned()),
            finding: finding.to_owned(),
            remedy: (state == CheckState::Fault).then(|| {
                "sudo fix it --with a/very/long/path/that/is/never/broken/in/two/parts --ever"
                    .to_owned()
            }),
        }
    }

    fn diagnosis() -> Diagnosis {
        Diagnosis {
            user: "ada".to_owned(),
            duration_ms: 432,
            ok_count: 1,
            fault_count: 1,
            not_used_count: 2,
            checks: vec![
                check("host", CheckState::Ok, "kernel", "Linux 6.1"),
                check(
                    "agent",
                    CheckState::Fault,
                    "certificate",
                    "/var/lib/gleaner/ship/host.pem has ended 3 d ago, and is refused",
                ),
                check("agent", CheckState::NotUsed, "x", "not here"),
                check("collector", CheckState::NotUsed, "program", "not installed"),
            ],
            ..Diagnosis::default()
        }
    }

    #[test]
    fn lines_are_aligned_and_commands_whole() {
        let expected = "\
host
  ok        kernel       Linux 6.1

agent
  fault     certificate  /var/lib/gleaner/ship/host.pem has ended
                         3 d ago, and is refused [some-code]
            remedy: sudo fix it --with a/very/long/path/that/is/never/broken/in/two/parts --ever
  not used  x            not here [some-code]

not used here
  not used  collector    not installed [some-code]

1 fault, 1 ok, in 0.4 s. Seen as ada: `sudo gleaner doctor` sees
more. What each [message] means: docs/doctor.md.
";
        assert_eq!(text(&diagnosis(), 66, false), expected);
    }

    #[test]
    fn colours_change_no_column() {
        let painted = text(&diagnosis(), 66, true);
        assert!(painted.contains("\x1b[1;31mfault   \x1b[0m"));
        let mut plain = painted;
        for rendition in ["1", "32", "33", "1;31", "2", "0"] {
            plain = plain.replace(&format!("\x1b[{rendition}m"), "");
        }
        assert_eq!(plain, text(&diagnosis(), 66, false));
    }
}
