//! Answers to the other members' requests.

use super::cluster::Cluster;
use super::wire::{COMMONS, DirectoryUpdate, KIND, KIND_LOCAL, WAIT, block_path, parse_hash};
use crate::catalog::{BLOCK_BYTES, Hash};
use crate::directory::{Member, Referral};
use crate::hold::PutResult;
use crate::store::{Block, BlockStore};
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use gleaner_daemon::listen::{Caller, CallerIdentity, Log, Server};
use gleaner_trust::Peer;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Maximum size of an update of the directory; one with the most changes has some 70 KiB.
const UPDATE_BYTES: usize = 128 << 10;

/// This host's memory, as the other members use it.
pub struct BlockServer {
    commons: String,
    cluster: Arc<Cluster>,
    store: Arc<BlockStore>,
    log: Log,
}

/// A request that is not served.
struct Rejection(StatusCode, String);

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

impl BlockServer {
    /// Makes the server of the commons of this name.
    #[must_use]
    pub fn new(commons: &str, cluster: Arc<Cluster>, store: Arc<BlockStore>) -> Self {
        Self {
            commons: commons.to_owned(),
            cluster,
            store,
            log: Log::default(),
        }
    }

    /// Routes for the other members.
    pub fn router(self: &Arc<Self>) -> Router {
        let block_bytes = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
        let blocks = get(get_block).put(put_block);
        let directory = post(update_directory);
        Router::new()
            .route(
                "/v1/blocks/{hash}",
                blocks.layer(DefaultBodyLimit::max(block_bytes)),
            )
            .route(
                "/v1/directory",
                directory.layer(DefaultBodyLimit::max(UPDATE_BYTES)),
            )
            .with_state(Arc::clone(self))
    }

    /// Member that sends a request. Only hosts' certificates of members are served.
    fn member(&self, caller: &Caller, headers: &HeaderMap) -> Result<&Member, Rejection> {
        let identity = caller
            .who()
            .map_err(|e| Rejection(StatusCode::UNAUTHORIZED, e.to_string()))?;
        let forbidden = |text: String| Rejection(StatusCode::FORBIDDEN, text);
        let CallerIdentity::Known(Peer::Host(host_id)) = identity else {
            let text = "only hosts are served, with their certificates";
            return Err(forbidden(text.to_owned()));
        };
        let commons = headers.get(COMMONS).and_then(|name| name.to_str().ok());
        if commons != Some(self.commons.as_str()) {
            let text = format!("this host belongs to the commons {}", self.commons);
            return Err(forbidden(text));
        }
        let member = self.cluster.membership().of_host(host_id);
        member.ok_or_else(|| forbidden(format!("host {host_id} is not among the members here")))
    }

    /// A block in this host's memory.
    fn memory(&self, hash: &Hash) -> Option<Block> {
        let held = self.cluster.hold().get(hash);
        held.or_else(|| self.store.peek(hash))
    }

    fn complain(&self, sender: &str, words: &str) {
        if let Some(line) = self.log.news(sender, words) {
            eprintln!("gleaner-commons: refused {line}");
        }
    }
}

impl Server for BlockServer {
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
        Rejection(StatusCode::FORBIDDEN, why.to_owned()).into_response()
    }
}

fn parsed(digits: &str) -> Result<Hash, Rejection> {
    let wrong = || Rejection(StatusCode::BAD_REQUEST, "this is no hash".to_owned());
    parse_hash(digits).ok_or_else(wrong)
}

fn found(block: Block) -> Response {
    let kind = [(KIND, KIND_LOCAL)];
    let body = Body::from(Bytes::from_owner(BlockBytes(block)));
    (kind, body).into_response()
}

fn missing() -> Response {
    StatusCode::NOT_FOUND.into_response()
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
        return Ok(found(block));
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
            Ok(server.memory(&hash).map_or_else(missing, found))
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
