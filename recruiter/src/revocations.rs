//! Sends revocation lists to memory servers, which get these lists only from recruiters.

use axum::extract::ws::Utf8Bytes;
use gleaner_schemas::lending::{MOST_REVOCATIONS_BYTES, RecruiterMessage, Revocations};
use tokio::sync::watch;

/// Message with the lists in force. Each link sends it at its beginning and on every change.
#[derive(Debug, Default)]
pub(crate) struct RevocationNotice(watch::Sender<Option<Utf8Bytes>>);

impl RevocationNotice {
    /// Sets the lists from a PEM text, which may be empty.
    ///
    /// # Errors
    /// Reason why memory servers must keep their present lists.
    pub(crate) fn set(&self, pem: String) -> Result<(), String> {
        if pem.is_empty() {
            return Ok(());
        }
        if pem.len() > MOST_REVOCATIONS_BYTES {
            return Err(format!(
                "the revocation lists have {} bytes, and memory servers take {MOST_REVOCATIONS_BYTES}: they go on with those that they have; \
                 begin a new authority (docs/trust.md, \"Rotation\")",
                pem.len()
            ));
        }
        let message = RecruiterMessage::Revocations(Revocations { pem });
        let text = serde_json::to_string(&message).map_err(|e| e.to_string())?;
        self.0.send_replace(Some(text.into()));
        Ok(())
    }

    /// Subscribes one link to the lists. The message counts as changed until the link has read it.
    pub(crate) fn follow(&self) -> watch::Receiver<Option<Utf8Bytes>> {
        let mut lists = self.0.subscribe();
        lists.mark_changed();
        lists
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_too_long_are_not_sent_and_the_last_ones_are() {
        let notice = RevocationNotice::default();
        let mut lists = notice.follow();
        notice.set(String::new()).unwrap();
        assert_eq!(*lists.borrow_and_update(), None);
        notice.set("a\n".to_owned()).unwrap();
        let said = |lists: &watch::Receiver<Option<Utf8Bytes>>| {
            let text = lists.borrow().clone().unwrap();
            match serde_json::from_str(&text).unwrap() {
                RecruiterMessage::Revocations(Revocations { pem }) => pem,
                other => panic!("{other:?}"),
            }
        };
        assert!(lists.has_changed().unwrap());
        assert_eq!(said(&lists), "a\n");
        let refused = notice
            .set("a".repeat(MOST_REVOCATIONS_BYTES + 1))
            .unwrap_err();
        assert!(refused.contains("new authority"), "{refused}");
        assert_eq!(said(&notice.follow()), "a\n");
        assert!(notice.follow().has_changed().unwrap());
    }
}
