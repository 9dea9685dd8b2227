//! Connections to recruiters: from an address to a WebSocket (RFC 6455). Links of memory servers and of members
//! of a commons use it.

use gleaner_trust::Address;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// Timeout of each step: connection, TLS and upgrade.
const PATIENCE: Duration = Duration::from_secs(5);
/// The read buffer is small, since a link receives little.
const READ_BUFFER_BYTES: usize = 4 << 10;
/// Maximum length of a recruiter's refusal that is quoted.
const MOST_QUOTED_BYTES: usize = 300;

/// A stream of TCP, or TLS over TCP.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A WebSocket to a recruiter.
pub type Socket = WebSocketStream<Box<dyn Stream>>;

/// Maximum lengths of a connection's messages.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum length of a message from the recruiter.
    pub received_bytes: usize,
    /// Maximum number of unsent bytes, including answers to pings, for a recruiter that reads nothing.
    pub waiting_bytes: usize,
}

/// Certificates shown by a recruiter, and the name that they must have.
#[derive(Debug)]
pub struct PeerCertificates {
    /// Certificate of the recruiter, followed by the intermediate ones.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Name of the recruiter in its address.
    pub name: ServerName<'static>,
}

/// A connection to a recruiter.
pub struct RecruiterConnection {
    /// WebSocket over the connection.
    pub socket: Socket,
    /// Address that this host has on the connection.
    pub here: IpAddr,
    /// Certificates shown by the recruiter; `None` without TLS.
    pub shown: Option<PeerCertificates>,
}

/// Reason why no connection was made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebSocketError {
    /// The recruiter is unreachable, or does not accept this host.
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    /// The recruiter refuses the link.
    #[error("it answers {status}: {said}")]
    Answered {
        /// HTTP status of the answer.
        status: u16,
        /// Beginning of the answer's text.
        said: String,
    },
    /// The recruiter breaks the WebSocket protocol.
    #[error("{0}")]
    Socket(#[from] Box<Error>),
}

/// Connects to the link `path` of a recruiter: with TLS by `tls`, without TLS if it is `None`.
///
/// # Errors
/// [`WebSocketError`].
pub async fn connect(
    address: &Address,
    path: &str,
    tls: Option<Arc<ClientConfig>>,
    bounds: Bounds,
) -> Result<RecruiterConnection, WebSocketError> {
    let stream = in_time(TcpStream::connect((address.host(), address.port()))).await?;
    stream.set_nodelay(true).map_err(WebSocketError::Connect)?;
    let here = stream.local_addr().map_err(WebSocketError::Connect)?.ip();
    let mut shown = None;
    let stream: Box<dyn Stream> = match tls {
        Some(config) => {
            let name = ServerName::try_from(address.host().to_owned());
            let name = name.map_err(|e| WebSocketError::Connect(io::Error::other(e)))?;
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
    let url = format!("ws://{}{path}", address.authority());
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(0) // sends each message immediately
        .max_write_buffer_size(bounds.waiting_bytes)
        .max_message_size(Some(bounds.received_bytes))
        .max_frame_size(Some(bounds.received_bytes));
    let upgrade = client_async_with_config(url, stream, Some(config));
    match timeout(PATIENCE, upgrade).await {
        Err(_) => Err(WebSocketError::Connect(io::ErrorKind::TimedOut.into())),
        Ok(Ok((socket, _))) => Ok(RecruiterConnection {
            socket,
            here,
            shown,
        }),
        Ok(Err(Error::Http(answer))) => Err(WebSocketError::Answered {
            status: answer.status().as_u16(),
            said: answer.body().as_deref().map(quoted).unwrap_or_default(),
        }),
        Ok(Err(error)) => Err(Box::new(error).into()),
    }
}

async fn in_time<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, WebSocketError> {
    let done = timeout(PATIENCE, work).await;
    let done = done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    done.map_err(WebSocketError::Connect)
}

/// Makes one log line of arbitrary bytes that a recruiter has sent.
fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MOST_QUOTED_BYTES)]);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
