//! Links with memory servers. Each server opens a connection, announces itself over it, and receives requests
//! over it.

use crate::registry::HostId;
use gleaner_schemas::lending::{Outcome, RequestKind};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Maximum number of requests that wait to be sent to one host. With more, the host counts as overwhelmed.
const WAITING: usize = 64;

/// A request to a host, with the sender for its answer.
pub(crate) struct HostRequest {
    pub(crate) asked: RequestKind,
    pub(crate) answer: oneshot::Sender<Outcome>,
}

/// Reason why a host did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerFailure {
    /// The host is not linked, or its link broke before it answered.
    NotLinked,
    /// The host did not answer in time.
    Late,
    /// Too many requests to the host are waiting to be sent.
    Overwhelmed,
}

struct Link {
    number: u64,
    asks: mpsc::Sender<HostRequest>,
}

/// Present links, by host.
#[derive(Default)]
pub(crate) struct Links {
    last: AtomicU64,
    open: Mutex<HashMap<HostId, Link>>,
}

impl Links {
    /// Returns a number for a new connection, higher than all earlier ones.
    pub(crate) fn next_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Makes connection `number` the host's link. A former connection notices this when its channel ends.
    pub(crate) fn take_over(&self, host_id: &HostId, number: u64) -> mpsc::Receiver<HostRequest> {
        let (asks, receiver) = mpsc::channel(WAITING);
        let link = Link { number, asks };
        self.open().insert(HostId::clone(host_id), link);
        receiver
    }

    pub(crate) fn ended(&self, host_id: &HostId, number: u64) {
        let mut open = self.open();
        if open.get(host_id).is_some_and(|link| link.number == number) {
            open.remove(host_id);
        }
    }

    /// Number of present links.
    pub(crate) fn count(&self) -> usize {
        self.open().len()
    }

    /// Sends a request to a host, and waits for its answer for at most `patience`.
    pub(crate) async fn ask(
        &self,
        host_id: &HostId,
        asked: RequestKind,
        patience: Duration,
    ) -> Result<Outcome, AnswerFailure> {
        let asks = self.open().get(host_id).map(|link| link.asks.clone());
        let asks = asks.ok_or(AnswerFailure::NotLinked)?;
        let (answer, answered) = oneshot::channel();
        asks.try_send(HostRequest { asked, answer })
            .map_err(|e| match e {
                mpsc::error::TrySendError::Full(_) => AnswerFailure::Overwhelmed,
                mpsc::error::TrySendError::Closed(_) => AnswerFailure::NotLinked,
            })?;
        match timeout(patience, answered).await {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(AnswerFailure::NotLinked),
            Err(_) => Err(AnswerFailure::Late),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<HostId, Link>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
