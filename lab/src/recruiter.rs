//! The recruiter of a lab and the hosts' memory servers: their configurations, and the memory that is lent.

use super::address::{self, Node, PAGES_PORT, RECRUITER_LOCAL, RECRUITER_PORT};
use super::args::LendArgs;
use super::collector::{DAYS, get_inside, text, write};
use super::error::{LabError, Result};
use super::state::PKI;
use super::state::State;
use gleaner_schemas::lending::HostQuota;
use gleaner_trust::{Authority, Role};
use serde::Deserialize;

/// Time before a quota may rise: short, since users look at a lab after seconds.
const RISE_AFTER: &str = "1s";
/// Interval at which hosts announce themselves: short, so that the recruiter soon knows them.
const ANNOUNCE_EVERY: &str = "2s";

/// Part of the recruiter's status that the lab uses.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct RecruiterSummary {
    pub(super) hosts: Vec<RecruiterHost>,
}

/// Status of one host at the recruiter.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct RecruiterHost {
    pub(super) quota: HostQuota,
    pub(super) is_reachable: bool,
    pub(super) leases_count: u64,
}

/// Creates the certificate and configuration of the recruiter, which runs on the collector's node.
pub(super) fn prepare(state: &State, node: &Node, authority: &Authority) -> Result<()> {
    let pki = state.folder.join(PKI);
    let names = vec![node.address.to_string()];
    let issued = authority.issue(&Role::Recruiter { names }, DAYS)?;
    write(&pki.join("recruiter.crt"), &issued.certificate_pem)?;
    write(&pki.join("recruiter.key"), &issued.key_pem)?;
    let folder = state.folder_of(&node.namespace);
    // All users in the namespace are root: each may request leases, for example with curl.
    let config = format!(
        "listen = \"{}:{RECRUITER_PORT}\"\nlocal_listen = \"{RECRUITER_LOCAL}\"\nlocal_access = \"all\"\npki = {}\n\
         announce_every = \"{ANNOUNCE_EVERY}\"\nquota_file = {}\n",
        node.address,
        text(&pki)?,
        text(&folder.join("quotas.json"))?,
    );
    write(&folder.join("recruiter.toml"), &config)
}

/// Writes the configuration of a host's memory server, which uses the certificate of the host's agent.
pub(super) fn prepare_host(state: &State, node: &Node, lend: &LendArgs) -> Result<()> {
    let folder = state.folder_of(&node.namespace);
    let enrolled = folder.join("ship");
    let config = format!(
        "mode = \"{}\"
cap = \"{}B\"
rise_after = \"{RISE_AFTER}\"
pressure_pause = \"{RISE_AFTER}\"
agent_socket = {}
socket = {}
state_folder = {}
recruiters = [\"https://{}:{RECRUITER_PORT}\"]
announce_every = \"{ANNOUNCE_EVERY}\"
listen = \"0.0.0.0:{PAGES_PORT}\"
certificate = {certificate}
key = {certificate}
authority = {}
",
        lend.mode.word(),
        lend.cap,
        text(&folder.join("agent.sock"))?,
        text(&folder.join("memoryd.sock"))?,
        text(&folder.join("memoryd"))?,
        address::collector().address,
        text(&enrolled.join("authority.crt"))?,
        certificate = text(&enrolled.join("host.pem"))?,
    );
    write(&folder.join("memoryd.toml"), &config)
}

/// Requests the recruiter's status of the hosts, from inside its namespace.
pub(super) fn fetch_status() -> Result<RecruiterSummary> {
    let namespace = address::collector().namespace;
    let body = get_inside(&namespace, "the recruiter", RECRUITER_LOCAL, "/v1/hosts")?;
    serde_json::from_slice(&body).map_err(|source| LabError::Document {
        subject: "the recruiter's hosts are no JSON",
        source,
    })
}
