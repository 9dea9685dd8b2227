//! Connections: accepted, shaken hands with, and given up when they are slow.

use super::App;
use super::caller::Caller;
use super::refusal::Refusal;
use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use gleaner_trust::{Peer, ServerTrust};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

/// For a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// For the last words.
const PARTING: Duration = Duration::from_secs(2);
/// For the header of a stranger's request.
const STRANGER: Duration = Duration::from_secs(10);
/// The same for those with a certificate; this bounds the pause between two requests as well, and agents
/// send every few minutes.
const KNOWN: Duration = Duration::from_secs(900);
/// A header is a few hundred bytes.
const HEADER_BYTES: usize = 16 << 10;
/// After a failure to accept: out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves what comes to `socket`: by TLS where there is `trust`, else plainly to this machine.
pub(crate) async fn serve(
    socket: TcpListener,
    trust: Option<Arc<ServerTrust>>,
    app: Arc<App>,
    router: Router,
) {
    let router = match trust {
        Some(_) => router,
        None => router.layer(from_fn(not_for_pages)),
    };
    loop {
        let Ok((stream, address)) = socket.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(permit) = Arc::clone(&app.connections).try_acquire_owned() else {
            app.metrics.turned_away();
            continue;
        };
        let (trust, app, router) = (trust.clone(), Arc::clone(&app), router.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let _open = app.metrics.connection();
            let _ = stream.set_nodelay(true); // only delays
            if let Err(error) = talk(stream, address, trust, &app, router).await {
                app.refusals
                    .log(&address.ip().to_string(), &error.to_string());
                app.metrics.refused("connection");
            }
        });
    }
}

/// One connection; an error is one that nobody was told of over HTTP.
async fn talk(
    stream: TcpStream,
    address: SocketAddr,
    trust: Option<Arc<ServerTrust>>,
    app: &App,
    router: Router,
) -> io::Result<()> {
    let Some(trust) = trust else {
        let caller = Caller::local(address, app.local_access);
        return converse(stream, caller, app, router).await;
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
    converse(stream, caller, app, router).await
}

/// Without TLS the collector trusts this machine, but not the web pages that are open on it: they may neither send
/// (Origin) nor read by a name of their own that leads here (Host).
async fn not_for_pages(request: Request, next: Next) -> Response {
    if is_of_a_program(&request) {
        return next.run(request).await;
    }
    let why =
        "without TLS only programs of this machine are served, as 127.0.0.1, [::1] or localhost";
    Refusal::forbidden(why).into_response()
}

fn is_of_a_program(request: &Request) -> bool {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    let host = header(header::HOST).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let is_here = ["127.0.0.1", "localhost", "[::1]"].contains(&host);
    is_here && (header(header::ORIGIN).is_none() || request.method() == Method::GET)
}

/// Ends a connection whose other end has been told why: it would not see that if what it still sends met a
/// closed socket.
async fn part(mut stream: TcpStream) {
    let read = async {
        let _ = stream.shutdown().await; // it may have gone
        let mut unwanted = [0; 4096];
        while matches!(stream.read(&mut unwanted).await, Ok(1..)) {}
    };
    let _ = timeout(PARTING, read).await; // it goes on: the connection closes
}

async fn converse<S>(stream: S, caller: Caller, app: &App, router: Router) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let patience = if caller.is_known() { KNOWN } else { STRANGER };
    // Not a layer of the router: that would be a router for each of ten thousand connections.
    let routes = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        routes.call(request)
    });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(app.reader_patience));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(HEADER_BYTES)
        .half_close(true) // who has said all may still listen
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .await;
    match served {
        // A connection that ends or is quiet for long: the next request opens another.
        Err(e) if e.is_timeout() && patience == STRANGER => Err(io::Error::other(
            "no request in time; was it slow on purpose?",
        )),
        Err(e) if e.is_parse() => Err(io::Error::other(format!("not HTTP/1.1: {e}"))),
        _ => Ok(()),
    }
}
