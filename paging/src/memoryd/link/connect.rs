//! Connects to a recruiter: from an address to a WebSocket.

use super::LinkError;
use super::identity::Identity;
use crate::entrance::Entrance;
use gleaner_schemas::lending::MOST_REVOCATIONS_BYTES;
use gleaner_trust::Address;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Timeout of each step: connection, TLS and upgrade.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a message: that of revocation lists with escaped line ends and the JSON around them. A
/// request has only a few hundred bytes.
const LONGEST_MESSAGE_BYTES: usize =
    MOST_REVOCATIONS_BYTES + MOST_REVOCATIONS_BYTES / 16 + (64 << 10);
/// Maximum number of unsent bytes, including answers to pings, for a recruiter that reads nothing. The
/// largest possible announcement, whose names consist of control characters, has half as many.
const MOST_WAITING_BYTES: usize = 8 << 20;
/// The read buffer is small, since there is only one connection, and it receives little.
const READ_BUFFER_BYTES: usize = 4 << 10;

/// A stream of TCP, or TLS over TCP.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Certificates shown by a recruiter, and the name that they must have.
#[derive(Debug)]
pub(super) struct PeerCertificates {
    pub(super) certificates: Vec<CertificateDer<'static>>,
    pub(super) name: ServerName<'static>,
}

/// A connection to a recruiter.
pub(super) struct RecruiterConnection {
    pub(super) socket: Socket,
    /// Address that this host has on the connection.
    pub(super) here: IpAddr,
    /// Certificates shown by the recruiter; `None` without TLS.
    pub(super) shown: Option<PeerCertificates>,
}

/// Connects to a recruiter as this host. Refuses a recruiter whose certificate is revoked.
pub(super) async fn connect(
    address: &Address,
    host_id: &str,
    identity: &Identity,
    entrance: &Entrance,
) -> Result<RecruiterConnection, LinkError> {
    let trust = match address.is_secret() {
        true => Some(identity.now()?),
        false => None,
    };
    let stream = in_time(TcpStream::connect((address.host(), address.port()))).await?;
    stream.set_nodelay(true).map_err(LinkError::Connect)?;
    let here = stream.local_addr().map_err(LinkError::Connect)?.ip();
    let mut shown = None;
    let stream: Box<dyn Stream> = match trust {
        Some(trust) => {
            let name = ServerName::try_from(address.host().to_owned());
            let name = name.map_err(|e| LinkError::Connect(io::Error::other(e)))?;
            let credentials = trust.credentials();
            let config = credentials.config_by_lists(entrance.lists())?;
            let connecting = TlsConnector::from(config).connect(name.clone(), stream);
            let stream = in_time(connecting).await?;
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
            shown = Some(PeerCertificates {
                certificates: certificates
                    .iter()
                    .map(|c| c.clone().into_owned())
                    .collect(),
                name,
            });
            Box::new(stream)
        }
        None => Box::new(stream),
    };
    // TLS, if any, is below the WebSocket.
    let url = format!("ws://{}/v1/hosts/{host_id}/link", address.authority());
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0) // sends each message immediately
        .max_write_buffer_size(MOST_WAITING_BYTES)
        .max_message_size(Some(LONGEST_MESSAGE_BYTES))
        .max_frame_size(Some(LONGEST_MESSAGE_BYTES));
    let upgrade = client_async_with_config(url, stream, Some(config));
    match timeout(PATIENCE, upgrade).await {
        Err(_) => Err(LinkError::Connect(io::ErrorKind::TimedOut.into())),
        Ok(Ok((socket, _))) => Ok(RecruiterConnection {
            socket,
            here,
            shown,
        }),
        Ok(Err(Error::Http(answer))) => Err(LinkError::Answered {
            status: answer.status().as_u16(),
            said: answer.body().as_deref().map(said).unwrap_or_default(),
        }),
        Ok(Err(error)) => Err(Box::new(error).into()),
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, LinkError> {
    let done = timeout(PATIENCE, work).await;
    let done = done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    done.map_err(LinkError::Connect)
}

/// Makes one log line of arbitrary bytes that a recruiter has sent.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(300)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
