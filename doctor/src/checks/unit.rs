//! Check of the daemon's unit, with the state that systemd reports.

use crate::command::ask;
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::Place;
use std::collections::BTreeMap;

const SUBJECT: &str = "unit";
/// Properties to read, named as in `systemctl show` (org.freedesktop.systemd1(5)).
const PROPERTIES: &str = "--property=LoadState,ActiveState,SubState,UnitFileState,Result,StateChangeTimestamp,NRestarts,MainPID,User,SupplementaryGroups,Environment";

/// A daemon's systemd unit, or the reason why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    NoSystemd,
    /// systemd runs this host, but does not answer; holds the reason.
    Silent(String),
    Shown(UnitProperties),
}

/// Properties of a unit, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitProperties(BTreeMap<String, String>);

impl UnitProperties {
    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let owned = pairs.map(|(key, value)| (key.to_owned(), value.trim().to_owned()));
        Self(owned.collect())
    }

    fn of(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    fn is_loaded(&self) -> bool {
        self.of("LoadState") == "loaded"
    }
}

impl Unit {
    fn shown(&self) -> Option<&UnitProperties> {
        match self {
            Self::Shown(shown) if shown.is_loaded() => Some(shown),
            _ => None,
        }
    }

    /// Returns true if systemd knows the unit.
    pub(crate) fn is_loaded(&self) -> bool {
        self.shown().is_some()
    }

    /// Returns true if the unit should run: it is enabled, or it is not inactive.
    pub(crate) fn is_wanted(&self) -> bool {
        let wanted = |shown: &UnitProperties| {
            shown.of("UnitFileState").starts_with("enabled")
                || shown.of("ActiveState") != "inactive"
        };
        self.shown().is_some_and(wanted)
    }

    pub(crate) fn is_active(&self) -> bool {
        self.shown()
            .is_some_and(|shown| shown.of("ActiveState") == "active")
    }

    /// User and supplementary groups of the unit; the user is root if the unit names none.
    pub(crate) fn user(&self) -> Option<(String, Vec<String>)> {
        let shown = self.shown()?;
        let user = Some(shown.of("User")).filter(|user| !user.is_empty());
        let groups = shown.of("SupplementaryGroups").split_whitespace();
        Some((
            user.unwrap_or("root").to_owned(),
            groups.map(str::to_owned).collect(),
        ))
    }

    pub(crate) fn main_pid(&self) -> Option<u32> {
        let pid = self.shown()?.of("MainPID").parse().ok()?;
        (pid > 0).then_some(pid)
    }

    /// Environment variables from the unit's `Environment=`. Variables in environment files are not read.
    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let text = self.shown().map_or("", |shown| shown.of("Environment"));
        let pairs = text
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| {
                (
                    name.trim_matches('"').to_owned(),
                    value.trim_matches('"').to_owned(),
                )
            })
            .collect()
    }
}

/// Reads the unit's properties from systemd, if systemd runs this host.
pub(crate) fn read(place: &Place, daemon: Daemon) -> Unit {
    if !place.has_systemd() {
        return Unit::NoSystemd;
    }
    let Some(systemctl) = place.program("systemctl") else {
        return Unit::Silent("systemctl is not there".to_owned());
    };
    let unit = format!("{}.service", daemon.unit());
    match ask(&systemctl, &["show", &unit, PROPERTIES]) {
        Ok(said) if said.code == Some(0) => Unit::Shown(UnitProperties::parse(&said.output)),
        Ok(said) => Unit::Silent(said.errors),
        Err(why) => Unit::Silent(why),
    }
}

