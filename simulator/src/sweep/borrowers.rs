//! Recorded clients of a plan: their requests, read once and laid out for every region size, and the hosts on
//! which they work.

use super::clients::wrong;
use super::{Cluster, Recording, SweepError};
use crate::dodo::Borrower;
use crate::hosts::Timeline;
use crate::parallel;
use crate::streams::read::{Format, open};
use crate::streams::{ClientRequests, ReplayedClient, StreamError};
use gleaner_dataset::DatasetError;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

/// Number of each client, with its requests laid out for every region size.
type Clients = Vec<(u32, Vec<ReplayedClient>)>;

/// Reads every stream and returns, for each region size, all clients. Their hosts are still names or ids as
/// written in the file.
///
/// # Errors
/// [`SweepError`]: a stream cannot be read, lacks a client, or has another number of clients than hosts; or
/// two clients have the same name.
pub(super) fn read(
    recordings: &[Recording],
    sizes: &[u64],
    threads: NonZeroUsize,
) -> Result<Vec<Vec<Borrower<ReplayedClient>>>, SweepError> {
    let mut streams: Vec<(&Path, &Format)> = Vec::new();
    for recording in recordings {
        let stream = (recording.stream.as_path(), &recording.format);
        if !streams.contains(&stream) {
            streams.push(stream);
        }
    }
    let mut read: BTreeMap<usize, Clients> = BTreeMap::new();
    for of_stream in parallel::each(threads, &streams, |stream| {
        let all = recordings.iter().enumerate();
        let of_it = all.filter(|(_, r)| (r.stream.as_path(), &r.format) == *stream);
        of_stream(&of_it.collect::<Vec<_>>(), sizes)
    })? {
        read.extend(of_stream);
    }
    let mut borrowers: Vec<Vec<Borrower<ReplayedClient>>> = vec![Vec::new(); sizes.len()];
    let mut names = BTreeSet::new();
    // `recordings` and `read` are both in the order of the file's tables, so they pair by position.
    for (recording, clients) in recordings.iter().zip(read.into_values()) {
        let is_numbered = recording.is_numbered || clients.len() > 1;
        for (at, (number, programs)) in clients.into_iter().enumerate() {
            let name = match is_numbered {
                true => format!("{}-{number}", recording.name),
                false => recording.name.clone(),
            };
            if !names.insert(name.clone()) {
                let reason = "two clients are called so: give each a `name` of its own";
                return Err(wrong("name", name, reason));
            }
            for (of_size, program) in borrowers.iter_mut().zip(programs) {
                of_size.push(Borrower {
                    name: name.clone(),
                    host_id: recording.hosts.get(at).cloned(),
                    begin_ns: recording.begin_ns.saturating_add(program.begin_ns()),
                    program,
                });
            }
        }
    }
    Ok(borrowers)
}

/// Reads the clients of one stream for every `[[clients]]` table that uses this stream. Each result has the
/// table's position in the file.
fn of_stream(
    recordings: &[(usize, &Recording)],
    sizes: &[u64],
) -> Result<Vec<(usize, Clients)>, SweepError> {
    let Some((_, first)) = recordings.first() else {
        return Ok(Vec::new());
    };
    let only: Option<BTreeSet<u32>> = recordings.iter().map(|(_, r)| r.client).collect();
    let divided = ClientRequests::read(open(&first.stream, &first.format, 0)?, only.as_ref())?;
    if divided.clients().next().is_none() {
        let reason = "there is no request in it";
        return Err(wrong("stream", first.stream.display(), reason));
    }
    let mut all = Vec::new();
    for (place, recording) in recordings {
        let wanted = match recording.client {
            Some(client) => vec![client],
            None => divided.clients().collect(),
        };
        refuse_other_hosts(recording, wanted.len())?;
        let mut clients = Vec::new();
        for number in wanted {
            let replayed = sizes.iter().map(|region_bytes| {
                let replayed = divided.replayed(number, recording.stored, *region_bytes);
                replayed
                    .map_err(|e| impossible(recording, &e))?
                    .ok_or_else(|| no_such_client(recording, number, &divided))
            });
            clients.push((number, replayed.collect::<Result<Vec<_>, SweepError>>()?));
        }
        all.push((*place, clients));
    }
    Ok(all)
}

