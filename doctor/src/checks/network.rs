//! Checks a connection to a server in steps: name, connection, TLS with the host's certificate, answer. Each
//! step has its own time and error.

use crate::command::within;
use crate::exchange::{self, Answer};
use crate::finding::Finding;
use crate::message::Message;
use gleaner_schemas::units::Seconds;
use gleaner_trust::Address;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, Stream};
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const SUBJECT: &str = "network";
/// Time limit of each step. A server on another continent answers within half a second.
const PATIENCE: Duration = Duration::from_secs(2);

/// Attempt to reach a server: the steps up to the first failure.
#[derive(Debug)]
pub(crate) struct Approach {
    url: String,
    address: Option<Address>,
    /// Text about each step that succeeded: its result and duration.
    steps: Vec<String>,
    /// Result of the last step, or the reason why it failed.
    end: Result<End, Trouble>,
}

/// Last step that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// Connected, but without TLS: the doctor's user may not read the certificate.
    Connected,
    Answered {
        status: u16,
        difference_ms: Option<i64>,
    },
}

/// Reason why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    Address(String),
    Unresolved(String),
    Refused,
    Timeout(&'static str),
    Connection(String),
    /// Another authority than ours issued the server's certificate.
    Authority,
    ServerExpired,
    ServerName,
    /// The server rejects our certificate.
    HostRefused(String),
    Tls(String),
    Answer(String),
}

/// Tries to reach the server and requests `path`. `tls` is the client's configuration; `None` if the
/// certificate cannot be read.
pub(crate) fn read(url: &str, tls: Option<Arc<ClientConfig>>, path: &str) -> Approach {
    let mut way = Approach {
        url: url.to_owned(),
        address: None,
        steps: Vec::new(),
        end: Err(Trouble::Timeout("answer")),
    };
    way.end = go(&mut way, tls, path);
    way
}

fn go(way: &mut Approach, tls: Option<Arc<ClientConfig>>, path: &str) -> Result<End, Trouble> {
    let address = Address::parse(&way.url).map_err(|e| Trouble::Address(e.to_string()))?;
    way.address = Some(address.clone());
    let begin = Instant::now();
    let addresses = resolve(&address)?;
    if let Some(first) = addresses
        .first()
        .filter(|first| first.ip().to_string() != address.host())
    {
        way.steps
            .push(format!("{} in {}", first.ip(), elapsed_text(begin)));
    }
    let begin = Instant::now();
    let mut stream = connect(&addresses)?;
    way.steps
        .push(format!("connected in {}", elapsed_text(begin)));
    let host = address.authority();
    if !address.is_secret() {
        let begin = Instant::now();
        let answer = exchange::get(&mut stream, host, path).map_err(|e| answer_trouble(&e))?;
        return Ok(answered(way, &answer, begin));
    }
    let Some(config) = tls else {
        return Ok(End::Connected);
    };
    let begin = Instant::now();
    let name = ServerName::try_from(address.host().to_owned());
    let name = name.map_err(|_| Trouble::ServerName)?;
    let connection = ClientConnection::new(config, name);
    let mut connection = connection.map_err(|e| Trouble::Tls(e.to_string()))?;
    while connection.is_handshaking() {
        connection
            .complete_io(&mut stream)
            .map_err(|e| tls_trouble(&e))?;
    }
    way.steps.push(format!("TLS in {}", elapsed_text(begin)));
    let begin = Instant::now();
    // In TLS 1.3, the client learns only after the handshake whether the server accepts its certificate.
    let mut stream = Stream::new(&mut connection, &mut stream);
    let answer = exchange::get(&mut stream, host, path).map_err(|e| tls_trouble(&e))?;
    Ok(answered(way, &answer, begin))
}

fn answered(way: &mut Approach, answer: &Answer, begin: Instant) -> End {
    way.steps.push(format!(
        "answer {} in {}",
        answer.status,
        elapsed_text(begin)
    ));
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    End::Answered {
        status: answer.status,
        difference_ms: answer
            .time_ms
            .map(|there_ms| there_ms.saturating_sub(now_ms)),
    }
}

fn resolve(address: &Address) -> Result<Vec<SocketAddr>, Trouble> {
    let (host, port) = (address.host().to_owned(), address.port());
    let asked = within(PATIENCE, move || {
        (host.as_str(), port)
            .to_socket_addrs()
            .map(Iterator::collect)
    });
    let found: Vec<SocketAddr> = asked
        .ok_or(Trouble::Unresolved(format!(
            "no answer within {} s",
            PATIENCE.as_secs()
        )))?
        .map_err(|e| Trouble::Unresolved(e.to_string()))?;
    match found.is_empty() {
        true => Err(Trouble::Unresolved("it has no address".to_owned())),
        false => Ok(found),
    }
}

/// Connects to these addresses in turn, until one accepts the connection.
fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Trouble> {
    let begin = Instant::now();
    let mut trouble = Trouble::Timeout("connection");
    for address in addresses {
        let left = PATIENCE.saturating_sub(begin.elapsed());
        if left.is_zero() {
            break;
        }
        let stream = TcpStream::connect_timeout(address, left).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        });
        trouble = match stream {
            Ok(stream) => return Ok(stream),
            Err(e) => match e.kind() {
                io::ErrorKind::ConnectionRefused => Trouble::Refused,
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                    Trouble::Timeout("connection")
                }
                _ => Trouble::Connection(e.to_string()),
            },
        };
    }
    Err(trouble)
}

