//! NUMA nodes with memory, and the memory's use on each.

use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::zoneinfo::Zones;
use crate::read::{Tree, list, meminfo::Meminfo};
use gleaner_schemas::rows::NumaNodeRow;
use gleaner_schemas::units::{pages_to_bytes, stored};
use std::collections::BTreeMap;

/// Numbers of the nodes with memory; `None` if the kernel knows of no nodes.
pub fn with_memory(sys: &Tree, text: &mut Vec<u8>) -> Option<Vec<u16>> {
    sys.read_record("devices/system/node/has_memory", text)
        .ok()?;
    list::numbers(std::str::from_utf8(text).ok()?)
}

/// Makes a row for each node with memory if there are two or more; the figures of a single node would equal
/// those of the sample. `host` is `/proc/meminfo`, the only file with the size of a huge page.
pub fn rows(
    sys: &Tree,
    host: &Meminfo,
    zones: &BTreeMap<u16, Zones>,
    page_size_bytes: u64,
    text: &mut Vec<u8>,
    missing_values: &mut MissingValues,
) -> Vec<NumaNodeRow> {
    let nodes = with_memory(sys, text).filter(|nodes| nodes.len() > 1);
    let mut rows = Vec::new();
    for node in nodes.unwrap_or_default() {
        let meminfo = sys
            .read(&format!("devices/system/node/node{node}/meminfo"), text)
            .map_err(|e| AbsentValue::from_errno("meminfo", e)) // a node may be removed
            .and_then(|()| {
                Meminfo::parse_node(text)
                    .ok_or_else(|| AbsentValue::new(Reason::Malformed, "a node's meminfo"))
            });
        let Some(meminfo) = missing_values.keep("numa_nodes", meminfo) else {
            continue;
        };
        let bytes = |name| meminfo.get(name).map(stored);
        let huge_pages_bytes = || {
            let pages = meminfo.get("HugePages_Total")?;
            Some(pages.saturating_mul(host.get("Hugepagesize")?))
        };
        let high_pages = zones.get(&node).and_then(|zones| zones.high_pages);
        rows.push(NumaNodeRow {
            numa_node: i64::from(node),
            mem_total_bytes: bytes("MemTotal").unwrap_or(0), // the parser ensures that there is one
            mem_free_bytes: bytes("MemFree").unwrap_or(0),
            reserve_bytes: high_pages.map(|pages| stored(pages_to_bytes(pages, page_size_bytes))),
            active_file_bytes: bytes("Active(file)"),
            inactive_file_bytes: bytes("Inactive(file)"),
            anon_bytes: bytes("AnonPages"),
            shmem_bytes: bytes("Shmem"),
            slab_bytes: bytes("Slab"),
            reclaimable_kernel_bytes: meminfo.reclaimable_kernel_bytes().map(stored),
            hugetlb_bytes: huge_pages_bytes().map(stored),
        });
    }
    rows
}
