//! Makes the document of a curve from an analysis.

use super::counts::Faults;
use super::profile::{Profile, Windows};
use gleaner_schemas::curve::{CURVE_VERSION, Curve, FaultPoint, FirstTouch, Recorder, WorkingSet};

/// Maximum number of points of the working sets in windows of one length.
const MOST_WINDOWS: usize = 1000;
/// Sizes of memory grow by at most a hundredth from point to point.
const STEPS: u64 = 100;

/// Facts about a recording and its program that the references do not show.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Name of the program, without its arguments.
    pub program: String,
    /// CPU time of a native run, in seconds.
    pub native_cpu_s: f64,
    /// Duration of a native run, in seconds.
    pub native_wall_s: f64,
    /// Largest resident memory of a native run.
    pub peak_bytes: Option<u64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Instructions that were executed; absent if unknown.
    pub instructions: Option<u64>,
    /// Number of references.
    pub references: u64,
    /// Size of the cache whose misses were recorded; absent if all references were.
    pub misses_of_bytes: Option<u64>,
    /// Description of the recorder.
    pub recorder: Recorder,
    /// Share of the pages from which the faults were estimated; 1 for all.
    pub sampled_share: f64,
    /// Reason why the recording lacks a part of the program; absent if it is whole.
    pub cut: Option<String>,
}

/// Memory sizes of a curve, in pages: from `least` to the footprint, each at most a hundredth above the one before.
#[must_use]
pub fn memory_sizes(least: u64, footprint_pages: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = least.max(1);
    while size < footprint_pages {
        sizes.push(size);
        size += (size / STEPS).max(1);
    }
    sizes.push(footprint_pages.max(least).max(1));
    sizes
}

/// Makes the document of a curve. `sizes` and `faults` belong together.
#[must_use]
pub fn curve(measured: RunFacts, sizes: &[u64], faults: &[Faults], profile: Profile) -> Curve {
    let footprint_pages = profile.footprint_pages();
    let (windows, first_touches) = profile.finish();
    let point = |(size, faults): (&u64, &Faults)| FaultPoint {
        memory_pages: *size,
        reuse_count: faults.reuse.round() as u64,
        write_backs_count: faults.write_backs.round() as u64,
    };
    let first = memory_sizes(1, footprint_pages);
    let references = first_touches.to_first(&first);
    let first_touch = first.iter().zip(references);
    Curve {
        curve_version: CURVE_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: measured.program,
        native_cpu_s: measured.native_cpu_s,
        native_wall_s: measured.native_wall_s,
        peak_bytes: measured.peak_bytes,
        page_bytes: measured.page_bytes,
        footprint_pages,
        instructions_count: measured.instructions,
        references_count: measured.references,
        misses_of_bytes: measured.misses_of_bytes,
        faults: sizes.iter().zip(faults).map(point).collect(),
        windows: windows.into_iter().flat_map(thinned).collect(),
        first_touch: first_touch
            .map(|(pages, references_count)| FirstTouch {
                pages: *pages,
                references_count,
            })
            .collect(),
        recorder: measured.recorder,
        sampled_share: measured.sampled_share,
        cut: measured.cut,
    }
}

/// Windows of one length, at most [`MOST_WINDOWS`]: neighbours are replaced by the largest of them.
fn thinned(windows: Windows) -> Vec<WorkingSet> {
    let at_once = windows.sizes.len().div_ceil(MOST_WINDOWS).max(1);
    let groups = windows.sizes.chunks(at_once);
    let largest = groups.filter_map(|group| {
        let (time_ms, _) = group.first()?;
        Some(WorkingSet {
            window_ms: windows.window_ms,
            time_ms: *time_ms,
            pages: group.iter().map(|(_, pages)| *pages).max()?,
        })
    });
    largest.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_rise_by_a_hundredth_at_most(least in 1u64..100, footprint in 0u64..1 << 40) {
            let sizes = memory_sizes(least, footprint);
            prop_assert_eq!(sizes[0], least.min(footprint.max(least)));
            prop_assert_eq!(*sizes.last().unwrap(), footprint.max(least));
            prop_assert!(sizes.len() < 4000);
            for pair in sizes.windows(2) {
                prop_assert!(pair[0] < pair[1] && pair[1] <= pair[0] + (pair[0] / 100).max(1));
            }
        }
    }

    #[test]
    fn many_windows_become_their_largest() {
        let sizes = (0..2500)
            .map(|at| (f64::from(at) * 10.0, u64::from(at % 3 == 0)))
            .collect();
        let sets = thinned(Windows {
            window_ms: Some(10),
            sizes,
        });
        assert_eq!(sets.len(), 834);
        assert!(sets.iter().all(|set| set.pages == 1));
        assert_eq!(sets[1].time_ms, 30.0);
        assert!(
            thinned(Windows {
                window_ms: None,
                sizes: Vec::new()
            })
            .is_empty()
        );
    }
}
