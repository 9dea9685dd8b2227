//! The categories as sums of the read values, as defined in `policy::accounting`.

use super::{Sample, less, term};
use crate::error::Result;
use gleaner_hosts::derived::unsigned;
use gleaner_policy::accounting::headroom_bytes;
use gleaner_schemas::findings::{Category, ExplainedCategory, Term, TraceSource};
use gleaner_schemas::units::stored;

/// Memory of active processes, summed over their rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessMemory {
    pub(super) anon_bytes: Option<i64>,
    pub(super) shmem_bytes: Option<i64>,
}

/// Memory of files in use, summed over their rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FileMemory {
    pub(super) cached_bytes: Option<i64>,
    pub(super) mapped_cached_bytes: Option<i64>,
}

/// Categories of an imported host, each with the source trace's figures that it is made of. If the trace
/// lacks a term, no sum is given. The second way to count is not given either: it needs records that only an
/// agent makes.
pub(super) fn as_imported(
    categories: Vec<ExplainedCategory>,
    source: &TraceSource,
) -> Vec<ExplainedCategory> {
    let mut found: Vec<ExplainedCategory> = Vec::new();
    for mut category in categories {
        if found
            .iter()
            .any(|known| known.category == category.category)
        {
            continue;
        }
        if category.terms.iter().any(|term| term.bytes.is_none()) {
            category.terms.clear();
            category.unexplained_bytes = None;
        }
        category.meaning = match source.figure_of(&format!("{}_bytes", category.category)) {
            Some(from) => from.to_owned(),
            None if category.bytes.is_some() => {
                "of the dataset, which does not say what it is made of".to_owned()
            }
            None => "not in the trace".to_owned(),
        };
        found.push(category);
    }
    found
}

/// Every category of one sample.
pub(super) fn of(
    sample: &Sample<'_>,
    headroom_share: Option<f64>,
    processes: ProcessMemory,
    files: FileMemory,
) -> Result<Vec<ExplainedCategory>> {
    let read = |column: &str| sample.bytes(column);
    let physical = read("physical_bytes")?;
    let mem_total = read("mem_total_bytes")?;
    let balloon = read("balloon_bytes")?;
    let arc = match (read("arc_bytes")?, read("arc_min_bytes")?) {
        (Some(size), Some(least)) => Some((size - least).max(0)),
        _ => None,
    };
    let headroom = physical.zip(headroom_share);
    let headroom = headroom.map(|(all, share)| stored(headroom_bytes(unsigned(all), share)));
    let explained = |category: &str, column: &str, meaning: &str, terms: Vec<Term>| {
        let bytes = read(column)?;
        let sum = terms
            .iter()
            .filter_map(|t| t.bytes)
            .fold(0, i64::saturating_add);
        Ok(ExplainedCategory {
            category: category.to_owned(),
            share: bytes
                .zip(physical.filter(|p| *p > 0))
                .map(|(b, p)| b as f64 / p as f64),
            meaning: meaning.to_owned(),
            unexplained_bytes: bytes
                .filter(|_| !terms.is_empty())
                .map(|b| b.saturating_sub(sum)),
            terms,
            bytes,
        })
    };
    let mut dynamic_kernel = vec![
        term("MemTotal", mem_total),
        less("MemFree", read("mem_free_bytes")?),
        less("free on per-CPU lists", read("pcp_free_bytes")?),
        less("AnonPages", read("anon_bytes")?),
        less("Buffers", read("buffers_bytes")?),
        less("Cached", read("cached_bytes")?),
        less("SwapCached", read("swap_cached_bytes")?),
        less("KReclaimable", read("reclaimable_kernel_bytes")?),
    ];
    if arc.is_some() {
        dynamic_kernel.push(less("ZFS' ARC above its least size", arc));
    }
    let mut found = vec![
        explained(
            "physical",
            "physical_bytes",
            "System RAM; the categories below sum to it",
            vec![
                term("MemTotal", mem_total),
                term("held by a balloon", balloon),
                term("static kernel", read("static_kernel_bytes")?),
            ],
        )?,
        explained(
            "static_kernel",
            "static_kernel_bytes",
            "taken before MemTotal was counted",
            vec![
                term("physical", physical),
                less("MemTotal", mem_total),
                less("held by a balloon", balloon),
            ],
        )?,
        explained(
            "balloon",
            "balloon_bytes",
            "held by the hypervisor's balloon",
            Vec::new(),
        )?,
        explained(
            "dynamic_kernel",
            "dynamic_kernel_bytes",
            "what MemTotal leaves unexplained: slab that cannot be reclaimed, page tables, stacks, huge pages set aside",
            dynamic_kernel,
        )?,
        explained(
            "reserve",
            "reserve_bytes",
            "the kernel's reserve: the zones' high watermarks",
            Vec::new(),
        )?,
        explained(
            "process",
            "process_bytes",
            "active processes: proportional anonymous and shared memory, and the cached pages of files they map",
            vec![
                term("anonymous memory of active processes", processes.anon_bytes),
                term("shared memory of active processes", processes.shmem_bytes),
                term("cached pages that they map", files.mapped_cached_bytes),
            ],
        )?,
        explained(
            "file_cache",
            "file_cache_bytes",
            "cached pages of files in use, without those mapped",
            vec![
                term("cached pages of files in use", files.cached_bytes),
                less("of them mapped", files.mapped_cached_bytes),
            ],
        )?,
        explained("guest", "guest_bytes", "lent to other hosts", Vec::new())?,
    ];
    let mut rest = vec![term("physical", physical)];
    for category in Category::ALL {
        if category != Category::Available {
            rest.push(less(category.label(), read(category.column())?));
        }
    }
    // Negative if the kernel's figures contradict each other: available is then 0.
    rest.push(less(
        "category correction",
        read("category_correction_bytes")?,
    ));
    found.push(explained(
        "available",
        "available_bytes",
        "the rest: what the owner is not using",
        rest,
    )?);
    found.push(explained(
        "available",
        "available_bytes",
        "the same, counted a second time from its parts",
        vec![
            term("free above the reserve", read("available_free_bytes")?),
            term(
                "processes that are not active",
                read("available_idle_process_bytes")?,
            ),
            term(
                "cache of no file in use",
                read("available_unused_cache_bytes")?,
            ),
            term(
                "reclaimable kernel memory",
                read("available_reclaimable_kernel_bytes")?,
            ),
        ],
    )?);
    found.push(explained(
        "harvestable",
        "harvestable_bytes",
        "what could be taken without pushing the owner's pages out: MemAvailable less the agent's headroom",
        vec![
            term("MemAvailable", read("mem_available_bytes")?),
            less("headroom", headroom),
        ],
    )?);
    Ok(found)
}
