//! Accepts connections, makes handshakes, and closes connections that are too slow.

use super::Caller;
use crate::shares::{Place, Shares};
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use gleaner_trust::{Peer, ServerTrust};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// Timeout of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Timeout for reading the client's further bytes before the connection is closed.
const PARTING: Duration = Duration::from_secs(2);
/// Maximum duration of a stranger's connection: a host that enrols sends one or two requests.
const STRANGER_STAYS: Duration = Duration::from_secs(30);
/// Timeout of the header of a stranger's request.
const STRANGER: Duration = Duration::from_secs(10);
/// Timeout of the header of a request from a client with a certificate. This also limits the pause between
/// two requests; agents send every few minutes. Upgraded connections and answers in progress are exempt.
const KNOWN: Duration = Duration::from_secs(900);
/// Maximum size of a request's header; a usual header has some hundred bytes.
const HEADER_BYTES: usize = 16 << 10;
/// Pause after a connection could not be accepted, for example because no file descriptor is left.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of connections.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Permits, one for each connection. Listeners that share this semaphore share the limit.
    pub connections: Arc<Semaphore>,
    /// Share of each caller with a certificate in these connections; `None`: one caller may take all of them.
    pub shares: Option<Arc<Shares>>,
    /// Time without progress after which a client that reads an answer is disconnected.
    pub reader_timeout: Duration,
}

/// Callbacks of a server about its connections.
pub trait Server: Send + Sync + 'static {
    /// Called for a new connection; the returned value is dropped when the connection ends.
    fn opened(&self) -> Box<dyn Send>;
    /// Called if there is no permit for another connection.
    fn connection_rejected(&self);
    /// Called if a connection ended without an HTTP answer that states the reason.
    fn failed(&self, address: SocketAddr, error: &io::Error);
    /// Makes the answer (403) for requests that are not allowed over plain HTTP, in the server's own form.
    fn forbidden(&self, why: &str) -> Response;
}

/// Serves connections to `socket`: with TLS if there is `trust`, otherwise plainly to this machine.
pub async fn serve(
    socket: TcpListener,
    trust: Option<Arc<ServerTrust>>,
    limits: Limits,
    server: Arc<dyn Server>,
    router: Router,
) {
    let router = match trust {
        Some(_) => router,
        None => {
            let server = Arc::clone(&server);
            router.layer(from_fn(move |request, next| {
                not_for_pages(Arc::clone(&server), request, next)
            }))
        }
    };
    loop {
        let Ok((stream, address)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&limits.connections).try_acquire_owned() else {
            server.connection_rejected();
            continue;
        };
        let (trust, server, router) = (trust.clone(), Arc::clone(&server), router.clone());
        let limits = limits.clone();
        tokio::spawn(async move {
            let guard: Box<dyn Send> = Box::new((permit, server.opened()));
            let _ = stream.set_nodelay(true); // if this fails, messages are only delayed
            if let Err(error) = talk(stream, address, trust, &limits, router, guard).await {
                server.failed(address, &error);
            }
        });
    }
}

/// Serves one connection; returns an error that was not reported over HTTP.
async fn talk(
    stream: TcpStream,
    address: SocketAddr,
    trust: Option<Arc<ServerTrust>>,
    limits: &Limits,
    router: Router,
    guard: Box<dyn Send>,
) -> io::Result<()> {
    let patience = limits.reader_timeout;
    let Some(trust) = trust else {
        let stream = GuardedStream {
            stream,
            _guard: guard,
        };
        return converse(stream, Caller::local(address), patience, router).await;
    };
    let generation = trust.generation();
    let shaking = TlsAcceptor::from(trust.config()).accept(stream);
    let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "no TLS handshake in time");
    let shaken = timeout(HANDSHAKE, shaking.into_fallible()).await;
    let stream = match shaken.map_err(slow)? {
        Ok(stream) => stream,
        Err((error, stream)) => {
            part(stream).await;
            return Err(error);
        }
    };
    let chain = stream.get_ref().1.peer_certificates();
    let caller = match chain.and_then(|chain| Some((chain, chain.first()?))) {
        None => Caller::anonymous(address),
        Some((chain, first)) => {
            let peer = Peer::of(first).map_err(io::Error::other)?;
            let chain = chain.iter().map(|c| c.clone().into_owned()).collect();
            Caller::known(address, peer, chain, generation, trust)
        }
    };
    let place = take_share(limits, &caller)?;
    let stream = GuardedStream {
        stream,
        _guard: Box::new((guard, place)),
    };
    converse(stream, caller, patience, router).await
}

