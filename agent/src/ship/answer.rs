//! Meanings of the collector's answers.

use crate::Error;
use crate::print::printable;
use gleaner_trust::Address;
use serde::Deserialize;
use std::time::Duration;

/// Maximum length of a text from outside that messages quote.
const MOST_SAID: usize = 300;

/// Outcome of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The batch is durable at the collector.
    Acknowledged,
    /// The collector refused the batch as it is.
    Refused {
        /// Reason in the collector's words.
        why: String,
        /// Prospect of a later attempt.
        finality: Finality,
    },
}

/// Prospect that a refused batch is accepted later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finality {
    /// Possible after a restart, an upgrade or a change of the collector.
    ForNow,
    /// Never: the batch is larger than the collector accepts.
    TooLarge,
    /// Never, for the reason that the collector gives.
    ForGood,
}

/// Reason why nothing can be shipped at present.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// The collector does not answer.
    #[error(
        "no answer from the collector at {address} ({why}): is it running, and the network up?"
    )]
    Unreachable { address: String, why: String },
    /// The collector does not admit this host.
    #[error(
        "the collector at {address} does not admit this host ({why}): where its certificate is no longer valid, enrol it anew with `gleaner-agent enroll`"
    )]
    NotAdmitted { address: String, why: String },
    /// The server's certificate was not issued by the authority.
    #[error(
        "the server at {address} does not prove that it is the collector ({why}): is the address right, and this host's clock? Nothing was sent"
    )]
    Stranger { address: String, why: String },
    /// The link is too slow.
    #[error("the link to the collector at {address} is too slow ({why})")]
    Slow {
        address: String,
        why: String,
        retry_after: Option<Duration>,
    },
    /// The collector accepts nothing at present.
    #[error("the collector at {address} accepts no batches at present ({why})")]
    Busy {
        address: String,
        why: String,
        retry_after: Option<Duration>,
    },
    /// The collector does not know this agent's tables.
    #[error("the collector at {address} is older than this agent ({why}): upgrade it")]
    Older { address: String, why: String },
    /// Another service, or a proxy, answers at the address.
    #[error("the server at {address} is no Gleaner collector, or is faulty ({why})")]
    Unexpected { address: String, why: String },
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] Error),
}

impl Trouble {
    /// Wait that the collector requested.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } | Self::Slow { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns true if a smaller batch might have succeeded.
    pub(crate) const fn may_be_size(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Slow { .. })
    }
}

/// A reply as received.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

#[derive(Deserialize)]
struct Acknowledgement {
    acknowledged_sequence: i64,
}

