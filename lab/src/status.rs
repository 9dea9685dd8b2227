//! The command `gleaner lab status`.

use super::address;
use super::args::Status;
use super::clerk;
use super::collector::{self, CollectorHost};
use super::commons;
use super::error::{LabError, Result};
use super::recruiter;
use super::state::State;
use gleaner_daemon::causes;
use gleaner_paging::device::run::DeviceStatus;
use gleaner_schemas::units::{Bytes, Seconds};
use serde_json::{Value, json};

/// Maximum number of mounts whose paths are printed as text.
const MOST_MOUNTS: usize = 3;

pub(super) fn run(args: &Status) -> Result<String> {
    super::refuse_without_root("status")?;
    let Some(state) = State::find(args.folder.as_deref())? else {
        return Err(LabError::NoLab);
    };
    let (hosts, said) = match collector::status() {
        Ok((said, value)) => (said.hosts, value),
        Err(error) => (Vec::new(), json!({ "failure": causes::told(&error) })),
    };
    // If the recruiter does not answer, everything else is still shown.
    let lending = recruiter::fetch_status();
    let clerk = clerk::is_there(&state).then(|| clerk::fetch_status(&state));
    Ok(if args.json {
        format!("{:#}\n", as_json(&state, &hosts, said, &lending, clerk))
    } else {
        as_text(&state, &hosts, said["failure"].as_str(), &lending, clerk)
    })
}

/// The lab's hosts: each host's node, its id, and its status at the collector, if known there.
fn hosts<'a>(
    state: &'a State,
    said: &'a [CollectorHost],
) -> impl Iterator<Item = (address::Node, &'a str, Option<&'a CollectorHost>)> {
    (1..).zip(&state.host_ids).map(|(number, id)| {
        let of_host = said.iter().find(|host| host.host_id == *id);
        (address::host(number), id.as_str(), of_host)
    })
}

/// Daemons of a node: name, process id, and true if the daemon runs.
fn daemons<'a>(state: &'a State, node: &str) -> Vec<(&'a str, u32, bool)> {
    let of_node = state
        .started
        .iter()
        .filter(|started| started.namespace == node);
    of_node
        .map(|s| (s.daemon.as_str(), s.process.pid, s.process.runs()))
        .collect()
}

/// Lending of a host, as the recruiter reports it.
fn lending<'a>(
    said: &'a Result<recruiter::RecruiterSummary>,
    host_id: &str,
) -> Option<&'a recruiter::RecruiterHost> {
    let hosts = &said.as_ref().ok()?.hosts;
    hosts.iter().find(|host| host.quota.host_id == host_id)
}

/// Bytes that a host's commons has read from its memory, from other hosts and from the source.
fn reads(state: &State, node: &address::Node) -> Option<String> {
    let (reads, _) = commons::fetch_status(state, node).ok()?;
    Some(format!(
        "{} / {} / {}",
        Bytes::from(reads.local_read_bytes),
        Bytes::from(reads.cluster_read_bytes),
        Bytes::from(reads.source_read_bytes),
    ))
}

/// Status of a host's commons, as JSON; `None` if the lab has no commons.
fn commons_of(state: &State, node: &address::Node) -> Option<Value> {
    state.commons.as_ref()?;
    let status = commons::fetch_status(state, node).map_or_else(
        |error| json!({ "failure": causes::told(&error) }),
        |(_, status)| status,
    );
    Some(json!({ "path": commons::path(state, node), "status": status }))
}

/// Status of the clerk's device: the parsed part, and the complete document.
type Clerk = Result<(DeviceStatus, Value)>;

fn of_device(device: &DeviceStatus) -> String {
    let at_hosts: u64 = device.up().map(|server| server.used_bytes).sum();
    format!(
        "{} of {} in use; leases: {}, with {} of it",
        Bytes::from(device.stored_bytes),
        Bytes::from(device.size_bytes),
        device.up().count(),
        Bytes::from(at_hosts),
    )
}

