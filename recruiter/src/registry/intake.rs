//! Checks announcements and answers against the limits of a host. So no host takes more of the recruiter's
//! memory than these limits allow.

use super::HostId;
use gleaner_schemas::lending::{
    Announcement, Lease, Outcome, Refusal, RefusalKind, RequestKind, SLAB_BYTES, VERSION,
};

/// Maximum number of leases of one host. An announcement of so many leases has the maximum length of a
/// message.
pub(super) const MOST_LEASES: usize = 16_384;
/// Maximum length of a client's name and of a lease's key. Memory servers grant no lease with longer ones.
const NAME_BYTES: usize = 256;
/// Maximum length of a version, and of the name of a memory server's run.
const SHORT_BYTES: usize = 64;
/// Maximum length of an address: a full domain name and a port.
const ADDRESS_BYTES: usize = 262;
/// Maximum length of a Unix socket's path, as the kernel has it.
const SOCKET_BYTES: usize = 107;
/// Maximum number of entries of an outlook.
const MOST_OUTLOOKS: usize = 256;

pub(super) fn check(host_id: &HostId, said: &Announcement) -> Result<(), Refusal> {
    if said.version != VERSION {
        return Err(malformed(format!(
            "this recruiter speaks version {VERSION} of the link and the memory server version {}: install the same release on both",
            said.version
        )));
    }
    if said.quota.host_id != **host_id {
        return Err(malformed(format!(
            "the link of host {host_id} announced the quota of host {:?}",
            shown(&said.quota.host_id)
        )));
    }
    let address = said.address.as_deref().unwrap_or_default();
    let socket = said.pages_socket.as_deref().unwrap_or_default();
    for (what, text, most) in [
        ("version", said.memoryd_version.as_str(), SHORT_BYTES),
        ("incarnation", &said.incarnation, SHORT_BYTES),
        ("address", address, ADDRESS_BYTES),
        ("pages_socket", socket, SOCKET_BYTES),
    ] {
        bounded(what, text, most)?;
    }
    for (what, count, most) in [
        ("leases", said.leases.len(), MOST_LEASES),
        ("outlooks", said.quota.outlook.len(), MOST_OUTLOOKS),
    ] {
        if count > most {
            return Err(malformed(format!(
                "{count} {what} were announced, and the maximum is {most}"
            )));
        }
    }
    said.leases.iter().try_for_each(check_lease)?;
    let mut ids: Vec<&str> = said.leases.iter().map(|l| l.lease_id.as_str()).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(malformed("a lease was announced twice".to_owned()));
    }
    Ok(())
}

/// Checks that `outcome` answers `asked`. The lease, its client, its key and its size must be those of the
/// request.
///
/// # Errors
/// The contradiction between request and answer.
pub(crate) fn check_answer(asked: &RequestKind, outcome: &Outcome) -> Result<(), Refusal> {
    let is_answer = match (asked, outcome) {
        (_, Outcome::Refused(_)) => true,
        (RequestKind::Grant(request), Outcome::Granted { lease }) => {
            check_lease(lease)?;
            let size = request.bytes.checked_next_multiple_of(SLAB_BYTES);
            lease.client == request.client
                && lease.key == request.key
                && Some(lease.granted_bytes) == size
        }
        (
            RequestKind::Renew {
                client, lease_id, ..
            },
            Outcome::Renewed { lease },
        ) => {
            check_lease(lease)?;
            let is_theirs = client.as_ref().is_none_or(|client| lease.client == *client);
            lease.lease_id == *lease_id && is_theirs
        }
        (RequestKind::Release { lease_id, .. }, Outcome::Released { lease_id: ended }) => {
            lease_id == ended
        }
        _ => false,
    };
    if is_answer {
        return Ok(());
    }
    Err(malformed(
        "the host's answer contradicts the request: another kind, lease, client, key or size"
            .to_owned(),
    ))
}

fn check_lease(lease: &Lease) -> Result<(), Refusal> {
    if lease.client.is_empty() {
        return Err(malformed("a lease without a client".to_owned()));
    }
    bounded("lease's id", &lease.lease_id, SHORT_BYTES)?;
    bounded("client's name", &lease.client, NAME_BYTES)?;
    bounded("lease's key", &lease.key, NAME_BYTES)
}

fn bounded(what: &str, text: &str, most: usize) -> Result<(), Refusal> {
    if text.len() <= most {
        return Ok(());
    }
    Err(malformed(format!(
        "a {what} of {} bytes, and the maximum is {most}",
        text.len()
    )))
}

