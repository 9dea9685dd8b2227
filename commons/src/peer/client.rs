//! Requests to other members. Connections are kept for further requests.

use super::resolver::{MemberAddresses, MemberResolver};
use super::wire::{COMMONS, KIND, KIND_GLOBAL, WAIT, block_path};
use crate::answer::{BUFFER_BYTES, body};
use crate::catalog::{BLOCK_BYTES, Hash};
use crate::directory::Member;
use crate::store::{Block, checked};
use gleaner_trust::{ClientTrust, Credentials, TrustError, http};
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use ureq::http::header::LOCATION;
use ureq::http::{Response, Uri};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

/// Number of idle connections to one member that are kept.
const IDLE_PER_MEMBER: usize = 32;
/// Number of idle connections that are kept.
const IDLE: usize = 1024;
/// Time for which an idle connection is kept.
const IDLE_AGE: Duration = Duration::from_secs(600);

/// Answer to a request for a block.
#[derive(Debug)]
pub(super) enum BlockAnswer {
    /// The block, whose hash was checked.
    Found(Block),
    /// The member with this host id holds the block.
    Elsewhere(String),
    /// Another member fetches the block now.
    UnderWay,
    /// The member does not have the block.
    Missing,
}

/// Names and values of a request's headers.
pub(super) type RequestHeaders<'a> = &'a [(&'a str, &'a str)];

/// Answer to a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PutAnswer {
    /// The member holds the block now.
    Held,
    /// The member has no room for it.
    NoRoom,
}

/// Failure of a request to a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerFault {
    /// The member cannot be reached, or has another certificate.
    #[error("cannot be reached: {0}")]
    Gone(String),
    /// The member did not answer in time.
    #[error("did not answer in time")]
    TimedOut,
    /// The member rejects this host.
    #[error("rejects this host: {0}")]
    Rejected(String),
    /// The answer breaks the protocol, or is another block.
    #[error("answered wrongly: {0}")]
    Wrong(String),
}

/// Client of all other members.
pub(super) struct BlockClient {
    commons: String,
    addresses: MemberAddresses,
    trust: Arc<ClientTrust>,
    /// Agent, and the generation of its certificates.
    agent: Mutex<(u64, Agent)>,
}

impl BlockClient {
    /// Makes a client for the commons of this name.
    ///
    /// # Errors
    /// [`TrustError::Key`] if TLS cannot use the private key.
    pub(super) fn new(
        commons: &str,
        addresses: MemberAddresses,
        trust: Arc<ClientTrust>,
    ) -> Result<Self, TrustError> {
        let generation = trust.generation();
        let agent = agent(&trust.credentials(), &addresses)?;
        Ok(Self {
            commons: commons.to_owned(),
            addresses,
            trust,
            agent: Mutex::new((generation, agent)),
        })
    }

    /// Requests a block. With `waits`, the member waits for a fetch that is under way.
    pub(super) fn get(
        &self,
        member: &Member,
        hash: &Hash,
        waits: bool,
        timeout: Duration,
    ) -> Result<BlockAnswer, PeerFault> {
        let headers: RequestHeaders<'_> = if waits { &[(WAIT, "true")] } else { &[] };
        let answered = self.request(member, hash, headers, timeout);
        answered.map(|(answer, _)| answer)
    }

    /// Requests a block with more headers. The second result is true if the member kept no copy of it.
    pub(super) fn request(
        &self,
        member: &Member,
        hash: &Hash,
        headers: RequestHeaders<'_>,
        timeout: Duration,
    ) -> Result<(BlockAnswer, bool), PeerFault> {
        let url = format!("https://{}{}", member.host_id, block_path(hash));
        let mut request = self.agent().get(url).header(COMMONS, &self.commons);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.config().timeout_global(Some(timeout));
        let mut answer = request.build().call().map_err(fault)?;
        let kind = answer.headers().get(KIND);
        let is_moved = kind.is_some_and(|kind| kind == KIND_GLOBAL);
        let answer = match answer.status().as_u16() {
            200 => {
                let bytes = match body(&mut answer, BLOCK_BYTES) {
                    Err(ureq::Error::BodyExceedsLimit(_)) => {
                        return Err(PeerFault::Wrong(format!("more than {BLOCK_BYTES} bytes")));
                    }
                    other => other.map_err(fault)?,
                };
                let count = bytes.len();
                let block = checked(hash, bytes).ok_or_else(|| {
                    PeerFault::Wrong(format!("{count} bytes that have another hash"))
                })?;
                BlockAnswer::Found(block)
            }
            202 => BlockAnswer::UnderWay,
            307 => BlockAnswer::Elsewhere(location(&answer)?),
            404 | 503 => BlockAnswer::Missing,
            _ => return Err(rejection(&mut answer)),
        };
        Ok((answer, is_moved))
    }