/// Returns an error unless the number of hosts is 0 or the number of clients.
fn refuse_other_hosts(recording: &Recording, clients: usize) -> Result<(), SweepError> {
    let hosts = &recording.hosts;
    if hosts.is_empty() || hosts.len() == clients {
        return Ok(());
    }
    let reason = format!(
        "{} has {}, so that many hosts are wanted, in the order of the clients' numbers; or a table for each client, with its number as `client`",
        recording.stream.display(),
        match clients {
            1 => "one client".to_owned(),
            many => format!("{many} clients"),
        }
    );
    Err(wrong("host", hosts.join(", "), reason))
}

fn impossible(recording: &Recording, error: &StreamError) -> SweepError {
    wrong("stream", recording.stream.display(), error)
}

fn no_such_client(recording: &Recording, number: u32, divided: &ClientRequests) -> SweepError {
    /// Maximum number of clients that the message lists.
    const MOST: usize = 10;
    let mut there: Vec<String> = divided.clients().map(|c| c.to_string()).collect();
    let count = there.len();
    there.truncate(MOST);
    let more = match count > MOST {
        true => format!(" and {} more", count - MOST),
        false => String::new(),
    };
    let reason = format!(
        "{} has no such client; there are {}{more}",
        recording.stream.display(),
        there.join(", ")
    );
    wrong("client", number, reason)
}

/// Ids of hosts in a dataset, by the name or id written in the file.
pub(super) type HostIds = BTreeMap<String, String>;

/// Ids, in each dataset, of the hosts that the recordings name.
///
/// # Errors
/// [`SweepError`]: a host is missing in a dataset.
pub(super) fn host_ids(
    recordings: &[Recording],
    clusters: &[Cluster],
) -> Result<Vec<HostIds>, SweepError> {
    let written: BTreeSet<&String> = recordings.iter().flat_map(|r| &r.hosts).collect();
    let of_cluster = |cluster: &Cluster| {
        let ids = written
            .iter()
            .map(|host| Ok(((*host).clone(), host_id(host, cluster)?)));
        ids.collect()
    };
    clusters.iter().map(of_cluster).collect()
}

/// Id of the host that has this id or name in the dataset.
fn host_id(host: &String, cluster: &Cluster) -> Result<String, SweepError> {
    let failed = |source: DatasetError| SweepError::Dataset {
        name: cluster.name.clone(),
        source,
    };
    if cluster.dataset.hosts().map_err(failed)?.contains(host) {
        return Ok(host.clone());
    }
    let named = cluster.dataset.hosts_named(host).map_err(failed)?;
    let named: Vec<String> = named.into_iter().collect();
    let reason = match &named[..] {
        [id] => return Ok(id.clone()),
        [] => format!(
            "dataset {} has no host of this id or name; `gleaner analyze` lists hosts",
            cluster.name
        ),
        several => format!(
            "dataset {} has several hosts of this name; write the id of one: {}",
            cluster.name,
            several.join(", ")
        ),
    };
    Err(wrong("host", host, reason))
}

/// Returns an error if a host of `ids` has no samples in the simulated time.
pub(super) fn reject_host_without_samples(
    ids: &HostIds,
    cluster: &Cluster,
    hosts: &[Timeline],
) -> Result<(), SweepError> {
    for (written, id) in ids {
        if !hosts.iter().any(|host| host.host_id == *id) {
            let reason = format!(
                "dataset {} has no samples of it in the time that is simulated",
                cluster.name
            );
            return Err(wrong("host", written, reason));
        }
    }
    Ok(())
}

/// Copies the clients, with each host's written name replaced by its id in the dataset.
pub(super) fn on(
    ids: &HostIds,
    borrowers: &[Borrower<ReplayedClient>],
) -> Vec<Borrower<ReplayedClient>> {
    let on = |borrower: &Borrower<ReplayedClient>| Borrower {
        host_id: borrower
            .host_id
            .as_ref()
            .map(|host| ids.get(host).unwrap_or(host).clone()),
        ..borrower.clone()
    };
    borrowers.iter().map(on).collect()
}
