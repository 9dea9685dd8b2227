//! Checks of other members' requests, and answers that all servers of blocks share.

use super::wire::{COMMONS, KIND, parse_hash};
use crate::catalog::{BLOCK_BYTES, Hash};
use crate::store::Block;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use gleaner_daemon::listen::{Caller, CallerIdentity, Log, Server};
use gleaner_trust::Peer;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum size of an update of the directory; one with the most changes has some 70 KiB.
const UPDATE_BYTES: usize = 128 << 10;
/// Timeout of a request with a block or an update. Its sender gives up earlier.
const SENDER_TIMEOUT: Duration = Duration::from_secs(10);

/// Routes of a server for the other members: `blocks` answers requests about one block, `directory` takes changes
/// of the directory.
pub(super) fn routes<S: Send + Sync + 'static>(
    server: &Arc<S>,
    blocks: MethodRouter<Arc<S>>,
    directory: MethodRouter<Arc<S>>,
) -> Router {
    let block_bytes = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
    Router::new()
        .route(
            "/v1/blocks/{hash}",
            blocks.layer(DefaultBodyLimit::max(block_bytes)),
        )
        .route(
            "/v1/directory",
            directory.layer(DefaultBodyLimit::max(UPDATE_BYTES)),
        )
        .layer(from_fn(end_slow_senders))
        .with_state(Arc::clone(server))
}

/// Ends a request whose body does not arrive. A request without a body may wait for a fetch.
async fn end_slow_senders(request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        return next.run(request).await;
    }
    let answered = timeout(SENDER_TIMEOUT, next.run(request)).await;
    answered.unwrap_or_else(|_| StatusCode::REQUEST_TIMEOUT.into_response())
}

/// A request that is not served.
pub(super) struct Rejection(pub(super) StatusCode, pub(super) String);

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

/// A block as the owner of an answer's bytes, which are thus not copied.
struct BlockBytes(Block);

impl AsRef<[u8]> for BlockBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Listener's view of this host's server: which callers are served, and lines about those that are not.
pub struct MemberDoor {
    commons: String,
    log: Log,
}

impl MemberDoor {
    /// Makes the door of the commons of this name.
    #[must_use]
    pub fn new(commons: &str) -> Self {
        Self {
            commons: commons.to_owned(),
            log: Log::default(),
        }
    }

    /// Id of the host that sends a request. Only hosts' certificates are served.
    pub(super) fn host_id<'a>(
        &self,
        caller: &'a Caller,
        headers: &HeaderMap,
    ) -> Result<&'a str, Rejection> {
        let identity = caller
            .who()
            .map_err(|e| Rejection(StatusCode::UNAUTHORIZED, e.to_string()))?;
        let CallerIdentity::Known(Peer::Host(host_id)) = identity else {
            let text = "only hosts are served, with their certificates";
            return Err(forbidden(text.to_owned()));
        };
        let commons = headers.get(COMMONS).and_then(|name| name.to_str().ok());
        if commons != Some(self.commons.as_str()) {
            let text = format!("this host belongs to the commons {}", self.commons);
            return Err(forbidden(text));
        }
        Ok(host_id)
    }

    fn complain(&self, sender: &str, words: &str) {
        if let Some(line) = self.log.news(sender, words) {
            eprintln!("gleaner-commons: refused {line}");
        }
    }
}

impl Server for MemberDoor {
    fn opened(&self) -> Box<dyn Send> {
        Box::new(())
    }

    fn connection_rejected(&self) {
        self.complain("connections", "connections_limit is reached");
    }

    fn failed(&self, address: SocketAddr, error: &io::Error) {
        self.complain(&address.ip().to_string(), &error.to_string());
    }

    fn forbidden(&self, why: &str) -> Response {
        forbidden(why.to_owned()).into_response()
    }
}

/// Rejection of a host that is not among the members.
pub(super) fn no_member(host_id: &str) -> Rejection {
    forbidden(format!("host {host_id} is not among the members here"))
}

fn forbidden(text: String) -> Rejection {
    Rejection(StatusCode::FORBIDDEN, text)
}

/// Parses the hash in a request's path.
pub(super) fn parsed(digits: &str) -> Result<Hash, Rejection> {
    let wrong = || Rejection(StatusCode::BAD_REQUEST, "this is no hash".to_owned());
    parse_hash(digits).ok_or_else(wrong)
}

/// Answer with a block, and with the kind of the sender's copy.
pub(super) fn found(block: Block, kind: &'static str) -> Response {
    let body = Body::from(Bytes::from_owner(BlockBytes(block)));
    ([(KIND, kind)], body).into_response()
}

/// Answer without a block.
pub(super) fn missing() -> Response {
    StatusCode::NOT_FOUND.into_response()
}
