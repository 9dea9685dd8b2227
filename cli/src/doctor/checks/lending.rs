//! What the memory server says of itself, at the owner's socket.

use crate::doctor::finding::Finding;
use crate::doctor::message::Message;
use gleaner_schemas::lending::Lending;
use gleaner_schemas::units::Bytes;

/// `recruiters`: as configured. `start_agent`, `start`: how the agent and the memory server are started anew.
pub(in crate::doctor) fn judge(
    lending: &Lending,
    recruiters: &[String],
    start_agent: &str,
    start: &str,
) -> Vec<Finding> {
    let quota = &lending.quota;
    let state = match lending.is_paused {
        true => "paused by the owner".to_owned(),
        false => format!(
            "{} of {} that may be lent",
            Bytes::from(quota.lent_bytes),
            Bytes::from(quota.quota_bytes)
        ),
    };
    let mut findings = vec![Finding::ok("lending", state)];
    findings.push(match lending.hears_agent {
        true => Finding::ok("agent", "heard"),
        false => Finding::of(Message::AgentUnheard, "agent", "not heard: nothing is lent")
            .mend(start_agent),
    });
    if recruiters.is_empty() {
        findings.push(Finding::of(
            Message::NoRecruiter,
            "recruiters",
            "none is configured",
        ));
    }
    for url in recruiters {
        let is_same = |linked: &String| linked.trim_end_matches('/') == url.trim_end_matches('/');
        findings.push(match lending.recruiters.iter().any(is_same) {
            true => Finding::ok("recruiters", format!("{url} is linked")),
            false => Finding::of(
                Message::RecruiterUnlinked,
                "recruiters",
                format!("{url} is not linked"),
            )
            .mend(start),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_the_agent_are_what_lending_needs() {
        let judged = |hears_agent, linked: &[&str], wanted: &[&str]| {
            let owned = |texts: &[&str]| {
                texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>()
            };
            let lending = Lending {
                hears_agent,
                recruiters: owned(linked),
                ..Lending::default()
            };
            let findings = judge(&lending, &owned(wanted), "start the agent", "start");
            findings
                .into_iter()
                .skip(1)
                .map(|f| f.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            judged(true, &["https://r:1"], &["https://r:1/"]),
            [None, None]
        );
        assert_eq!(
            judged(false, &[], &["https://r:1"]),
            [
                Some(Message::AgentUnheard),
                Some(Message::RecruiterUnlinked)
            ]
        );
        assert_eq!(judged(true, &[], &[]), [None, Some(Message::NoRecruiter)]);
    }
}