#[derive(Deserialize)]
struct Mark {
    acknowledged_sequence: Option<i64>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Reply {
    /// Interprets the reply to a batch whose last record is `last_sequence`.
    pub(crate) fn to_batch(&self, address: &str, last_sequence: i64) -> Result<Answer, Trouble> {
        match self.status {
            200 => match serde_json::from_str::<Acknowledgement>(&self.body) {
                Ok(said) if said.acknowledged_sequence >= last_sequence => Ok(Answer::Acknowledged),
                Ok(said) => Err(Trouble::Unexpected {
                    address: address.to_owned(),
                    why: format!(
                        "it acknowledged {} of {last_sequence}",
                        said.acknowledged_sequence
                    ),
                }),
                Err(_) => Err(self.unexpected(address)),
            },
            400 | 413 | 422 => Ok(Answer::Refused {
                why: self.why(),
                finality: match self.status {
                    413 => Finality::TooLarge,
                    422 => Finality::ForGood,
                    _ => Finality::ForNow,
                },
            }),
            _ => Err(self.trouble(address)),
        }
    }

    /// Interprets the reply as the last record of a database that the collector has.
    pub(crate) fn to_mark(&self, address: &str) -> Result<Option<i64>, Trouble> {
        match self.status {
            200 => serde_json::from_str::<Mark>(&self.body)
                .map(|mark| mark.acknowledged_sequence)
                .map_err(|_| self.unexpected(address)),
            _ => Err(self.trouble(address)),
        }
    }

    /// Returns the reply itself if its status is 200.
    pub(crate) fn of_status_200(&self, address: &Address) -> Result<&Self, Trouble> {
        match self.status {
            200 => Ok(self),
            _ => Err(self.trouble(&address.to_string())),
        }
    }

    /// Interprets a failure that can occur for any request.
    pub(crate) fn trouble(&self, address: &str) -> Trouble {
        let (address, why) = (address.to_owned(), self.why());
        match self.status {
            401 | 403 => Trouble::NotAdmitted { address, why },
            409 => Trouble::Older { address, why },
            408 => Trouble::Slow {
                address,
                why,
                retry_after: self.retry_after(),
            },
            429 | 503 => Trouble::Busy {
                address,
                why,
                retry_after: self.retry_after(),
            },
            _ => Trouble::Unexpected { address, why },
        }
    }

    fn unexpected(&self, address: &str) -> Trouble {
        Trouble::Unexpected {
            address: address.to_owned(),
            why: self.why(),
        }
    }

    /// Wait in seconds (RFC 9110, 10.2.3). The other form, a date, is ignored: it needs two clocks that
    /// agree.
    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.retry_after.as_deref()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds))
    }

    fn why(&self) -> String {
        let said = serde_json::from_str::<Refusal>(&self.body)
            .map_or_else(|_| self.body.trim().to_owned(), |refusal| refusal.error);
        let said: String = printable(&said).chars().take(MOST_SAID).collect();
        if said.is_empty() {
            format!("status {}", self.status)
        } else {
            format!("status {}: {said}", self.status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply {
            status,
            retry_after: Some("7".to_owned()),
            body: body.to_owned(),
        }
    }

    #[test]
    fn only_a_whole_acknowledgement_acknowledges() {
        let to = |status, body| reply(status, body).to_batch("there", 12);
        let acknowledged = r#"{"acknowledged_sequence": 12, "rows_count": 3, "repeated": false}"#;
        assert!(matches!(to(200, acknowledged), Ok(Answer::Acknowledged)));
        assert!(matches!(
            to(200, r#"{"acknowledged_sequence": 90}"#),
            Ok(Answer::Acknowledged)
        ));
        for body in [
            "",
            "<html>",
            r#"{"acknowledged_sequence": 11}"#,
            r#"{"acknowledged_sequence": null}"#,
            &acknowledged[..30],
            r#"{"acknowledged_sequence": "12"}"#,
        ] {
            let trouble = to(200, body);
            assert!(
                matches!(trouble, Err(Trouble::Unexpected { .. })),
                "{body}: {trouble:?}"
            );
        }
        for status in [201, 204, 301, 404, 500, 502] {
            let trouble = to(status, acknowledged);
            assert!(
                matches!(trouble, Err(Trouble::Unexpected { .. })),
                "{status}"
            );
        }
    }

    #[test]
    fn refusals_are_told_apart_and_their_words_are_made_harmless() {
        let to = |status| {
            reply(status, "{\"error\": \"so\\u001b[2Jbad\", \"retry\": false}").to_batch("there", 1)
        };
        for (status, expected) in [
            (400, Finality::ForNow),
            (413, Finality::TooLarge),
            (422, Finality::ForGood),
        ] {
            let Ok(Answer::Refused { why, finality }) = to(status) else {
                panic!("{status}");
            };
            assert_eq!(finality, expected);
            assert_eq!(why, format!("status {status}: so?[2Jbad"));
        }
        for status in [401, 403] {
            assert!(matches!(to(status), Err(Trouble::NotAdmitted { .. })));
        }
        assert!(matches!(to(409), Err(Trouble::Older { .. })));
        for status in [408, 429, 503] {
            let trouble = to(status).unwrap_err();
            assert_eq!(trouble.retry_after(), Some(Duration::from_secs(7)));
        }
        assert_eq!(to(500).unwrap_err().retry_after(), None);
        let long = reply(500, &"x".repeat(10_000)).trouble("there").to_string();
        assert!(long.len() < 600, "{}", long.len());
    }

    #[test]
    fn a_mark_may_be_nothing_but_must_be_there() {
        let mark = |body| reply(200, body).to_mark("there");
        assert_eq!(mark(r#"{"acknowledged_sequence": 3}"#).unwrap(), Some(3));
        assert_eq!(mark(r#"{"acknowledged_sequence": null}"#).unwrap(), None);
        assert!(mark("null").is_err() && mark("").is_err());
        assert!(reply(404, "").to_mark("there").is_err());
    }
}
