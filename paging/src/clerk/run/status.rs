//! Status socket of the clerk, for programs on this machine.

use gleaner_paging::device::run::{DeviceStatus, Handle};
use gleaner_paging::nbd::listen_at;
use gleaner_schemas::units::Bytes;
use std::fmt::Write as _;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Timeout of receiving or sending an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers every connection with one JSON document.
pub(super) fn listen(path: &Path, handle: Handle) -> io::Result<()> {
    let listener = listen_at(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let answer = move || {
        for stream in listener.incoming().flatten() {
            let _ = tell(stream, &handle); // the client may have hung up
        }
    };
    thread::Builder::new()
        .name("status".to_owned())
        .spawn(answer)?;
    Ok(())
}

fn tell(mut stream: UnixStream, handle: &Handle) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(status) = handle.status() else {
        return Ok(());
    };
    serde_json::to_writer(&mut stream, &status)?;
    stream.write_all(b"\n")
}

/// Returns the status of the clerk whose socket is `path`, as text or as JSON.
///
/// # Errors
/// No clerk runs there, or it does not answer.
pub(crate) fn ask(path: &Path, as_json: bool) -> anyhow::Result<String> {
    use anyhow::Context;
    let said = gleaner_paging::ask::clerk(path, PATIENCE).with_context(|| {
        format!(
            "ask the clerk at {}: is it running (gleaner-clerk run), and are you its user or root?",
            path.display()
        )
    })?;
    if as_json {
        return Ok(said);
    }
    let status: DeviceStatus = serde_json::from_str(&said).context("what it says is no status")?;
    Ok(words(&status))
}

fn bytes(count: u64) -> Bytes {
    Bytes(count as f64)
}

fn words(status: &DeviceStatus) -> String {
    let mut text = String::new();
    let counters = &status.counters;
    let copies = if status.has_disk {
        "on disk, too"
    } else {
        "at servers alone"
    };
    let _ = writeln!(
        text,
        "device    {} of {} in use, {copies}; {}; {} clients",
        bytes(status.stored_bytes),
        bytes(status.size_bytes),
        match (status.has_all_copies, status.unreachable_bytes) {
            (true, _) => "all copies are reachable".to_owned(),
            (false, 0) => "copies are being made".to_owned(),
            (false, unreachable) => {
                format!("{} of copies are unreachable", bytes(unreachable))
            }
        },
        status.clients_count,
    );
    let _ = writeln!(
        text,
        "read      {} pages: {} from servers, {} from disk, {} on their way, {} empty",
        counters.reads_count,
        counters.server_reads_count,
        counters.disk_reads_count,
        counters.buffer_reads_count,
        counters.zero_reads_count,
    );
    let _ = writeln!(
        text,
        "written   {} pages; {} moved, {} left servers to make room",
        counters.writes_count, counters.moved_pages_count, counters.evicted_pages_count,
    );
    let _ = writeln!(
        text,
        "trouble   {} tried elsewhere, {} came back corrupt, {} lost, {} requests failed, {} disk writes failed",
        counters.retried_requests_count,
        counters.corrupt_pages_count,
        counters.lost_pages_count,
        counters.failed_requests_count,
        counters.failed_disk_writes_count,
    );
    let window = match status.fixed_window_requests {
        0 => "adaptive windows".to_owned(),
        size => format!("windows of {size} requests"),
    };
    let _ = writeln!(
        text,
        "choice    {}, {} changes to a better server; {window}",
        status.choice.name(),
        counters.server_changes_count,
    );
    if status.servers.is_empty() {
        text.push_str("servers   none\n");
        return text;
    }
    let _ = writeln!(
        text,
        "\n{:<34} {:<9} {:>11} {:>11} {:>10} {:>10} {:>7} {:>7} {:>8}",
        "HOST", "STATE", "USED", "SIZE", "READS", "WRITES", "FAILED", "CORRUPT", "MEAN us"
    );
    for server in &status.servers {
        let _ = writeln!(
            text,
            "{:<34} {:<9} {:>11} {:>11} {:>10} {:>10} {:>7} {:>7} {:>8}",
            server.host,
            server.state,
            bytes(server.used_bytes).to_string(),
            bytes(server.size_bytes).to_string(),
            server.reads_count,
            server.writes_count,
            server.failed_requests_count,
            server.corrupt_pages_count,
            server
                .mean_latency_us
                .map_or("-".to_owned(), |us| us.to_string()),
        );
    }
    text
}
