//! Checks of the collector and its hosts, with the status that the collector reports at its local address.

use crate::command::within;
use crate::finding::Finding;
use crate::message::Message;
use gleaner_collector::ask;
use std::time::Duration;

/// Time limit for the answer. A collector with ten thousand hosts needs less than a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Part of the collector's status that the doctor uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollectorReport {
    hosts_count: u64,
    silent_count: u64,
    /// Problems that the collector reports: severity and text of each.
    problems: Vec<(String, String)>,
}

/// Requests the collector's status. An error says why the request failed.
pub(crate) fn read(url: &str) -> Result<CollectorReport, String> {
    let address = url.to_owned();
    let asked = within(PATIENCE, move || {
        ask::status(&address).map_err(|e| e.to_string())
    });
    let status =
        asked.ok_or_else(|| format!("{url}: no answer within {} s", PATIENCE.as_secs()))??;
    let problems = status.problem_lines();
    Ok(CollectorReport {
        problems: problems
            .map(|(how_bad, what)| (how_bad.to_owned(), what.to_owned()))
            .collect(),
        hosts_count: status.hosts_count,
        silent_count: status.hosts_silent_count,
    })
}

/// Commands that fix faults of the collector.
pub(crate) struct CollectorRemedies {
    /// Command that shows more of the collector's status.
    pub(crate) look: String,
    /// Command that makes a token with which a host can enrol.
    pub(crate) invite: String,
    /// Command that restarts the collector.
    pub(crate) start: String,
}

/// Judges the collector and its hosts.
pub(crate) fn judge(
    said: &Result<CollectorReport, String>,
    url: &str,
    remedies: &CollectorRemedies,
) -> Vec<Finding> {
    let CollectorRemedies {
        look,
        invite,
        start,
    } = remedies;
    let said = match said {
        Ok(said) => said,
        Err(why) => return vec![Finding::of(Message::StatusSilent, "status", why).remedy(start)],
    };
    let mut findings = vec![match (said.hosts_count, said.silent_count) {
        (0, _) => {
            Finding::of(Message::NoHosts, "hosts", "no host has sent anything yet").remedy(invite)
        }
        (all, 0) => Finding::ok("hosts", format!("{all}, none of them silent ({url})")),
        (all, silent) => {
            let found = format!("{silent} of {all} are silent");
            Finding::of(Message::HostsSilent, "hosts", found).remedy(look)
        }
    }];
    // If silent hosts exist, their number is reported above; the collector's own text about them is left out
    // here.
    let others = said
        .problems
        .iter()
        .filter(|(_, what)| said.silent_count == 0 || !what.contains("silent"));
    findings.extend(others.filter_map(|(how_bad, what)| {
        let message = match how_bad.as_str() {
            "fault" => Message::ServerProblem,
            "warning" => Message::ServerWarning,
            _ => return None,
        };
        Some(Finding::of(message, "status", what).remedy(look))
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_collector_says_is_passed_on() {
        let text = |text: &str| text.to_owned();
        let remedies = CollectorRemedies {
            look: text("look"),
            invite: text("invite"),
            start: text("start"),
        };
        let judged = |said| {
            let findings = judge(&said, "http://127.0.0.1:1", &remedies);
            findings.into_iter().map(|f| f.message).collect::<Vec<_>>()
        };
        let said = |hosts_count, silent_count, problems: &[(&str, &str)]| {
            let problems = problems
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect();
            Ok(CollectorReport {
                hosts_count,
                silent_count,
                problems,
            })
        };
        assert_eq!(judged(Err("x".to_owned())), [Some(Message::StatusSilent)]);
        assert_eq!(judged(said(0, 0, &[])), [Some(Message::NoHosts)]);
        assert_eq!(judged(said(3, 0, &[("notice", "x")])), [None]);
        assert_eq!(
            judged(said(3, 1, &[("warning", "1 host is silent")])),
            [Some(Message::HostsSilent)]
        );
        assert_eq!(
            judged(said(3, 0, &[("fault", "x"), ("warning", "y")])),
            [
                None,
                Some(Message::ServerProblem),
                Some(Message::ServerWarning)
            ]
        );
        assert!(read("http://127.0.0.1:1").is_err());
    }
}
