//! Size of physical memory; no single file states it on every host.

use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::zoneinfo::Zones;
use gleaner_schemas::units::pages_to_bytes;

/// Share by which the zones may differ from MemTotal: the allocator gets some memory late.
const AGREEMENT: f64 = 0.01;

/// Physical memory in bytes: System RAM of `iomem`, otherwise the zones' present pages if their managed pages
/// agree with MemTotal. The missing values name absent and contradictory sources.
#[must_use]
pub fn physical_bytes(
    iomem: Result<u64, AbsentValue>,
    zones: Option<&Zones>,
    mem_total_bytes: u64,
    page_size_bytes: u64,
    missing_values: &mut MissingValues,
) -> Option<u64> {
    let pages = zones.and_then(|zones| Some((zones.managed_pages?, zones.present_pages?)));
    let present_bytes = pages.and_then(|(managed_pages, present_pages)| {
        let managed_bytes = pages_to_bytes(managed_pages, page_size_bytes);
        let apart = managed_bytes.abs_diff(mem_total_bytes);
        if apart as f64 <= mem_total_bytes as f64 * AGREEMENT {
            return Some(pages_to_bytes(present_pages, page_size_bytes));
        }
        let detail =
            format!("managed pages {managed_bytes} bytes, MemTotal {mem_total_bytes} bytes");
        missing_values.note("zoneinfo", AbsentValue::new(Reason::Contradicted, detail));
        None
    });
    let physical_bytes = match (iomem, present_bytes) {
        (Ok(ram_bytes), _) => ram_bytes,
        (Err(_), Some(present_bytes)) => present_bytes,
        (Err(absent), None) => {
            let reason = if pages.is_some() {
                Reason::Contradicted
            } else {
                absent.reason
            };
            missing_values.note(
                "static_kernel_bytes",
                AbsentValue::new(reason, absent.detail),
            );
            return None;
        }
    };
    if physical_bytes < mem_total_bytes {
        let detail = format!("physical {physical_bytes} bytes, MemTotal {mem_total_bytes} bytes");
        missing_values.note(
            "static_kernel_bytes",
            AbsentValue::new(Reason::Contradicted, detail),
        );
        return None;
    }
    Some(physical_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iomem_then_agreeing_zones_then_absent() {
        const TOTAL: u64 = 1000 << 20;
        let zones = |managed_mib: u64| Zones {
            present_pages: Some(1024 << 8),
            managed_pages: Some(managed_mib << 8),
            ..Zones::default()
        };
        let denied = || Err(AbsentValue::new(Reason::Denied, "iomem"));
        let cases = [
            // Each case: iomem, the zones' managed MiB; expected physical MiB, expected missing values.
            (Ok(1030 << 20), Some(1000), Some(1030), vec![]),
            (
                Ok(1030 << 20),
                Some(170),
                Some(1030),
                vec![("zoneinfo", "contradicted")],
            ),
            (denied(), Some(991), Some(1024), vec![]),
            (
                denied(),
                Some(980),
                None,
                vec![
                    ("static_kernel_bytes", "contradicted"),
                    ("zoneinfo", "contradicted"),
                ],
            ),
            (
                denied(),
                None,
                None,
                vec![("static_kernel_bytes", "denied")],
            ),
            (
                Ok(900 << 20),
                None,
                None,
                vec![("static_kernel_bytes", "contradicted")],
            ),
        ];
        for (iomem, managed, mib, expected) in cases {
            let mut missing_values = MissingValues::default();
            let zones = managed.map(zones);
            let physical = physical_bytes(iomem, zones.as_ref(), TOTAL, 4096, &mut missing_values);
            assert_eq!(physical.map(|b| b >> 20), mib, "{managed:?}");
            let rows = missing_values.rows();
            let told: Vec<_> = rows
                .iter()
                .map(|r| (r.item.as_str(), r.reason.as_str()))
                .collect();
            assert_eq!(told, expected, "{managed:?}");
        }
    }
}
