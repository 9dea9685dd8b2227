//! Checks of the memory server, with the status from its owner socket.

use crate::finding::Finding;
use crate::message::Message;
use gleaner_schemas::lending::LendingState;
use gleaner_schemas::units::Bytes;

/// Commands that fix faults of lending.
pub(crate) struct LendingRemedies {
    /// Command that restarts the agent.
    pub(crate) agent: String,
    /// Command that restarts the memory server.
    pub(crate) memoryd: String,
    /// Command that makes the memory server serve pages: it writes a drop-in and restarts the memory server.
    pub(crate) pages: String,
}

/// Judges the memory server's status. `recruiters` and `grants_leases` are keys of its configuration.
pub(crate) fn judge(
    lending: &LendingState,
    recruiters: &[String],
    grants_leases: bool,
    remedies: &LendingRemedies,
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
    findings.push(match lending.is_agent_connected {
        true => Finding::ok("agent", "heard"),
        false => Finding::of(Message::AgentUnheard, "agent", "not heard: nothing is lent")
            .remedy(remedies.agent.clone()),
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
        findings.push(match lending.linked_recruiters.iter().any(is_same) {
            true => Finding::ok("recruiters", format!("{url} is linked")),
            false => Finding::of(
                Message::RecruiterUnlinked,
                "recruiters",
                format!("{url} is not linked"),
            )
            .remedy(remedies.memoryd.clone()),
        });
    }
    if grants_leases && !recruiters.is_empty() {
        findings.push(match &lending.pages {
            Some(_) => Finding::ok("pages", "served to clients of leases"),
            None => Finding::of(
                Message::PagesUnserved,
                "pages",
                "served nowhere: recruiters place no lease here",
            )
            .remedy(remedies.pages.clone()),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::PagesServed;

    fn remedies() -> LendingRemedies {
        let [agent, memoryd, pages] = ["agent", "memoryd", "pages"].map(str::to_owned);
        LendingRemedies {
            agent,
            memoryd,
            pages,
        }
    }

    #[test]
    fn links_and_the_agent_are_what_lending_needs() {
        let judged = |is_agent_connected, linked: &[&str], wanted: &[&str]| {
            let owned = |texts: &[&str]| {
                texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<Vec<_>>()
            };
            let lending = LendingState {
                is_agent_connected,
                linked_recruiters: owned(linked),
                pages: Some(PagesServed::default()),
                ..LendingState::default()
            };
            let findings = judge(&lending, &owned(wanted), true, &remedies());
            findings
                .into_iter()
                .skip(1)
                .map(|f| f.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            judged(true, &["https://r:1"], &["https://r:1/"]),
            [None, None, None]
        );
        assert_eq!(
            judged(false, &[], &["https://r:1"]),
            [
                Some(Message::AgentUnheard),
                Some(Message::RecruiterUnlinked),
                None
            ]
        );
        assert_eq!(judged(true, &[], &[]), [None, Some(Message::NoRecruiter)]);
    }

    #[test]
    fn leases_are_offered_with_an_address_that_serves_their_pages() {
        let url = "https://r:1".to_owned();
        let lending = LendingState {
            is_agent_connected: true,
            linked_recruiters: vec![url.clone()],
            ..LendingState::default()
        };
        let found = |lending: &LendingState, grants_leases| {
            let findings = judge(
                lending,
                std::slice::from_ref(&url),
                grants_leases,
                &remedies(),
            );
            let unserved = findings
                .into_iter()
                .find(|f| f.message == Some(Message::PagesUnserved));
            unserved.map(|f| f.remedy)
        };
        assert_eq!(found(&lending, true), Some(Some("pages".to_owned())));
        assert_eq!(found(&lending, false), None); // it grants no leases, so it need not serve pages
        let serving = LendingState {
            pages: Some(PagesServed::default()),
            ..lending
        };
        assert_eq!(found(&serving, true), None);
    }
}
