//! The host: its name and its hardware.

pub use gleaner_trust::this_host_id as id;

use crate::config::Config;
use crate::read::{Tree, list};
use crate::sample::numa_nodes;
use gleaner_schemas::rows::HostRow;
use std::path::Path;
use sysinfo::{CpuRefreshKind, RefreshKind, System};

/// Row of this host for the `hosts` table.
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
        sample_interval_ms: config.sample_interval_ms(),
        headroom_share: config.settings.headroom_share,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        privacy: config.privacy.as_str().to_owned(),
        os_name: System::long_os_version().ok(),
        cpu_model: cpu_model(),
        cores_count: System::physical_core_count()
            .ok()
            .and_then(|cores| i64::try_from(cores).ok()),
        machine_model: machine_model(&config.settings.sys_root),
        numa_nodes_count: numa_nodes_count(&config.settings.sys_root),
        source: None,
    }
}

/// Number of CPUs that are online; if sysfs does not tell it, number of CPUs that this process may use.
fn cpus_count(sys_root: &Path) -> i64 {
    let online = std::fs::read_to_string(sys_root.join("devices/system/cpu/online")).ok();
    online
        .and_then(|list| i64::try_from(list::numbers(&list)?.len()).ok())
        .or_else(|| i64::try_from(std::thread::available_parallelism().ok()?.get()).ok())
        .unwrap_or(1)
}

/// Model name of the first CPU, as the CPU reports it.
fn cpu_model() -> Option<String> {
    let cpus = RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing());
    let system = System::new_with_specifics(cpus).ok()?;
    let brand = system.cpus().first()?.brand().trim();
    (!brand.is_empty()).then(|| brand.to_owned())
}

/// Model name of the machine, as its maker gave it, from DMI or the device tree. The crate sysinfo is not
/// used for this: it also looks in /tmp, where anybody may write.
fn machine_model(sys_root: &Path) -> Option<String> {
    let files = [
        "class/dmi/id/product_name",
        "firmware/devicetree/base/model",
    ];
    let models = files.into_iter().filter_map(|file| {
        let text = std::fs::read_to_string(sys_root.join(file)).ok()?;
        let model = text.trim_end_matches('\0').trim();
        (!model.is_empty()).then(|| model.to_owned())
    });
    models.into_iter().next()
}

/// Number of NUMA nodes with memory; `None` if the kernel knows of no nodes.
fn numa_nodes_count(sys_root: &Path) -> Option<i64> {
    let nodes = numa_nodes::with_memory(&Tree::open(sys_root).ok()?, &mut Vec::new());
    i64::try_from(nodes?.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_named_by_dmi_or_by_the_device_tree() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(machine_model(dir.path()), None);
        write("firmware/devicetree/base/model", "Raspberry Pi 5 Model B\0");
        let model = machine_model(dir.path());
        assert_eq!(model.as_deref(), Some("Raspberry Pi 5 Model B"));
        write("class/dmi/id/product_name", "OptiPlex 7090\n");
        assert_eq!(machine_model(dir.path()).as_deref(), Some("OptiPlex 7090"));
        write("class/dmi/id/product_name", " \n");
        assert_eq!(machine_model(dir.path()), model);
    }
}
