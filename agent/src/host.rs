//! The host: its name and what it is made of.

use crate::config::Config;
use crate::identity;
use crate::nodes;
use crate::read::{Tree, list};
use gleaner_schemas::rows::HostRow;
use std::path::Path;

/// Its row in the inventory.
#[must_use]
pub fn row(config: &Config, physical_bytes: i64) -> HostRow {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    HostRow {
        host_name: text(names.nodename()),
        kernel_release: text(names.release()),
        architecture: text(names.machine()),
        cpus_count: cpus_count(&config.settings.sys_root),
        physical_bytes,
        page_size_bytes: config.settings.units.page_size_bytes as i64,
        sample_interval_ms: config.interval_ms(),
        headroom_share: config.settings.headroom_share,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        privacy: config.privacy.as_str().to_owned(),
        nodes_count: nodes_count(&config.settings.sys_root),
        ..HostRow::default()
    }
}

/// The host's name; `None` without a machine id, when the database keeps a random one.
#[must_use]
pub fn id() -> Option<String> {
    let machine_id = std::fs::read_to_string("/etc/machine-id").ok()?;
    (!machine_id.trim().is_empty()).then(|| identity::host_id(&machine_id))
}

/// CPUs online; those that this process may use where sysfs does not tell.
fn cpus_count(sys_root: &Path) -> i64 {
    let online = std::fs::read_to_string(sys_root.join("devices/system/cpu/online")).ok();
    online
        .and_then(|list| i64::try_from(list::numbers(&list)?.len()).ok())
        .or_else(|| i64::try_from(std::thread::available_parallelism().ok()?.get()).ok())
        .unwrap_or(1)
}

/// NUMA nodes with memory; `None` where the kernel knows of no nodes.
fn nodes_count(sys_root: &Path) -> Option<i64> {
    let nodes = nodes::with_memory(&Tree::open(sys_root).ok()?, &mut Vec::new());
    i64::try_from(nodes?.len()).ok()
}
