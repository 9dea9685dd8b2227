//! Our values for the cells of the published figures, from the findings.

mod memory;
mod periods;
pub(super) mod simulated;
mod together;

use super::clusters::SeedResults;
use super::name::Name;
use gleaner_traces::published::Figure;

/// Reason why a figure cannot be computed from any trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingFigure(pub(super) &'static str);

/// Our value of a figure, in bytes, seconds, hosts or as a share. It is `None` if a trace has none, such as
/// the mean of periods that never occurred.
type CellResult = Result<Option<f64>, MissingFigure>;

const NO_SUCH: MissingFigure = MissingFigure("no measure of the analysis gives it");
const NOT_SIMULATED: MissingFigure = MissingFigure("not simulated: it takes --simulate");
const OF_THE_AGENT: MissingFigure = MissingFigure(
    "not given by the analysis: synthetic hosts have no agent that writes a trace file",
);

/// Our value, in the figure's unit.
///
/// # Errors
/// [`MissingFigure`]; the error depends only on the published table, not on what was observed.
pub(super) fn ours(figure: &Figure, observed: &SeedResults) -> CellResult {
    let found = match &*figure.item {
        "Table 1" => memory::installed(figure, observed),
        "Table 2" => memory::usage(figure, &observed.pooled),
        "Table 3" => memory::dips(figure, &observed.pooled),
        "Table 4" => periods::mean(figure, &observed.pooled),
        "Figure 6" => together::available(figure, observed),
        "Figure 7" => together::share_of_large_hosts(figure, observed),
        "Text" => in_text(figure, observed),
        "Table 5" | "Table 6" | "Figure 10" => simulated::of(figure, observed),
        _ => Err(NO_SUCH),
    };
    Ok(found?.map(|value| value / unit(&figure.unit)))
}

fn in_text(figure: &Figure, observed: &SeedResults) -> CellResult {
    match &*figure.column {
        "half of memory, all" | "half of memory, idle" => periods::least(figure, 2, observed),
        "quarter of memory, all" | "quarter of memory, idle" => periods::least(figure, 4, observed),
        "busy period, mean" => Ok(periods::mean_busy(&observed.pooled)),
        "reclaims per host and day" => Ok(together::reclaims_per_day(named(figure)?, observed)),
        "memory not in active use" => Ok(memory::mean(
            &observed.pooled,
            &class(mib(&figure.row)?),
            "available_paper",
        )),
        "hosts with 20-30 dips below 6 MB" => {
            Ok(memory::hosts_with_20_to_30_dips(&observed.pooled))
        }
        "kernel over process memory" => memory::kernel_over_process(figure, &observed.pooled),
        "live file cache, mean and one deviation" => Ok(memory::live_files(&observed.pooled)),
        "trace footprint" => Err(OF_THE_AGENT),
        _ => Err(NO_SUCH),
    }
}

/// Factor from the findings' unit to `unit`.
fn unit(unit: &str) -> f64 {
    match unit {
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "min" => 60.0,
        "%" => 0.01,
        _ => 1.0,
    }
}

/// The cluster named in a figure's row.
fn named(figure: &Figure) -> Result<Name, MissingFigure> {
    let mut both = Name::BOTH.into_iter();
    both.find(|name| figure.row == name.row()).ok_or(NO_SUCH)
}

/// Memory sizes of the hosts in the rows of Tables 2 and 4.
const HOSTS_MIB: [i64; 4] = [32, 64, 128, 256];

/// The size in a row's or column's name: `64 MB`, or the upper bound of `64-128 MB`.
fn mib(text: &str) -> Result<i64, MissingFigure> {
    let size = text.strip_suffix(" MB").ok_or(NO_SUCH)?;
    let upper = size.rsplit('-').next().unwrap_or(size);
    upper.parse().map_err(|_| NO_SUCH)
}

/// Name in the findings of the class of hosts with this memory; the classes are bounded by powers of two from
/// 32 MiB.
fn class(mib: i64) -> String {
    match mib {
        ..=32 => "up to 32 MiB".to_owned(),
        mib => format!("{}-{mib} MiB", mib / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::ITEMS;
    use gleaner_traces::published::acharya_setia;
    use std::collections::BTreeMap;

    #[test]
    fn every_figure_has_its_place_in_the_findings_or_a_reason() {
        let nothing = SeedResults::default();
        let figures = acharya_setia().unwrap().figures;
        for figure in &figures {
            let expected = match (&*figure.item, &*figure.column) {
                ("Table 5" | "Table 6" | "Figure 10", _) => Err(NOT_SIMULATED),
                (_, "trace footprint") => Err(OF_THE_AGENT),
                _ => Ok(()),
            };
            assert_eq!(ours(figure, &nothing).map(|_| ()), expected, "{figure:?}");
        }
        // Without observations, the only figure with a value is the number of hosts.
        let found = figures
            .iter()
            .filter(|f| matches!(ours(f, &nothing), Ok(Some(_))));
        assert!({ found }.all(|f| f.item == "Table 1" && f.unit == "hosts"));
        let simulated_nothing = SeedResults {
            simulation: Some(BTreeMap::new()),
            ..SeedResults::default()
        };
        let taken = figures.iter().filter(|f| ITEMS.contains(&&*f.item));
        let found: Vec<CellResult> = taken.map(|f| ours(f, &simulated_nothing)).collect();
        assert!(found.len() > 40 && found.iter().all(|f| *f == Ok(None)));
    }

    #[test]
    fn sizes_and_classes() {
        assert_eq!(mib("64 MB"), Ok(64));
        assert_eq!(mib("64-128 MB"), Ok(128));
        assert_eq!(mib("all"), Err(NO_SUCH));
        assert_eq!(class(32), "up to 32 MiB");
        assert_eq!(class(1024), "512-1024 MiB");
    }
}
