//! Checks of other members' requests, and answers that all servers of blocks share.

use super::wire::{COMMONS, KIND, parse_hash};
use crate::catalog::Hash;
use crate::store::Block;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::{Caller, CallerIdentity, Log, Server};
use gleaner_trust::Peer;
use std::io;
use std::net::SocketAddr;

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
    /// MemberDoor of the commons of this name.
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
