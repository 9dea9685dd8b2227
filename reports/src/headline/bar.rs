//! Where the memory is, in one bar.

use crate::questions::idle::tables::colour;
use crate::view::Memory;
use crate::wording::{bytes, list, share};
use gleaner_schemas::findings::Category;

/// One category's part of the bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub label: &'static str,
    pub colour: &'static str,
    pub bytes: String,
    pub share: String,
    /// For its width.
    pub weight: u64,
}

pub(super) fn segments(memory: &Memory) -> Vec<Segment> {
    let present = Category::ALL.into_iter().zip(memory.mean_bytes);
    present
        .filter_map(|(category, mean)| Some((category, mean.filter(|mean| *mean > 0.0)?)))
        .map(|(category, mean)| Segment {
            label: category.label(),
            colour: colour(category),
            bytes: bytes(mean),
            share: share(mean / memory.physical_bytes.max(1.0)),
            weight: mean as u64 >> 20,
        })
        .collect()
}

pub(super) fn sentence(bar: &[Segment]) -> String {
    let parts: Vec<String> = bar
        .iter()
        .map(|s| format!("{} {} ({})", s.label, s.bytes, s.share))
        .collect();
    format!("Where the memory is, on average: {}.", list(&parts))
}