    /// Gives a block to a member, which holds it for others.
    pub(super) fn put(
        &self,
        member: &Member,
        (hash, block): (&Hash, &Block),
        headers: RequestHeaders<'_>,
        timeout: Duration,
    ) -> Result<PutAnswer, PeerFault> {
        let url = format!("https://{}{}", member.host_id, block_path(hash));
        let mut request = self.agent().put(url).header(COMMONS, &self.commons);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.config().timeout_global(Some(timeout));
        let answer = request.build().send(block.as_slice());
        let mut answer = answer.map_err(fault)?;
        match answer.status().as_u16() {
            200 | 201 => Ok(PutAnswer::Held),
            409 | 429 | 503 => Ok(PutAnswer::NoRoom),
            _ => Err(rejection(&mut answer)),
        }
    }

    /// Sends changes of this host's blocks to their home, or to the host with their directory entries.
    pub(super) fn update<T: Serialize>(
        &self,
        member: &Member,
        update: &T,
        timeout: Duration,
    ) -> Result<(), PeerFault> {
        let url = format!("https://{}/v1/directory", member.host_id);
        let request = self.agent().post(url).header(COMMONS, &self.commons);
        let request = request.config().timeout_global(Some(timeout));
        let mut answer = request.build().send_json(update).map_err(fault)?;
        match answer.status().as_u16() {
            // A host that does not know this one yet forgets nothing: its readers ask elsewhere.
            200 | 204 | 503 => Ok(()),
            _ => Err(rejection(&mut answer)),
        }
    }

    /// Agent with the present certificates. If new ones are unusable, the former stay in use.
    fn agent(&self) -> Agent {
        let generation = self.trust.generation();
        let mut current = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != generation
            && let Ok(agent) = agent(&self.trust.credentials(), &self.addresses)
        {
            *current = (generation, agent);
        }
        current.1.clone()
    }
}

fn agent(credentials: &Credentials, addresses: &MemberAddresses) -> Result<Agent, TrustError> {
    let config = Agent::config_builder()
        .tls_config(http::tls(credentials)?)
        .http_status_as_error(false)
        .max_redirects(0) // the caller decides, and asks members alone
        .max_redirects_will_error(false)
        .proxy(None)
        .input_buffer_size(BUFFER_BYTES)
        .output_buffer_size(BUFFER_BYTES)
        .max_idle_connections(IDLE)
        .max_idle_connections_per_host(IDLE_PER_MEMBER)
        .max_idle_age(IDLE_AGE)
        .accept_encoding("identity")
        .user_agent(concat!("gleaner-commons/", env!("CARGO_PKG_VERSION")))
        .build();
    let resolver = MemberResolver::new(addresses.clone());
    Ok(Agent::with_parts(config, DefaultConnector::new(), resolver))
}

/// Host id in the header `Location: https://HOST_ID/…`.
fn location(answer: &Response<Body>) -> Result<String, PeerFault> {
    let named = || {
        let text = answer.headers().get(LOCATION)?.to_str().ok()?;
        Some(text.parse::<Uri>().ok()?.host()?.to_owned())
    };
    named().ok_or_else(|| PeerFault::Wrong("a redirect without a host".to_owned()))
}

/// Most bytes of a member's text that is logged.
const MOST_TEXT_BYTES: u64 = 300;

fn rejection(answer: &mut Response<Body>) -> PeerFault {
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(MOST_TEXT_BYTES);
    let text = body.read_to_string().unwrap_or_default();
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let text = format!("{status}: {text}");
    match status.as_u16() {
        401 | 403 => PeerFault::Rejected(text),
        _ => PeerFault::Wrong(text),
    }
}

fn fault(error: ureq::Error) -> PeerFault {
    match error {
        ureq::Error::Timeout(_) => PeerFault::TimedOut,
        ureq::Error::Protocol(_) | ureq::Error::LargeResponseHeader(..) => {
            PeerFault::Wrong(error.to_string())
        }
        other => PeerFault::Gone(other.to_string()),
    }
}
