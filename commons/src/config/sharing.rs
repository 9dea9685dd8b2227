//! Settings of the exchange with other hosts: members or recruiters, policy, addresses and certificates.

use super::file::ConfigFile;
use super::{SharingConfig, SharingPolicy};
use crate::directory::{MemberAddress, Membership, MembershipSource};
use gleaner_daemon::config::{ConfigError, Origin};
use gleaner_daemon::folders;
use gleaner_schemas::commons::is_name;
use gleaner_trust::{Address, ClientPaths, ServerPaths};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default port for other members.
const PORT: u16 = 7445;
/// Default limit of simultaneous connections.
const CONNECTIONS: usize = 4096;

/// The configured policy; by default `hash`, which reads the source least (docs/commons.md, "Measured").
pub(super) fn policy(file: &ConfigFile, origin: &Origin) -> Result<SharingPolicy, ConfigError> {
    let policy = file.policy.unwrap_or(SharingPolicy::Hash);
    if policy.needs_recruiters() && file.recruiters.is_empty() {
        let what = format!(
            "{} needs the members' ages, which recruiters gather: set the key recruiters",
            policy.name()
        );
        return Err(origin.wrong("policy", what));
    }
    Ok(policy)
}

/// Recruiters of the configuration, or else its members.
fn membership_source(file: &ConfigFile, origin: &Origin) -> Result<MembershipSource, ConfigError> {
    let mut members = Vec::new();
    for text in &file.members {
        let member = text.parse::<MemberAddress>();
        members.push(member.map_err(|e| origin.wrong("members", e.to_string()))?);
    }
    if file.recruiters.is_empty() {
        return Ok(MembershipSource::Fixed(members));
    }
    if !members.is_empty() {
        let what = "recruiters list the members: leave out members, or recruiters";
        return Err(origin.wrong("members", what));
    }
    if let Some(name) = file.name.as_ref().filter(|name| !is_name(name)) {
        return Err(origin.wrong("name", format!("{name:?} begins with a dot")));
    }
    let mut recruiters = Vec::new();
    for url in &file.recruiters {
        let address = Address::parse(url);
        recruiters.push(address.map_err(|e| origin.wrong("recruiters", e.to_string()))?);
    }
    Ok(MembershipSource::Recruiters(recruiters))
}

/// Address for other members: a host, a colon and a port.
fn announced_address(file: &ConfigFile, origin: &Origin) -> Result<Option<String>, ConfigError> {
    let text = file.address.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // A member's address in a configuration has the same form.
    let member = format!("{}@{text}", "0".repeat(32)).parse::<MemberAddress>();
    match member {
        Ok(member) => Ok(Some(member.address)),
        Err(_) => Err(origin.wrong(
            "address",
            format!("{text:?} is no address for other members: write it like ws1.example:7445"),
        )),
    }
}

/// Settings of the exchange with other hosts; `None`: blocks are not shared.
pub(super) fn sharing(
    file: &ConfigFile,
    policy: SharingPolicy,
    host_id: Option<&str>,
    origin: &Origin,
) -> Result<Option<SharingConfig>, ConfigError> {
    let members = membership_source(file, origin)?;
    let address = announced_address(file, origin)?;
    if members.members().is_empty() && members.recruiters().is_empty() {
        return Ok(None);
    }
    let host_id = host_id.ok_or_else(|| {
        origin.wrong(
            "host_id",
            "there is no /etc/machine-id: set the id of this host",
        )
    })?;
    if members.recruiters().is_empty() {
        Membership::new(&members, host_id).map_err(|e| origin.wrong("members", e.to_string()))?;
    }
    if policy == SharingPolicy::None {
        return Ok(None);
    }
    // Certificate that `gleaner-agent enroll` received; a host has only one certificate.
    let enrolled = folders::state_of_another("ship");
    let named = |given: &Option<PathBuf>| given.clone().filter(|path| path != Path::new(""));
    let certificate = named(&file.certificate).unwrap_or_else(|| enrolled.join("host.pem"));
    let key = named(&file.key).unwrap_or_else(|| certificate.clone());
    let authority = named(&file.authority).unwrap_or_else(|| enrolled.join("authority.crt"));
    Ok(Some(SharingConfig {
        listen: file
            .listen
            .unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, PORT).into()),
        server_paths: ServerPaths {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: authority.clone(),
            revocation_list: named(&file.revocation_list),
        },
        client_paths: ClientPaths {
            certificate,
            key,
            authority,
        },
        members,
        address,
        peer_timeout: file.peer_timeout.unwrap_or(Duration::from_millis(500)),
        fetch_wait: file.fetch_wait.unwrap_or(Duration::from_millis(500)),
        connections_limit: file.connections_limit.unwrap_or(CONNECTIONS),
    }))
}
