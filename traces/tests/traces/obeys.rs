//! Rules that every trace obeys, checked record by record.

use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::{
    ActivityRow, FileRow, GapRow, HostRow, MissingValueRow, NumaNodeRow, ProcessRow, SampleRow,
};
use gleaner_traces::synth::{Record, Rows, SampleRows};
use std::collections::{BTreeMap, BTreeSet};

const DAY_MS: i64 = 86_400_000;

/// Columns that may be absent although `missing_values` has no row for them, as in the agent's data.
const ABSENT_WITHOUT_REASON: [&str; 10] = [
    "interval_ms",
    "arc_bytes",
    "arc_min_bytes",
    "zram_bytes",
    "zram_stored_bytes",
    "damon_idle_p10_ms",
    "damon_idle_p25_ms",
    "damon_idle_p50_ms",
    "damon_idle_p75_ms",
    "damon_idle_p90_ms",
];

/// Time since boot, which every synthetic host has.
fn boottime_ms(row: &SampleRow) -> i64 {
    row.boottime_ms.unwrap()
}

/// Follows one host's trace, and panics if it breaks a rule.
#[derive(Default)]
pub(crate) struct Reader {
    interval_ms: i64,
    sequence: i64,
    last: Option<(i64, SampleRow)>,
    gap: Option<GapRow>,
    host: Option<HostRow>,
    files: BTreeMap<i64, FileRow>,
    activity: BTreeMap<String, (i64, ActivityRow)>,
    missing_values: BTreeMap<(String, String), MissingValueRow>,
    boots: BTreeSet<String>,
    pub(crate) samples: usize,
    pub(crate) gaps: BTreeMap<String, usize>,
    pub(crate) events: BTreeMap<String, usize>,
    pub(crate) rows: BTreeMap<&'static str, usize>,
    pub(crate) residuals: BTreeSet<i64>,
    pub(crate) least_available_share: f64,
}

impl Reader {
    pub(crate) fn new(interval_ms: i64) -> Self {
        Self {
            interval_ms,
            least_available_share: 1.0,
            ..Self::default()
        }
    }

