//! Mount namespace of a running agent, and the contents of its database.

pub(crate) use gleaner_harness::{Running, wait_for};
use rusqlite::Connection;
use rusqlite::types::FromSql;
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// Calls `what` in the mount namespace of a process, in a thread of its own.
pub(crate) fn in_mounts_of<T: Send>(pid: u32, what: impl FnOnce() -> T + Send) -> T {
    let namespace = std::fs::File::open(format!("/proc/{pid}/ns/mnt")).unwrap();
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| {
            // SAFETY: this thread ends after this call, and shares no new descriptors.
            #[allow(unsafe_code)]
            unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
            let kind = Some(LinkNameSpaceType::Mount);
            move_into_link_name_space(namespace.as_fd(), kind).unwrap();
            what()
        });
        inside.join().unwrap()
    })
}

/// Reads one value of a database that an agent may be writing.
#[track_caller]
pub(crate) fn query<T: FromSql>(database: &Path, sql: &str) -> T {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Reads a column of a database that an agent may be writing.
#[track_caller]
pub(crate) fn column<T: FromSql>(database: &Path, sql: &str) -> Vec<T> {
    let connection = Connection::open(database).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Asserts that every sample is complete and consistent.
#[track_caller]
pub(crate) fn is_sound(database: &Path) {
    let ok: String = query(database, "PRAGMA integrity_check");
    assert_eq!(ok, "ok");
    let broken: i64 = query(
        database,
        "SELECT (SELECT count(*) FROM samples WHERE static_kernel_bytes IS NOT NULL AND reserve_bytes IS NOT NULL \
         AND physical_bytes <> static_kernel_bytes + balloon_bytes + dynamic_kernel_bytes + reserve_bytes \
         + file_cache_bytes + process_bytes + guest_bytes + available_bytes + category_correction_bytes) \
         + (SELECT count(*) FROM samples s WHERE is_complete_state AND 4 <> (SELECT count(*) FROM activity a WHERE a.sequence = s.sequence)) \
         + (SELECT count(*) FROM samples s WHERE active_processes_count <> (SELECT count(*) FROM processes p WHERE p.sequence = s.sequence)) \
         + (SELECT count(*) FROM (SELECT time_ms < lag(time_ms) OVER (ORDER BY sequence) AS back FROM samples) WHERE back)",
    );
    assert_eq!(broken, 0, "half samples, or out of order");
}