/// Judges the unit; `None` if there is nothing to report. If systemd is missing, this is reported once for
/// the host, not for each unit.
pub(crate) fn judge(unit: &Unit, daemon: Daemon) -> Option<Finding> {
    let name = daemon.unit();
    let restart =
        format!("sudo systemctl restart {name}; sudo journalctl -u {name} -n 20 --no-pager");
    let shown = match unit {
        Unit::NoSystemd => return None,
        Unit::Silent(why) => {
            let found = format!("systemctl gives no answer: {why}");
            return Some(
                Finding::of(Message::SystemdSilent, SUBJECT, found)
                    .remedy("systemctl is-system-running"),
            );
        }
        Unit::Shown(shown) => shown,
    };
    let since = match shown.of("StateChangeTimestamp") {
        "" => String::new(),
        since => format!(" since {since}"),
    };
    let enable = format!("sudo systemctl enable --now {name}");
    Some(
        match (
            shown.of("LoadState"),
            shown.of("ActiveState"),
            shown.of("SubState"),
        ) {
            ("masked", ..) => Finding::of(
                Message::UnitMasked,
                SUBJECT,
                format!("{name}.service is masked"),
            )
            .remedy(format!("sudo systemctl unmask {name} && {enable}")),
            ("loaded", "failed", _) => {
                let found = format!("{name}.service has failed{since}: {}", shown.of("Result"));
                Finding::of(Message::UnitFailed, SUBJECT, found).remedy(restart)
            }
            ("loaded", "activating", "auto-restart") => {
                let found = format!(
                    "{name}.service ends with {} and is started again, {} times so far",
                    shown.of("Result"),
                    shown.of("NRestarts")
                );
                Finding::of(Message::UnitRestarting, SUBJECT, found).remedy(restart)
            }
            ("loaded", "active" | "activating" | "reloading", _) => {
                let is_enabled = shown.of("UnitFileState").starts_with("enabled");
                match is_enabled {
                true => Finding::ok(SUBJECT, format!("{name}.service: {}{since}, enabled", shown.of("ActiveState"))),
                false => Finding::of(Message::UnitDisabled, SUBJECT, format!("{name}.service is active{since}, and not enabled: the next boot does not start it"))
                    .remedy(format!("sudo systemctl enable {name}")),
            }
            }
            ("loaded", state, _) => {
                let found = format!("{name}.service is {state}{since}");
                Finding::of(Message::UnitStopped, SUBJECT, found).remedy(enable)
            }
            _ => {
                let found =
                    format!("systemd knows no {name}.service: the next boot does not start it");
                let install = super::program::install(daemon.program());
                Finding::of(Message::UnitMissing, SUBJECT, found).remedy(install)
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_judged_by_their_states() {
        let judged =
            |text: &str| judge(&Unit::Shown(UnitProperties::parse(text)), Daemon::Agent).unwrap();
        for (text, message, word) in [
            (
                "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\nStateChangeTimestamp=Mon 2026-11-16 07:00:00 UTC",
                None,
                "active since Mon 2026-11-16",
            ),
            (
                "LoadState=loaded\nActiveState=active\nUnitFileState=disabled",
                Some(Message::UnitDisabled),
                "not enabled",
            ),
            (
                "LoadState=loaded\nActiveState=failed\nResult=exit-code\nStateChangeTimestamp=Mon 07:00",
                Some(Message::UnitFailed),
                "since Mon 07:00: exit-code",
            ),
            (
                "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=watchdog\nNRestarts=7",
                Some(Message::UnitRestarting),
                "watchdog and is started again, 7 times",
            ),
            (
                "LoadState=loaded\nActiveState=inactive\nSubState=dead",
                Some(Message::UnitStopped),
                "inactive",
            ),
            (
                "LoadState=masked\nActiveState=inactive",
                Some(Message::UnitMasked),
                "masked",
            ),
            (
                "LoadState=not-found\nActiveState=inactive",
                Some(Message::UnitMissing),
                "knows no gleaner-agent.service",
            ),
            ("", Some(Message::UnitMissing), "knows no"),
        ] {
            let finding = judged(text);
            assert_eq!(finding.message, message, "{text}");
            assert!(finding.text.contains(word), "{finding:?}");
            assert_eq!(finding.remedy.is_some(), message.is_some());
        }
        assert_eq!(judge(&Unit::NoSystemd, Daemon::Agent), None);
        let silent = judge(&Unit::Silent("gone".to_owned()), Daemon::Ship).unwrap();
        assert_eq!(silent.message, Some(Message::SystemdSilent));
    }

    #[test]
    fn what_a_unit_says_of_its_daemon() {
        let text = "LoadState=loaded\nActiveState=active\nUser=gleaner-agent\nSupplementaryGroups=gleaner input\nMainPID=17\nEnvironment=GLEANER_AGENT_DATABASE=/x/y \"A=b\"";
        let unit = Unit::Shown(UnitProperties::parse(text));
        assert_eq!(
            unit.user(),
            Some((
                "gleaner-agent".to_owned(),
                vec!["gleaner".to_owned(), "input".to_owned()]
            ))
        );
        assert_eq!(unit.main_pid(), Some(17));
        assert_eq!(unit.variables()["GLEANER_AGENT_DATABASE"], "/x/y");
        assert!(unit.is_active() && unit.is_wanted());
        let gone = Unit::Shown(UnitProperties::parse(
            "LoadState=not-found\nActiveState=inactive\nMainPID=0",
        ));
        assert!(
            !gone.is_loaded()
                && !gone.is_wanted()
                && gone.user().is_none()
                && gone.main_pid().is_none()
        );
        let idle = Unit::Shown(UnitProperties::parse(
            "LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled",
        ));
        assert!(idle.is_loaded() && !idle.is_wanted());
        assert_eq!(idle.user().unwrap().0, "root");
    }

    proptest::proptest! {
        #[test]
        fn no_unit_is_too_strange(text in "(?s).{0,200}", state in "(?s).{0,20}") {
            for text in [text.clone(), format!("LoadState=loaded\nActiveState={state}\nMainPID={text}\nEnvironment={text}")] {
                let unit = Unit::Shown(UnitProperties::parse(&text));
                let _ = (judge(&unit, Daemon::Agent), unit.user(), unit.main_pid(), unit.variables());
            }
        }
    }
}