/// Counts a connection among those of its caller, until the result is dropped. Returns an error if the caller has
/// used up its share.
fn take_share(limits: &Limits, caller: &Caller) -> io::Result<Option<Place>> {
    let Some(shares) = limits.shares.as_ref().filter(|_| caller.is_known()) else {
        return Ok(None);
    };
    let name = caller.name();
    let place = shares.take(&name).ok_or_else(|| {
        let most = shares.connections_limit();
        io::Error::other(format!(
            "{name} has {most} connections, which is its share of connections_limit"
        ))
    })?;
    Ok(Some(place))
}

/// Rejects requests of web pages. Without TLS, programs of this machine are trusted, but not the pages in its
/// browser. A page may neither send (its requests have an Origin) nor read answers through a host name that
/// points to this machine (seen in Host).
async fn not_for_pages(server: Arc<dyn Server>, request: Request, next: Next) -> Response {
    if is_of_a_program(&request) {
        return next.run(request).await;
    }
    server.forbidden(
        "without TLS only programs of this machine are served, as 127.0.0.1, [::1] or localhost",
    )
}

fn is_of_a_program(request: &Request) -> bool {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    let host = header(header::HOST).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host);
    // A page's WebSocket is also a GET with an Origin, but it can send.
    let only_reads =
        request.method() == Method::GET && !request.headers().contains_key(header::UPGRADE);
    is_here && (header(header::ORIGIN).is_none() || only_reads)
}

/// Closes a connection after the reason was sent. Reads the client's further bytes first: if they met a
/// closed socket, the client would not receive the reason.
async fn part(mut stream: TcpStream) {
    let read = async {
        let _ = stream.shutdown().await; // the other end may have gone
        let mut unwanted = [0; 4096];
        while matches!(stream.read(&mut unwanted).await, Ok(1..)) {}
    };
    let _ = timeout(PARTING, read).await; // the connection closes, even if the client still sends
}

async fn converse<S>(
    stream: S,
    caller: Caller,
    reader_timeout: Duration,
    router: Router,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let is_known = caller.is_known();
    let patience = if is_known { KNOWN } else { STRANGER };
    // The caller is added here, not by a layer of the router: a layer would need one router for each of ten
    // thousand connections.
    let routes = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        routes.call(request)
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(reader_timeout));
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(HEADER_BYTES)
        .half_close(true) // a client that has sent everything may still read
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .with_upgrades();
    let served = if is_known {
        serving.await
    } else {
        // The timeout of the header does not end a slow body, so the whole connection has a timeout.
        let slow = |_| io::Error::other("a stranger stayed for too long; was it slow on purpose?");
        timeout(STRANGER_STAYS, serving).await.map_err(slow)?
    };
    match served {
        // A known caller's connection may end or be unused for long: the next request opens another.
        Err(e) if e.is_timeout() && patience == STRANGER => Err(io::Error::other(
            "no request in time; was it slow on purpose?",
        )),
        Err(e) if e.is_parse() => Err(io::Error::other(format!("not HTTP/1.1: {e}"))),
        _ => Ok(()),
    }
}

/// A stream with a guard that must live as long: an upgraded stream outlives the task that accepted it.
struct GuardedStream<S> {
    stream: S,
    _guard: Box<dyn Send>,
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
