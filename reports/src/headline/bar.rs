//! Division of the memory, as one bar.

use crate::fleet::Fleet;
use crate::questions::idle::tables::colour;
use crate::view::Memory;
use crate::wording::{bytes, list, share};
use gleaner_schemas::findings::Category;

/// Segment of the bar, for one category.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Segment {
    pub label: &'static str,
    pub colour: &'static str,
    pub bytes: String,
    pub share: String,
    /// Width, relative to the other segments.
    pub weight: u64,
}

/// Minimum share of memory that is in no category; a smaller share gets no segment.
const REST_SHARE: f64 = 0.005;

/// Returns the segments. The available memory is that of the headline (`fleet`), which excludes some times
/// that `memory` includes. The other segments have the proportions of `memory`.
pub(super) fn segments(memory: &Memory, fleet: &Fleet) -> Vec<Segment> {
    let installed = fleet.physical_bytes.max(1.0);
    let used = memory.physical_bytes - memory.available_bytes();
    let part = (installed - fleet.available_bytes) / used.max(1.0);
    let scaled = |category: Category, mean: f64| match category {
        Category::Available => fleet.available_bytes,
        _ => mean * part,
    };
    let means = Category::ALL.into_iter().zip(memory.mean_bytes);
    let present: Vec<(Category, f64)> = means
        .filter_map(|(category, mean)| Some((category, scaled(category, mean?))))
        .filter(|(_, bytes)| *bytes > 0.0)
        .collect();
    let segment = |label, colour, mean: f64| Segment {
        label,
        colour,
        bytes: bytes(mean),
        share: share(mean / installed),
        weight: mean as u64 >> 20,
    };
    let rest = installed - present.iter().map(|(_, bytes)| bytes).sum::<f64>();
    let rest = (rest > REST_SHARE * installed).then(|| segment("in use", "owners", rest));
    let named = present
        .into_iter()
        .map(|(category, bytes)| segment(category.label(), colour(category), bytes));
    rest.into_iter().chain(named).collect()
}

pub(super) fn sentence(bar: &[Segment]) -> String {
    let parts: Vec<String> = bar
        .iter()
        .map(|s| format!("{} {} ({})", s.label, s.bytes, s.share))
        .collect();
    format!("Average use of the memory: {}.", list(&parts))
}