/// Beginning of a text that a stranger sent, to quote it.
fn shown(text: &str) -> String {
    text.chars().take(SHORT_BYTES).collect()
}

fn malformed(detail: String) -> Refusal {
    Refusal {
        kind: RefusalKind::Malformed,
        detail,
        retry_in_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::GrantRequest;

    fn lease(client: &str, key: &str, slabs: u64) -> Lease {
        Lease {
            lease_id: format!("{:032x}", 1),
            client: client.into(),
            key: key.into(),
            granted_bytes: slabs * SLAB_BYTES,
            remaining_bytes: slabs * SLAB_BYTES,
            expires_in_ms: 60_000,
            generation: 1,
        }
    }

    #[test]
    fn an_answer_is_held_against_its_request() {
        let grant = RequestKind::Grant(GrantRequest {
            client: "a".into(),
            key: "k".into(),
            bytes: 2 * SLAB_BYTES - 1,
            term_ms: 60_000,
        });
        let renew = |client: Option<&str>| RequestKind::Renew {
            client: client.map(str::to_owned),
            lease_id: format!("{:032x}", 1),
            term_ms: 60_000,
        };
        let release = RequestKind::Release {
            client: None,
            lease_id: format!("{:032x}", 1),
        };
        let granted = |lease| Outcome::Granted { lease };
        let renewed = |lease| Outcome::Renewed { lease };
        let released = |n: u8| Outcome::Released {
            lease_id: format!("{n:032x}"),
        };
        let long = "k".repeat(NAME_BYTES + 1);
        for (asked, outcome, is_good) in [
            (&grant, granted(lease("a", "k", 2)), true),
            (&grant, Outcome::Refused(Refusal::default()), true),
            (&grant, granted(lease("b", "k", 2)), false),
            (&grant, granted(lease("a", "l", 2)), false),
            (&grant, granted(lease("a", "k", 3)), false),
            (&grant, renewed(lease("a", "k", 2)), false),
            (&grant, released(1), false),
            (&renew(None), renewed(lease("a", "k", 2)), true),
            (&renew(Some("a")), renewed(lease("a", "k", 2)), true),
            (&renew(Some("b")), renewed(lease("a", "k", 2)), false),
            (&renew(None), renewed(lease("a", &long, 2)), false),
            (&renew(None), granted(lease("a", "k", 2)), false),
            (&release, released(1), true),
            (&release, released(2), false),
        ] {
            let said = check_answer(asked, &outcome);
            assert_eq!(said.is_ok(), is_good, "{asked:?}: {outcome:?}");
        }
    }

    #[test]
    fn an_announcement_is_bounded_in_every_text_and_count() {
        let host: HostId = format!("{:032x}", 7).into();
        let mut good = Announcement {
            version: VERSION,
            leases: vec![lease("a", "k", 1)],
            ..Announcement::default()
        };
        good.quota.host_id = host.to_string();
        assert_eq!(check(&host, &good), Ok(()));
        let long = "x".repeat(1 << 20);
        let spoilt: [fn(&mut Announcement, &str); 9] = [
            |said, long| said.memoryd_version = long.into(),
            |said, long| said.incarnation = long.into(),
            |said, long| said.address = Some(long.into()),
            |said, long| said.pages_socket = Some(long.into()),
            |said, long| said.leases[0].lease_id = long.into(),
            |said, long| said.leases[0].client = long.into(),
            |said, _| said.leases[0].client.clear(),
            |said, long| said.leases[0].key = long.into(),
            |said, long| said.quota.host_id = long.into(),
        ];
        for (index, spoil) in spoilt.iter().enumerate() {
            let mut said = good.clone();
            spoil(&mut said, &long);
            let refused = check(&host, &said).unwrap_err();
            assert!(refused.detail.len() < 400, "{index}: {}", refused.detail);
        }
        let mut many = good.clone();
        many.leases = (0..=MOST_LEASES)
            .map(|n| Lease {
                lease_id: format!("{n:032x}"),
                ..lease("a", "k", 1)
            })
            .collect();
        assert!(check(&host, &many).is_err());
        many.leases.pop();
        assert_eq!(check(&host, &many), Ok(()));
        let mut many = good;
        many.quota.outlook = vec![Default::default(); MOST_OUTLOOKS + 1];
        assert!(check(&host, &many).is_err());
    }
}