    pub(crate) fn read(&mut self, record: &Record) {
        assert_eq!(record.sequence, self.sequence + 1, "one sequence a record");
        self.sequence = record.sequence;
        let mut count = 0;
        record
            .try_each(|table, values| -> Result<(), ()> {
                let columns = gleaner_schemas::rows::table(table).unwrap().columns;
                assert_eq!(values.len(), columns.len());
                *self.rows.entry(table).or_default() += 1;
                count += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(count, record.rows_count());
        match &record.rows {
            Rows::Gap(row) => {
                assert_eq!(row.to_time_ms, record.time_ms);
                assert_eq!(Some(row.from_time_ms), self.last.as_ref().map(|l| l.0));
                assert!(row.from_time_ms < row.to_time_ms);
                *self.gaps.entry(row.cause.clone()).or_default() += 1;
                self.gap = Some(row.clone());
            }
            Rows::Host(row) => self.host = Some((**row).clone()),
            Rows::Event(row) => {
                *self.events.entry(row.kind.clone()).or_default() += 1;
                if row.kind == "boot" {
                    self.boots.insert(row.detail.clone().unwrap());
                }
            }
            Rows::Sample(rows) => self.sample(record.time_ms, rows),
        }
    }

    fn sample(&mut self, time_ms: i64, rows: &SampleRows) {
        let row = &rows.sample;
        self.samples += 1;
        self.follows(time_ms, row);
        categories(row);
        self.residuals.insert(row.available_residual_bytes);
        let share = row.available_bytes as f64 / row.physical_bytes as f64;
        self.least_available_share = self.least_available_share.min(share);
        self.file_rows(&rows.files, row);
        self.activity_rows(&rows.activity, row, time_ms);
        self.missing_value_rows(&rows.missing_values, row);
        processes(rows);
        numa_nodes(&rows.numa_nodes, row, self.host.as_ref());
        self.last = Some((time_ms, row.clone()));
        (self.gap, self.host) = (None, self.host.take());
    }

    /// Checks gaps, complete states, inventories and boots, and that counters do not fall.
    fn follows(&mut self, time_ms: i64, row: &SampleRow) {
        assert!(
            self.boots.contains(row.boot_id.as_ref().unwrap()),
            "its boot was told of"
        );
        let Some((last_ms, last)) = &self.last else {
            assert!(row.is_complete_state && row.interval_ms.is_none() && self.host.is_some());
            return;
        };
        let passed_ms = time_ms - last_ms;
        assert!(passed_ms > 0);
        let begins_anew = self.gap.is_some() || time_ms / DAY_MS != last_ms / DAY_MS;
        assert_eq!(row.is_complete_state, begins_anew);
        let is_same_boot = row.boot_id == last.boot_id;
        match &self.gap {
            None => {
                assert_eq!(row.interval_ms, Some(passed_ms));
                assert!(passed_ms <= 2 * self.interval_ms, "a gap without a row");
                assert!(is_same_boot);
            }
            Some(gap) => {
                assert_eq!(row.interval_ms, None);
                assert_eq!(gap.cause == "boot", !is_same_boot, "{gap:?}");
            }
        }
        if is_same_boot {
            assert_eq!(boottime_ms(row) - boottime_ms(last), passed_ms);
            for ((column, now), before) in SampleRow::TABLE
                .columns
                .iter()
                .zip(row.to_values())
                .zip(last.to_values())
            {
                if let (true, Value::Integer(now), Value::Integer(before)) = (
                    column.name.contains("_total_") && column.name != "swap_total_bytes",
                    now,
                    before,
                ) {
                    assert!(
                        column.name.ends_with("bytes") || now >= before,
                        "{}",
                        column.name
                    );
                }
            }
        } else {
            assert!(boottime_ms(row) < passed_ms);
        }
    }

    fn file_rows(&mut self, rows: &[FileRow], sample: &SampleRow) {
        distinct(rows.iter().map(|f| f.file_id));
        if sample.is_complete_state {
            self.files.clear();
        }
        for row in rows {
            assert!(row.path.is_none(), "hashed");
            let known = self.files.get(&row.file_id);
            if row.open_processes_count == 0 && row.mapping_processes_count == 0 {
                assert!(known.is_some(), "ends what was never there");
                assert_eq!((row.size_bytes, row.cached_bytes), (None, None));
                self.files.remove(&row.file_id);
                continue;
            }
            assert_ne!(known, Some(row), "no news");
            assert!(row.mapped_cached_bytes <= row.cached_bytes);
            assert!(row.mapping_processes_count > 0 || row.mapped_cached_bytes == Some(0));
            let pages = |bytes: Option<i64>| (bytes.unwrap() + 4095) / 4096;
            assert!(pages(row.cached_bytes) <= pages(row.size_bytes), "{row:?}");
            self.files.insert(row.file_id, row.clone());
        }
        let sum = |of: fn(&FileRow) -> Option<i64>| self.files.values().filter_map(of).sum::<i64>();
        let mapped_bytes = sum(|f| f.mapped_cached_bytes);
        assert_eq!(
            sum(|f| f.cached_bytes) - mapped_bytes,
            sample.file_cache_bytes,
            "who follows the changes knows the file cache"
        );
        assert!(mapped_bytes <= sample.process_bytes);
    }

    fn activity_rows(&mut self, rows: &[ActivityRow], sample: &SampleRow, time_ms: i64) {
        distinct(rows.iter().map(|a| a.source.clone()));
        if sample.is_complete_state {
            self.activity.clear();
        }
        for row in rows {
            assert_eq!(row.state == "ok", row.idle_ms.is_some());
            assert!(row.idle_ms.is_none_or(|idle_ms| idle_ms >= 0), "{row:?}");
            if let Some((told_ms, known)) = self.activity.get(&row.source) {
                let expected = known.idle_ms.map(|ms| ms + time_ms - told_ms);
                assert_ne!(row.idle_ms, expected, "no news");
            }
            self.activity
                .insert(row.source.clone(), (time_ms, row.clone()));
        }
        assert_eq!(self.activity.len(), 4);
        let idle = |(told_ms, row): &(i64, ActivityRow)| Some(row.idle_ms? + time_ms - told_ms);
        assert_eq!(
            sample.owner_idle_ms,
            self.activity.values().filter_map(idle).min()
        );
    }

    fn missing_value_rows(&mut self, rows: &[MissingValueRow], sample: &SampleRow) {
        distinct(rows.iter().map(|a| (a.item.clone(), a.reason.clone())));
        if sample.is_complete_state {
            self.missing_values.clear();
        }
        for row in rows {
            let key = (row.item.clone(), row.reason.clone());
            if row.reason != "vanished" {
                assert!(
                    self.missing_values.insert(key, row.clone()).is_none(),
                    "no news"
                );
            }
        }
        for (column, value) in SampleRow::TABLE.columns.iter().zip(sample.to_values()) {
            let has_reason = self
                .missing_values
                .keys()
                .any(|(item, _)| item == column.name);
            let needs_reason =
                value == Value::Null && !ABSENT_WITHOUT_REASON.contains(&column.name);
            assert_eq!(has_reason, needs_reason, "{}", column.name);
        }
        let missing = self
            .activity
            .values()
            .filter(|(_, a)| a.state != "ok")
            .count();
        let told = self.missing_values.values().find(|a| a.item == "activity");
        assert_eq!(told.map_or(0, |a| a.missing_count), missing as i64);
    }
}

fn categories(row: &SampleRow) {
    let sum = row.static_kernel_bytes.unwrap_or(0)
        + row.balloon_bytes
        + row.dynamic_kernel_bytes
        + row.reserve_bytes.unwrap_or(0)
        + row.process_bytes
        + row.file_cache_bytes
        + row.guest_bytes
        + row.available_bytes
        + row.category_correction_bytes;
    assert_eq!(sum, row.physical_bytes);
    assert_eq!(
        row.category_correction_bytes, 0,
        "figures that contradict each other"
    );
    let parts = row.available_free_bytes
        + row.available_idle_process_bytes
        + row.available_unused_cache_bytes
        + row.available_reclaimable_kernel_bytes;
    assert_eq!(row.available_bytes - parts, row.available_residual_bytes);
    let residual_share = row.available_residual_bytes as f64 / row.physical_bytes as f64;
    assert!(residual_share.abs() < 0.005, "{residual_share}");
    assert!(row.mem_free_bytes > 0);
    assert!(row.mem_available_min_bytes <= row.mem_available_bytes);
    assert!(row.swap_free_bytes <= row.swap_total_bytes);
    for (column, value) in SampleRow::TABLE.columns.iter().zip(row.to_values()) {
        let may_be_negative = column.name == "available_residual_bytes";
        if let (false, Value::Integer(value)) = (may_be_negative, value) {
            assert!(value >= 0, "{} is {value}", column.name);
        }
    }
}

fn processes(rows: &SampleRows) {
    let row = &rows.sample;
    distinct(rows.processes.iter().map(|p| p.pid));
    assert_eq!(row.active_processes_count, rows.processes.len() as i64);
    assert!(row.processes_count >= row.active_processes_count);
    let mut anon_bytes = 0;
    for process in &rows.processes {
        let ProcessRow { name, cpu_ms, .. } = process;
        let is_kind = gleaner_policy::active::ALWAYS_ACTIVE.contains(&name.as_str());
        assert_eq!(process.always_active, is_kind, "{name}");
        assert!(is_kind || *cpu_ms != Some(0), "{name} is not active");
        assert!(
            (0..=boottime_ms(row)).contains(&process.start_boottime_ms),
            "{process:?} {row:?}"
        );
        let is_read = process.memory_source != "rss_estimate";
        assert_eq!(process.private_bytes.is_some(), is_read);
        if let (Some(private), Some(shared)) = (process.private_bytes, process.shared_bytes) {
            assert_eq!(private + shared, process.rss_bytes);
        }
        anon_bytes += process.anon_bytes.unwrap();
    }
    assert!(anon_bytes <= row.process_bytes);
    distinct(rows.cgroups.iter().map(|g| g.cgroup_id));
    let in_groups: i64 = rows.cgroups.iter().map(|g| g.active_processes_count).sum();
    assert!(rows.cgroups.is_empty() || in_groups == row.active_processes_count);
}

fn numa_nodes(nodes: &[NumaNodeRow], sample: &SampleRow, host: Option<&HostRow>) {
    let count = host.and_then(|h| h.numa_nodes_count).unwrap();
    assert_eq!(nodes.len() as i64, if count > 1 { count } else { 0 });
    if nodes.is_empty() {
        return;
    }
    let sum = |of: fn(&NumaNodeRow) -> i64| nodes.iter().map(of).sum::<i64>();
    assert_eq!(sum(|n| n.mem_total_bytes), sample.mem_total_bytes);
    assert_eq!(sum(|n| n.mem_free_bytes), sample.mem_free_bytes);
    assert_eq!(Some(sum(|n| n.slab_bytes.unwrap())), sample.slab_bytes);
}

fn distinct<K: Ord + std::fmt::Debug>(keys: impl Iterator<Item = K>) {
    let mut seen = BTreeSet::new();
    keys.for_each(|key| {
        assert!(
            !seen.contains(&key) && seen.insert(key),
            "twice in a record"
        )
    });
}