fn answer_trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Trouble::Timeout("answer"),
        _ => Trouble::Answer(error.to_string()),
    }
}

/// Converts an error of a connection. Errors of rustls are wrapped in such an error.
fn tls_trouble(error: &io::Error) -> Trouble {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        None => answer_trouble(error),
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Trouble::Authority,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Trouble::ServerExpired
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Trouble::ServerName
            }
            other => Trouble::Tls(other.to_string()),
        },
        Some(rustls::Error::AlertReceived(alert)) => Trouble::HostRefused(format!("{alert:?}")),
        Some(other) => Trouble::Tls(other.to_string()),
    }
}

fn elapsed_text(begin: Instant) -> String {
    Seconds(begin.elapsed().as_secs_f64()).to_string()
}

/// Commands against faults, given by the caller: this module cannot know them.
pub(crate) struct NetworkRemedies<'a> {
    /// Name of the server: `collector` or `recruiter`.
    pub(crate) server: &'a str,
    /// Command that starts the server, if it is on this machine.
    pub(crate) start: String,
    /// Command that gets this host a new certificate.
    pub(crate) enrol: String,
    /// Command that edits the server's address in the configuration.
    pub(crate) address: String,
}

/// Judges the result of the attempt, and the difference between the clocks.
pub(crate) fn judge(way: &Approach, remedies: &NetworkRemedies<'_>) -> Vec<Finding> {
    let (url, server) = (&way.url, remedies.server);
    let host = way.address.as_ref().map_or("", Address::host);
    let port = way.address.as_ref().map_or(0, Address::port);
    let is_here = way.address.as_ref().is_some_and(Address::is_here);
    let there = |command: String| match is_here {
        true => command,
        false => format!("ssh {host} {command}"),
    };
    let so_far = match way.steps.as_slice() {
        [] => String::new(),
        steps => format!(" ({})", steps.join(", ")),
    };
    let of = |message, why: &str| Finding::of(message, SUBJECT, format!("{url}: {why}{so_far}"));
    let trouble = match &way.end {
        Ok(End::Connected) => {
            return vec![Finding::ok(
                SUBJECT,
                format!(
                    "{url}: {}; TLS not tried, as this user may not read the certificate",
                    way.steps.join(", ")
                ),
            )];
        }
        Ok(End::Answered {
            status: 200..=299,
            difference_ms,
        }) => {
            let mut findings = vec![Finding::ok(
                SUBJECT,
                format!("{url}: {}", way.steps.join(", ")),
            )];
            findings.extend(
                difference_ms
                    .and_then(|ms| super::clock::judge_difference(url, ms, super::clock::read())),
            );
            return findings;
        }
        Ok(End::Answered {
            status: status @ (401 | 403),
            ..
        }) => Trouble::HostRefused(format!("it answers {status}")),
        Ok(End::Answered { status, .. }) => Trouble::Answer(format!("it answers {status}")),
        Err(trouble) => trouble.clone(),
    };
    let issue = match server {
        "recruiter" => {
            format!("sudo gleaner pki issue --recruiter {host} -o /etc/gleaner/pki/recruiter")
        }
        _ => format!(
            "sudo gleaner pki issue --collector --name {host} -o /etc/gleaner/pki/collector"
        ),
    };
    let look = there(format!("sudo gleaner doctor {server}"));
    vec![match &trouble {
        Trouble::Address(why) => {
            Finding::of(Message::AddressWrong, SUBJECT, why).remedy(&remedies.address)
        }
        Trouble::Unresolved(why) => of(
            Message::NameUnresolved,
            &format!("the name {host} cannot be resolved: {why}"),
        )
        .remedy(format!("getent ahosts {host}")),
        Trouble::Refused => {
            let start = match is_here {
                true => remedies.start.clone(),
                false => there(format!("sudo systemctl start gleaner-{server}")),
            };
            of(Message::ConnectionRefused, "no program listens there").remedy(start)
        }
        Trouble::Timeout(what) => {
            let why = format!("no {what} within {} s", PATIENCE.as_secs());
            let remedy = there(format!(
                "sudo nft add rule inet filter input tcp dport {port} accept"
            ));
            of(Message::ConnectionTimeout, &why).remedy(remedy)
        }
        Trouble::Connection(why) => {
            of(Message::ConnectionFails, why).remedy(format!("ip route get {host}"))
        }
        Trouble::Authority => {
            let why = format!(
                "its certificate is not of the authority that this host trusts; TOKEN by `gleaner pki token` on the {server}"
            );
            of(Message::AuthorityOther, &why).remedy(&remedies.enrol)
        }
        Trouble::ServerExpired => {
            of(Message::ServerExpired, "its certificate has ended").remedy(there(issue))
        }
        Trouble::ServerName => of(
            Message::ServerName,
            &format!("its certificate does not name {host}"),
        )
        .remedy(there(issue)),
        Trouble::HostRefused(why) => {
            let why = format!(
                "it refuses this host's certificate ({why}); TOKEN by `gleaner pki token` on the collector"
            );
            of(Message::HostRefused, &why).remedy(&remedies.enrol)
        }
        Trouble::Tls(why) | Trouble::Answer(why) => of(Message::AnswerWrong, why).remedy(look),
    }]
}

#[cfg(test)]
mod tests;
