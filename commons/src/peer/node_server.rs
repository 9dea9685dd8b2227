//! Answers to the requests of members with a recruiter: this host's node of global memory decides.

use super::door::{self, MemberDoor, Rejection, found, missing, parsed};
use super::exchange::Exchange;
use super::wire::{
    AGE, CHANCES, FORWARDED, KIND_GLOBAL, KIND_LOCAL, NoticeUpdate, READER, WAIT, block_path,
    parse_reader,
};
use crate::catalog::Hash;
use crate::global::{BlockData, BlockReply, PutOutcome};
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gleaner_daemon::listen::Caller;
use gleaner_policy::global::NodeId;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// This host's node, as the other members use it.
pub struct NodeServer {
    door: Arc<MemberDoor>,
    exchange: Arc<Exchange>,
}

impl NodeServer {
    /// Makes the server of the commons of this name.
    #[must_use]
    pub fn new(commons: &str, exchange: Arc<Exchange>) -> Self {
        Self {
            door: Arc::new(MemberDoor::new(commons)),
            exchange,
        }
    }

    /// Callers that are served.
    #[must_use]
    pub fn door(&self) -> Arc<MemberDoor> {
        Arc::clone(&self.door)
    }

    /// Routes for the other members.
    pub fn router(self: &Arc<Self>) -> Router {
        door::routes(self, get(get_block).put(put_block), post(update_directory))
    }

    /// Number of the member that sends a request.
    fn member(&self, caller: &Caller, headers: &HeaderMap) -> Result<NodeId, Rejection> {
        let host_id = self.door.host_id(caller, headers)?;
        let membership = self.exchange.membership();
        let member = membership.of_host(host_id);
        // The sender may have heard of this host before this host hears of the sender. That is no fault.
        let unknown = || {
            let text = format!("host {host_id} is not among the members here yet");
            Rejection(StatusCode::SERVICE_UNAVAILABLE, text)
        };
        member.map(|member| member.node).ok_or_else(unknown)
    }
}

/// Number in a header; 0 without the header.
fn number(headers: &HeaderMap, name: &str) -> Result<u64, Rejection> {
    let Some(value) = headers.get(name) else {
        return Ok(0);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| malformed(&format!("{name} is no number")))
}

fn malformed(text: &str) -> Rejection {
    Rejection(StatusCode::BAD_REQUEST, text.to_owned())
}

/// Answer with a block, which may have to be read from a lease.
async fn sent(hash: Hash, data: BlockData, is_moved: bool) -> Response {
    let kind = if is_moved { KIND_GLOBAL } else { KIND_LOCAL };
    let block = match data {
        BlockData::Memory(block) => Some(block),
        leased @ BlockData::Leased(_) => {
            let read = spawn_blocking(move || leased.read(&hash)).await;
            read.ok().flatten()
        }
    };
    block.map_or_else(missing, |block| found(block, kind))
}

async fn get_block(
    State(server): State<Arc<NodeServer>>,
    Extension(caller): Extension<Caller>,
    Path(digits): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Rejection> {
    let node = server.member(&caller, &headers)?;
    let hash = parsed(&digits)?;
    let reader = headers.get(READER).and_then(|value| value.to_str().ok());
    let reader = reader.and_then(|text| parse_reader(node, text));
    let reader = reader.ok_or_else(|| malformed("a request without gleaner-reader"))?;
    let exchange = &server.exchange;
    let is_forwarded = headers.contains_key(FORWARDED);
    match exchange.memory().serve(&hash, reader, is_forwarded) {
        BlockReply::Found(data, is_moved) => Ok(sent(hash, data, is_moved).await),
        BlockReply::Elsewhere(node) => {
            let membership = exchange.membership();
            let Some(holder) = membership.member(node) else {
                return Ok(missing());
            };
            let location = format!("https://{}{}", holder.host_id, block_path(&hash));
            let headers = [(header::LOCATION, location)];
            Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
        }
        BlockReply::UnderWay(block) if headers.contains_key(WAIT) => {
            let waited = timeout(exchange.fetch_wait(), block).await;
            match waited.ok().and_then(Result::ok).flatten() {
                Some((data, is_moved)) => Ok(sent(hash, data, is_moved).await),
                None => Ok(missing()),
            }
        }
        BlockReply::UnderWay(_) => Ok(StatusCode::ACCEPTED.into_response()),
        BlockReply::Missing => match exchange.join_fetch(&hash, node) {
            None => Ok(missing()),
            Some(fetch) if headers.contains_key(WAIT) => {
                fetch.wait().await;
                match exchange.memory().serve(&hash, reader, is_forwarded) {
                    BlockReply::Found(data, is_moved) => Ok(sent(hash, data, is_moved).await),
                    _ => Ok(missing()),
                }
            }
            Some(_) => Ok(StatusCode::ACCEPTED.into_response()),
        },
    }
}

async fn put_block(
    State(server): State<Arc<NodeServer>>,
    Extension(caller): Extension<Caller>,
    Path(digits): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Rejection> {
    let sender = server.member(&caller, &headers)?;
    let hash = parsed(&digits)?;
    let age_ms = number(&headers, AGE)?;
    let chances = u8::try_from(number(&headers, CHANCES)?);
    let chances = chances.map_err(|_| malformed("gleaner-chances is above 255"))?;
    let memory = server.exchange.memory();
    let outcome = memory.receive_put(sender, &hash, body.to_vec(), (age_ms, chances));
    if outcome != PutOutcome::Differs {
        server.exchange.landed(&hash);
    }
    match outcome {
        PutOutcome::Stored => Ok(StatusCode::CREATED.into_response()),
        PutOutcome::Known => Ok(StatusCode::OK.into_response()),
        PutOutcome::NoRoom => Ok(StatusCode::SERVICE_UNAVAILABLE.into_response()),
        PutOutcome::Differs => {
            server.exchange.accuse(sender);
            Err(malformed("the bytes have another hash"))
        }
    }
}

async fn update_directory(
    State(server): State<Arc<NodeServer>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(update): Json<NoticeUpdate>,
) -> Result<Response, Rejection> {
    let sender = server.member(&caller, &headers)?;
    let notices = update.messages(sender);
    let notices = notices.ok_or_else(|| {
        malformed("at most 1024 changes, each with 32 hexadecimal digits of a hash")
    })?;
    server.exchange.memory().receive_notices(sender, notices);
    Ok(StatusCode::NO_CONTENT.into_response())
}
