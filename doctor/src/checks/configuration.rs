//! Judgement of a configuration by the daemon's own program, which prints it for `check-config --json`.

use crate::command::ask_with;
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::{Place, quoted};
use crate::settings::Settings;
use gleaner_daemon::config::CheckResult;
use std::collections::BTreeMap;
use std::path::Path;

const SUBJECT: &str = "configuration";

/// Answer of a daemon's program to `check-config`; `None` if the program does not support the command. An
/// error says why the program could not be run.
pub(crate) type Answer = Result<Option<CheckResult>, String>;

/// Runs `check-config` of the daemon's program, with the environment variables of the daemon's unit.
pub(crate) fn read(
    place: &Place,
    daemon: Daemon,
    program: &Path,
    variables: &BTreeMap<String, String>,
) -> Answer {
    let path = place.configuration_of(daemon).display().to_string();
    let mut arguments = vec!["check-config", "--json"];
    if !place.is_usual() {
        arguments.extend(["--config", &path]);
    }
    let said = ask_with(program, &arguments, variables)?;
    Ok(serde_json::from_str(&said.output).ok())
}

/// Judges the configuration; `None` if there is no program that could check it.
pub(crate) fn judge(
    place: &Place,
    daemon: Daemon,
    settings: &Settings,
    answer: Option<&Answer>,
) -> Option<Finding> {
    let path = place.configuration_of(daemon);
    let shown = path.display();
    let edit = format!("sudo ${{EDITOR:-vi}} {}", quoted(&path));
    if let Some(why) = &settings.unread {
        let finding = Finding::of(Message::ConfigurationUnread, SUBJECT, why);
        return Some(finding.remedy("sudo gleaner doctor"));
    }
    if !settings.is_there && !place.is_usual() {
        return Some(Finding::ok(
            SUBJECT,
            format!("no {shown}: every key has its default"),
        ));
    }
    Some(match answer? {
        Ok(Some(checked)) => match &checked.problem {
            None if settings.is_there => Finding::ok(SUBJECT, shown.to_string()),
            None => Finding::ok(SUBJECT, format!("no {shown}: every key has its default")),
            Some(problem) => {
                Finding::of(Message::ConfigurationWrong, SUBJECT, &problem.text).remedy(edit)
            }
        },
        Ok(None) => {
            let found = format!(
                "{} does not know check-config --json: {shown} was not looked at",
                daemon.program()
            );
            Finding::of(Message::ConfigurationUnchecked, SUBJECT, found)
        }
        Err(why) => Finding::of(Message::ConfigurationUnchecked, SUBJECT, why),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(is_there: bool, answer: Option<&str>) -> Finding {
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
        let answer = Ok(answer.map(|answer| serde_json::from_str(answer).unwrap()));
        judge(&place, Daemon::Agent, &settings, Some(&answer)).unwrap()
    }

    #[test]
    fn the_daemons_word_counts() {
        let good = r#"{"program": "gleaner-agent", "is_valid": true, "drop_ins": [], "overrides": [], "settings": {}}"#;
        assert_eq!(judged(true, Some(good)).message, None);
        assert!(judged(false, Some(good)).text.contains("default"));
        let bad = r#"{"program": "gleaner-agent", "is_valid": false, "drop_ins": [], "overrides": [],
            "problem": {"line": 2, "text": "/x y/agent.toml, line 2: unknown field `intervall`"}}"#;
        let wrong = judged(true, Some(bad));
        assert_eq!(wrong.message, Some(Message::ConfigurationWrong));
        assert_eq!(
            wrong.text,
            "/x y/agent.toml, line 2: unknown field `intervall`"
        );
        assert_eq!(
            wrong.remedy.as_deref(),
            Some("sudo ${EDITOR:-vi} '/x y/agent.toml'")
        );
        let old = judged(true, None);
        assert_eq!(old.message, Some(Message::ConfigurationUnchecked));
    }
}
