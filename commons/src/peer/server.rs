//! Answers to the other members' requests.

use super::cluster::Cluster;
use super::door::{self, MemberDoor, Rejection, found, missing, no_member, parsed};
use super::wire::{DirectoryUpdate, KIND_LOCAL, WAIT, block_path};
use crate::catalog::Hash;
use crate::directory::{Member, Referral};
use crate::hold::PutResult;
use crate::store::{Block, BlockStore};
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gleaner_daemon::listen::Caller;
use std::sync::Arc;

/// This host's memory, as the other members use it.
pub struct BlockServer {
    door: Arc<MemberDoor>,
    cluster: Arc<Cluster>,
    store: Arc<BlockStore>,
}

impl BlockServer {
    /// Makes the server of the commons of this name.
    #[must_use]
    pub fn new(commons: &str, cluster: Arc<Cluster>, store: Arc<BlockStore>) -> Self {
        Self {
            door: Arc::new(MemberDoor::new(commons)),
            cluster,
            store,
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

    /// Member that sends a request.
    fn member(&self, caller: &Caller, headers: &HeaderMap) -> Result<&Member, Rejection> {
        let host_id = self.door.host_id(caller, headers)?;
        let member = self.cluster.membership().of_host(host_id);
        member.ok_or_else(|| no_member(host_id))
    }

    /// A block in this host's memory.
    fn memory(&self, hash: &Hash) -> Option<Block> {
        let held = self.cluster.hold().get(hash);
        held.or_else(|| self.store.peek(hash))
    }
}

async fn get_block(
    State(server): State<Arc<BlockServer>>,
    Extension(caller): Extension<Caller>,
    Path(digits): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Rejection> {
    let reader = server.member(&caller, &headers)?.node;
    let hash = parsed(&digits)?;
    if let Some(block) = server.memory(&hash) {
        return Ok(found(block, KIND_LOCAL));
    }
    let cluster = &server.cluster;
    if !cluster.is_home(&hash) {
        cluster.lacks(&hash);
        return Ok(missing());
    }
    match cluster.refer(&hash, reader) {
        Referral::Holder(node) => {
            let Some(holder) = cluster.membership().member(node) else {
                return Ok(missing());
            };
            let location = format!("https://{}{}", holder.host_id, block_path(&hash));
            let headers = [(header::LOCATION, location)];
            Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
        }
        Referral::UnderWay(pending) if headers.contains_key(WAIT) => {
            pending.wait().await;
            Ok(server
                .memory(&hash)
                .map_or_else(missing, |block| found(block, KIND_LOCAL)))
        }
        Referral::UnderWay(_) => Ok(StatusCode::ACCEPTED.into_response()),
        Referral::Source => Ok(missing()),
    }
}

async fn put_block(
    State(server): State<Arc<BlockServer>>,
    Extension(caller): Extension<Caller>,
    Path(digits): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Rejection> {
    let sender = server.member(&caller, &headers)?.node;
    let hash = parsed(&digits)?;
    let cluster = &server.cluster;
    if !cluster.is_home(&hash) {
        let text = "another host is the block's home: are the lists of members equal?";
        return Err(Rejection(StatusCode::SERVICE_UNAVAILABLE, text.to_owned()));
    }
    let stored = cluster.hold().put(&hash, body.to_vec());
    if stored == PutResult::Differs {
        cluster.accuse(sender);
        let text = "the bytes have another hash";
        return Err(Rejection(StatusCode::BAD_REQUEST, text.to_owned()));
    }
    cluster.directory().landed(&hash);
    let status = match stored {
        PutResult::Stored => StatusCode::CREATED,
        PutResult::Known => StatusCode::OK,
        PutResult::NoRoom | PutResult::Differs => StatusCode::SERVICE_UNAVAILABLE,
    };
    Ok(status.into_response())
}

async fn update_directory(
    State(server): State<Arc<BlockServer>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(update): Json<DirectoryUpdate>,
) -> Result<Response, Rejection> {
    let holder = server.member(&caller, &headers)?.node;
    let changes = update.changes().ok_or_else(|| {
        let text = "at most 1024 changes, each with a hash of 64 hexadecimal digits";
        Rejection(StatusCode::BAD_REQUEST, text.to_owned())
    })?;
    // Entries of blocks with another home would never be found.
    let changes: Vec<_> = changes
        .into_iter()
        .filter(|change| server.cluster.is_home(&change.hash))
        .collect();
    let directory = server.cluster.directory();
    directory.enter(holder, update.generation, &changes);
    Ok(StatusCode::NO_CONTENT.into_response())
}
