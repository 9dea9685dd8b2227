//! A dataset in a temporary folder, recorded row by row.

use gleaner_analysis::{AnalysisError, analyze};
use gleaner_dataset::{Dataset, Identity, RowsBuilder, Writer};
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::{HostRow, SampleRow};
use std::collections::BTreeMap;
use tempfile::TempDir;

pub(crate) const MIB: i64 = 1 << 20;
/// 2026-11-20 12:00:00 UTC.
pub(crate) const NOON: i64 = 1_795_176_000_000;

/// A dataset's rows before they are written.
pub(crate) struct Recording {
    tables: BTreeMap<&'static str, RowsBuilder>,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self {
            tables: BTreeMap::new(),
        }
    }

    /// Adds a row of host `host`, recorded `seconds` after noon.
    pub(crate) fn row<R: Row>(
        &mut self,
        host: &str,
        sequence: i64,
        seconds: i64,
        row: &R,
    ) -> &mut Self {
        self.row_in("db", host, sequence, seconds, row)
    }

    pub(crate) fn row_in<R: Row>(
        &mut self,
        database_id: &str,
        host_id: &str,
        sequence: i64,
        seconds: i64,
        row: &R,
    ) -> &mut Self {
        let identity = Identity {
            host_id,
            database_id,
            sequence,
            time_ms: NOON + seconds * 1000,
        };
        self.tables
            .entry(R::TABLE.name)
            .or_insert_with(|| RowsBuilder::new(&R::TABLE))
            .push(identity, row.to_values())
            .unwrap();
        self
    }

    /// Adds the host's description: `interval_s` between samples.
    pub(crate) fn host(&mut self, host: &str, interval_s: i64) -> &mut Self {
        let row = HostRow {
            host_name: format!("name of {host}"),
            kernel_release: "6.18".into(),
            cpus_count: 4,
            sample_interval_ms: interval_s * 1000,
            ..Default::default()
        };
        self.row(host, 0, 0, &row)
    }

    /// Writes the dataset; its folder is deleted when the returned `TempDir` is dropped.
    pub(crate) fn dataset(self) -> (TempDir, Dataset) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        for (name, rows) in self.tables {
            let table = gleaner_schemas::rows::table(name).unwrap();
            writer.append(&table, rows.finish().unwrap()).unwrap();
        }
        writer.seal().unwrap();
        let dataset = Dataset::open(folder.path()).unwrap();
        (folder, dataset)
    }

    /// Analyses the dataset, and checks rules that hold for any findings.
    pub(crate) fn analyzed(self, parameters: &Parameters) -> Result<Findings, AnalysisError> {
        let (_folder, dataset) = self.dataset();
        let mut steps = Vec::new();
        let findings = analyze(&dataset, parameters, &mut |p| steps.push(p.hosts_done))?;
        assert!(steps.iter().copied().eq(1..=steps.len()));
        // JSON has neither NaN nor infinity.
        let debug = format!("{findings:?}");
        for bad in ["NaN", ": inf", "(inf", "-inf"] {
            assert!(!debug.contains(bad), "{bad} in {debug}");
        }
        let json = serde_json::to_string(&findings).unwrap();
        serde_json::from_str::<Findings>(&json).unwrap();
        Ok(findings)
    }
}

/// A sample of a 1 GiB host whose categories add up and whose owner's activity is unknown.
pub(crate) fn sample(available_mib: i64) -> SampleRow {
    SampleRow {
        physical_bytes: 1024 * MIB,
        static_kernel_bytes: Some(24 * MIB),
        dynamic_kernel_bytes: 60 * MIB,
        reserve_bytes: Some(16 * MIB),
        process_bytes: (924 - available_mib) * MIB,
        available_bytes: available_mib * MIB,
        mem_available_bytes: Some(available_mib * MIB),
        load5: Some(0.1),
        is_complete_state: true,
        agent_cpu_us: 9000,
        agent_rss_bytes: 5 * MIB,
        ..Default::default()
    }
}
