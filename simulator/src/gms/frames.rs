//! Times for frames that are larger than the paper's pages of 8 KiB: a frame of n pages is n pages that follow each
//! other, which move together.

use super::costs::Costs;
use super::recorded::PAGE_BYTES;
use super::scenario::Scenario;

/// Number of pages of 8 KiB in a frame.
fn pages(scenario: &Scenario) -> u64 {
    u64::from(scenario.frame_bytes / PAGE_BYTES).max(1)
}

/// Costs of operations on frames. Further pages of a frame occupy the links, and the source reads them in sequence.
/// The work of CPUs is for a frame what it is for a page. **Assumed**.
pub(super) fn costs(scenario: &Scenario) -> Costs {
    let (costs, pages) = (scenario.costs, pages(scenario));
    let further = pages - 1;
    Costs {
        link_ns: costs.link_ns * pages,
        page_ns: costs.page_ns + costs.link_ns * further,
        put_ns: costs.put_ns + costs.link_ns * further,
        disk_sequential_ns: costs.disk_sequential_ns * pages,
        disk_random_ns: costs.disk_random_ns + costs.disk_sequential_ns * further,
        nfs_sequential_ns: costs.nfs_sequential_ns * pages,
        nfs_random_ns: costs.nfs_random_ns + costs.nfs_sequential_ns * further,
        ..costs
    }
}

/// Mean compute time between two faults: a frame has the computing of its pages.
pub(super) fn compute_ns(scenario: &Scenario) -> u64 {
    u64::from(scenario.compute_us) * 1_000 * pages(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_eight_pages_takes_the_time_of_eight_pages_in_sequence() {
        let mut scenario = Scenario::default();
        assert_eq!(costs(&scenario), scenario.costs);
        assert_eq!(compute_ns(&scenario), 2_760_000);
        scenario.frame_bytes = 8 * PAGE_BYTES;
        let larger = costs(&scenario);
        assert_eq!(larger.link_ns, 8 * 468_000);
        assert_eq!(larger.page_ns, 1_030_000 + 7 * 468_000);
        assert_eq!(larger.disk_sequential_ns, 8 * 3_600_000);
        assert_eq!(larger.nfs_random_ns, 16_700_000 + 7 * 4_800_000);
        assert_eq!(larger.put_shared_ns, scenario.costs.put_shared_ns);
        assert_eq!(compute_ns(&scenario), 8 * 2_760_000);
    }
}