fn as_json(
    state: &State,
    said: &[CollectorHost],
    collector: Value,
    lent: &Result<recruiter::RecruiterSummary>,
    clerk: Option<Clerk>,
) -> Value {
    let daemons = |node: &str| -> Vec<Value> {
        let daemons = daemons(state, node).into_iter();
        let one = |(name, pid, runs)| json!({ "name": name, "pid": pid, "is_running": runs });
        daemons.map(one).collect()
    };
    let hosts: Vec<Value> = hosts(state, said)
        .map(|(node, host_id, said)| {
            json!({
                "host_id": host_id,
                "namespace": node.namespace,
                "address": node.address,
                "daemons": daemons(&node.namespace),
                "is_shipping": said.is_some_and(|said| said.rows_count > 0),
                "rows_count": said.map(|said| said.rows_count),
                "lag_ms": said.and_then(|said| said.lag_ms),
                "is_linked": lending(lent, host_id).is_some_and(|said| said.is_reachable),
                "leases_count": lending(lent, host_id).map(|said| said.leases_count),
                "quota": lending(lent, host_id).map(|said| &said.quota),
                "commons": commons_of(state, &node),
            })
        })
        .collect();
    json!({
        "folder": state.folder,
        "link": state.link,
        "commons": state.commons,
        "collector": {
            "namespace": address::collector().namespace,
            "address": address::collector().address,
            "daemons": daemons(&address::collector().namespace),
            "status": collector,
        },
        "clerk": clerk.map(|said| json!({
            "namespace": address::clerk().namespace,
            "address": address::clerk().address,
            "socket": clerk::socket(state),
            "daemons": daemons(&address::clerk().namespace),
            "status": said.map_or_else(|error| json!({ "failure": causes::told(&error) }), |(_, said)| said),
        })),
        "hosts": hosts,
    })
}

fn as_text(
    state: &State,
    said: &[CollectorHost],
    failure: Option<&str>,
    lent: &Result<recruiter::RecruiterSummary>,
    clerk: Option<Clerk>,
) -> String {
    let running = |node: &str| -> String {
        let daemons = daemons(state, node).into_iter();
        let words: Vec<String> = daemons
            .map(|(name, _, runs)| format!("{name}{}", if runs { "" } else { " (ended)" }))
            .collect();
        words.join(", ")
    };
    let mut header = vec![
        "host", "address", "daemons", "batches", "rows", "lag", "may lend", "lent", "leases",
    ];
    if state.commons.is_some() {
        header.push("read from memory / hosts / source");
    }
    let mut table = gleaner_terminal::table(&header, 3);
    for (node, id, said) in hosts(state, said) {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "—".to_owned());
        let lends = lending(lent, id);
        let lag = said.and_then(|said| said.lag_ms).map(Seconds::from_ms);
        let mut row = vec![
            node.namespace.clone(),
            node.address.to_string(),
            running(&node.namespace),
            or_dash(said.map(|said| said.batches_count.to_string())),
            or_dash(said.map(|said| said.rows_count.to_string())),
            or_dash(lag.map(|lag| lag.to_string())),
            or_dash(lends.map(|said| Bytes::from(said.quota.quota_bytes).to_string())),
            or_dash(lends.map(|said| Bytes::from(said.quota.lent_bytes).to_string())),
            or_dash(lends.map(|said| said.leases_count.to_string())),
        ];
        if state.commons.is_some() {
            row.push(or_dash(reads(state, &node)));
        }
        table.add_row(row);
    }
    let collector = address::collector();
    let mut text = format!(
        "Lab in {}\n  collector at {}: {}\n  links: {}\n",
        state.folder.display(),
        collector.address,
        failure.map_or_else(|| running(&collector.namespace), str::to_owned),
        state.link,
    );
    if let Some(said) = clerk {
        let node = address::clerk();
        text.push_str(&format!(
            "  clerk at {}: {}; nbd+unix:///?socket={}\n    {}\n",
            node.address,
            running(&node.namespace),
            clerk::socket(state).display(),
            said.map_or_else(
                |error| causes::told(&error),
                |(device, _)| of_device(&device)
            ),
        ));
    }
    if let Some(source) = &state.commons {
        text.push_str(&format!("  commons of {}:", source.display()));
        let mounts = hosts(state, said).filter_map(|(node, ..)| commons::path(state, &node));
        for path in mounts.take(MOST_MOUNTS) {
            text.push_str(&format!("\n    {}", path.display()));
        }
        text.push('\n');
    }
    if let Err(error) = lent {
        text.push_str(&format!("  {}\n", causes::told(error)));
    }
    for cannot in &state.link.cannot {
        text.push_str(&format!("  cannot have {cannot}\n"));
    }
    format!("{text}\n{table}\n")
}
