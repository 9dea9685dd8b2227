//! Check of the recruiter, with the answer at its local address.

use crate::exchange;
use crate::finding::Finding;
use crate::message::Message;
use serde::Deserialize;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);

/// Answer of `GET /healthz`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Health {
    links_count: u64,
    grants_in_ms: i64,
}

/// Requests the recruiter's health. An error says why the request failed.
pub(crate) fn read(address: &str) -> Result<Health, String> {
    let failed = |e: std::io::Error| format!("http://{address}: {e}");
    let socket: SocketAddr = address
        .parse()
        .map_err(|_| format!("{address} is no address"))?;
    let mut stream = TcpStream::connect_timeout(&socket, PATIENCE).map_err(failed)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
    let answer = exchange::get(&mut stream, address, "/healthz").map_err(failed)?;
    serde_json::from_str(&answer.body).map_err(|_| {
        format!(
            "http://{address} answers {}, which is none of a recruiter's",
            answer.status
        )
    })
}

/// Judges the recruiter; `start` is the command that restarts it.
pub(crate) fn judge(health: &Result<Health, String>, address: &str, start: &str) -> Finding {
    match health {
        Err(why) => Finding::of(Message::StatusSilent, "status", why).remedy(start),
        Ok(health) if health.links_count == 0 && health.grants_in_ms == 0 => Finding::of(
            Message::NoHosts,
            "hosts",
            "no memory server is linked: nothing can be leased",
        ),
        Ok(health) if health.grants_in_ms > 0 => Finding::ok(
            "hosts",
            format!("{} linked; it has just started", health.links_count),
        ),
        Ok(health) => Finding::ok(
            "hosts",
            format!("{} linked (http://{address})", health.links_count),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recruiter_without_hosts_is_told_of_once_it_knows() {
        let judged = |links_count, grants_in_ms| {
            judge(
                &Ok(Health {
                    links_count,
                    grants_in_ms,
                }),
                "a",
                "start",
            )
            .message
        };
        assert_eq!(judged(0, 5), None);
        assert_eq!(judged(0, 0), Some(Message::NoHosts));
        assert_eq!(judged(2, 0), None);
        assert_eq!(
            judge(&Err("x".to_owned()), "a", "start").message,
            Some(Message::StatusSilent)
        );
        assert!(read("none").is_err() && read("127.0.0.1:1").is_err());
    }
}
