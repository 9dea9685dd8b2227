//! `gleaner export` for policy simulators, on synthetic hosts. Every format has the same periods, and
//! `gleaner analyze` counts these too.

mod fta;
mod refused;
mod simgrid;

use crate::gleaner::told;
use gleaner_schemas::findings::{AvailabilityPeriods, EndCause, Findings, Notion, Scope};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Size of the region: most of the memory of the smaller hosts, so that it is available only at times.
const REGION: &str = "12GiB";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Dataset of four synthetic hosts over three days.
struct Fleet(TempDir);

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = ["--hosts", "4", "--days", "3", "--interval", "4m"];
        told(&[&["synth", "-o", text(folder.path())], &size[..]].concat());
        Self(folder)
    }

    fn dataset(&self) -> &str {
        text(self.0.path())
    }

    /// Exports to a new folder; returns the folder.
    fn exported(&self, to: &str, scope: &str, more: &[&str]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let wanted = ["export", self.dataset(), "--to", to, "-o", text(&out)];
        let how = ["--region", REGION, "--scope", scope];
        told(&[&wanted[..], &how, more].concat());
        let mark = fs::read_to_string(out.join("gleaner-export.json")).unwrap();
        assert!(mark.contains("\"is_whole\": true"), "{mark}");
        (folder, out)
    }

    /// Periods according to the CSV export.
    fn periods(&self, scope: &str, more: &[&str]) -> Vec<Period> {
        let csv = [&["--as", "csv"], more].concat();
        let (_folder, out) = self.exported("availability", scope, &csv);
        let period = |row: Vec<String>| Period {
            host: row[0].clone(),
            name: row[1].clone(),
            from_ms: ms(&row[4]),
            to_ms: ms(&row[5]),
            ended_by: row[8].clone(),
        };
        let periods = rows(&out.join("periods.csv")).into_iter().map(period);
        let periods: Vec<Period> = periods.collect();
        assert!(periods.len() > 10, "{periods:?}");
        periods
    }
}

/// A period, as a line of `periods.csv` states it.
#[derive(Clone, Debug, PartialEq)]
struct Period {
    host: String,
    name: String,
    from_ms: i64,
    to_ms: i64,
    ended_by: String,
}

/// Fields of a CSV file's rows; no field here is quoted.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

fn ms(time: &str) -> i64 {
    gleaner_dataset::instant_ms(time).unwrap()
}

#[test]
fn periods_are_those_that_the_analysis_counts() {
    let fleet = Fleet::new();
    let json = told(&["analyze", fleet.dataset(), "--json", "--region", REGION]);
    let found: Findings = serde_json::from_str(&json).unwrap();
    for (scope, name) in [(Scope::All, "all"), (Scope::Idle, "idle")] {
        let exported = fleet.periods(name, &["--minimum-period", "5m"]);
        let of_all = |p: &&AvailabilityPeriods| {
            p.size_class == "all" && p.scope == scope && p.notion == Notion::Available
        };
        let counted = found.availability_periods.iter().find(of_all).unwrap();
        let ended = |cause: Option<EndCause>| {
            let name = cause.map_or_else(String::new, |cause| {
                let name = serde_json::to_value(cause).unwrap();
                name.as_str().unwrap().to_owned()
            });
            exported.iter().filter(|p| p.ended_by == name).count() as i64
        };
        let expected = [
            counted.ended_by_owner_count,
            counted.ended_by_load_count,
            counted.ended_by_memory_count,
            counted.ended_by_sleep_or_power_count,
            counted.ended_by_network_count,
            counted.ended_by_agent_count,
            counted.end_censored_count,
        ];
        let causes = EndCause::ALL.map(Some).into_iter().chain([None]);
        assert!(causes.map(ended).eq(expected), "{name}: {counted:?}");
        assert_eq!(exported.len() as i64, expected.iter().sum::<i64>());
        assert!(exported.iter().all(|p| p.to_ms - p.from_ms >= 300_000));
    }
}
