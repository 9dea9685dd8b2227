//! Whether the daemon takes its configuration: it is asked, by `check-config`.

use crate::command::{Said, ask_with};
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::{Place, quoted};
use crate::settings::Settings;
use std::collections::BTreeMap;
use std::path::Path;

const SUBJECT: &str = "configuration";

/// Asks the daemon's program, with the variables of its unit.
pub(crate) fn read(
    place: &Place,
    daemon: Daemon,
    program: &Path,
    variables: &BTreeMap<String, String>,
) -> Result<Said, String> {
    let path = place.configuration_of(daemon);
    let path = path.display().to_string();
    match place.is_usual() {
        true => ask_with(program, &["check-config"], variables),
        false => ask_with(program, &["check-config", "--config", &path], variables),
    }
}

/// `None` where a program is missing that could tell.
pub(crate) fn judge(
    place: &Place,
    daemon: Daemon,
    settings: &Settings,
    said: Option<Result<Said, String>>,
) -> Option<Finding> {
    let path = place.configuration_of(daemon);
    let shown = path.display();
    let edit = format!("sudo ${{EDITOR:-vi}} {}", quoted(&path));
    if let Some(why) = &settings.unread {
        let finding = Finding::of(Message::ConfigurationUnread, SUBJECT, why);
        return Some(finding.mend("sudo gleaner doctor"));
    }
    if !settings.is_there && !place.is_usual() {
        return Some(Finding::ok(
            SUBJECT,
            format!("no {shown}: every key has its default"),
        ));
    }
    Some(match said? {
        Ok(Said { code: Some(0), .. }) if settings.is_there => {
            Finding::ok(SUBJECT, shown.to_string())
        }
        Ok(Said { code: Some(0), .. }) => {
            Finding::ok(SUBJECT, format!("no {shown}: every key has its default"))
        }
        Ok(Said {
            code: Some(2),
            errors,
            ..
        }) if errors.contains("check-config") => {
            let found = format!(
                "{} does not know check-config: {shown} was not looked at",
                daemon.program()
            );
            Finding::of(Message::ConfigurationUnchecked, SUBJECT, found)
        }
        Ok(said) => Finding::of(
            Message::ConfigurationWrong,
            SUBJECT,
            told(&said.errors, daemon),
        )
        .mend(edit),
        Err(why) => Finding::of(Message::ConfigurationUnchecked, SUBJECT, why),
    })
}

/// What the program said, without its name and without the lines that only draw.
fn told(errors: &str, daemon: Daemon) -> String {
    let name = format!("{}: ", daemon.program());
    let draws = |line: &str| {
        let (before, _) = line.split_once('|').unwrap_or(("x", ""));
        before.trim().chars().all(|c| c.is_ascii_digit())
    };
    let lines = errors.lines().filter(|line| !draws(line));
    let text = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    match text.trim_start_matches(&name).trim() {
        "" => "check-config refuses it without a word".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(is_there: bool, code: i32, errors: &str) -> Finding {
        let place = Place {
            configuration: "/x y".into(),
            programs: None,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
            me: crate::user::User::default(),
        };
        let settings = Settings {
            is_there,
            ..Settings::default()
        };
        let said = Said {
            code: Some(code),
            output: String::new(),
            errors: errors.to_owned(),
        };
        judge(&place, Daemon::Agent, &settings, Some(Ok(said))).unwrap()
    }

    #[test]
    fn the_daemons_word_counts() {
        assert_eq!(judged(true, 0, "").message, None);
        assert!(judged(false, 0, "").found.contains("default"));
        let errors = "gleaner-agent: /x y/agent.toml: TOML parse error at line 2, column 1\n  |\n2 | intervall = \"90s\"\n  | ^^^^^^^^^\nunknown field `intervall`\n";
        let wrong = judged(true, 1, errors);
        assert_eq!(wrong.message, Some(Message::ConfigurationWrong));
        assert_eq!(
            wrong.found,
            "/x y/agent.toml: TOML parse error at line 2, column 1 unknown field `intervall`"
        );
        assert_eq!(
            wrong.mend.as_deref(),
            Some("sudo ${EDITOR:-vi} '/x y/agent.toml'")
        );
        let old = judged(true, 2, "error: unrecognized subcommand 'check-config'");
        assert_eq!(old.message, Some(Message::ConfigurationUnchecked));
    }
}
