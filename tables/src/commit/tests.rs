//! Sequences of commits, held against a list of the wanted files.

use super::*;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use proptest::prelude::*;

const GRACE_MS: i64 = 3_600_000;
const START_MS: i64 = 1_795_219_200_000;
const PLACE: &str = "file:///srv/tables/samples";

fn file(number: i64, day: i32) -> DataFile {
    DataFile {
        path: format!("data/date={day}/{number}-81d05c2a.parquet"),
        day,
        rows: number + 1,
        bytes: 100 * number,
        first_host_id: "0db1".to_owned(),
        last_host_id: format!("{number}"),
        first_time_us: i64::from(day) * 86_400_000_000,
        last_time_us: i64::from(day) * 86_400_000_000 + number,
    }
}

/// A table on a store, and the files that each snapshot must have.
struct TestTable {
    state: Option<State>,
    objects: BTreeMap<String, Vec<u8>>,
    expected: BTreeMap<i64, Vec<DataFile>>,
    location: String,
    now_ms: i64,
}

impl TestTable {
    fn new() -> Self {
        Self {
            state: None,
            objects: BTreeMap::new(),
            expected: BTreeMap::new(),
            location: PLACE.to_owned(),
            now_ms: START_MS,
        }
    }

    fn wanted(&self, files: &[DataFile]) -> TargetTable {
        TargetTable {
            table: SampleRow::TABLE,
            location: self.location.clone(),
            schema: State::next_schema(self.state.as_ref(), &SampleRow::TABLE),
            files: files.to_vec(),
            properties: BTreeMap::new(),
        }
    }

    /// Commits `files`, writes the objects, and removes those that nothing names. Returns false without a commit.
    fn publish(&mut self, files: &[DataFile]) -> bool {
        let wanted = self.wanted(files);
        let Some(commit) = next(self.state.as_ref(), &wanted, self.now_ms, GRACE_MS).unwrap()
        else {
            return false;
        };
        self.objects.extend(commit.objects);
        let named = metadata_names(commit.version, &commit.metadata);
        self.objects.retain(|name, _| named.contains(name));
        let text = &self.objects[&metadata_name(commit.version)];
        let metadata = Metadata::parse(text).unwrap();
        assert_eq!(metadata, commit.metadata);
        let id = metadata.current_snapshot_id;
        self.expected.insert(id, files.to_vec());
        let manifest = &self.objects[&manifest_name(id)];
        self.state = Some(State::new(commit.version, metadata, manifest).unwrap());
        true
    }

    fn state(&self) -> &State {
        self.state.as_ref().unwrap()
    }

    /// Checks that each snapshot is readable and has its files, and that versions name readable snapshots only.
    fn check(&self) {
        let Some(state) = &self.state else { return };
        for snapshot in &state.metadata.snapshots {
            let id = snapshot.snapshot_id;
            let live = live_files(&self.objects[&manifest_name(id)], &self.location).unwrap();
            let mut found: Vec<DataFile> = live.iter().map(|e| e.file.clone()).collect();
            let mut expected = self.expected[&id].clone();
            found.sort_by_key(|f| f.path.clone());
            expected.sort_by_key(|f| f.path.clone());
            assert_eq!(found, expected);
            assert!(
                live.iter()
                    .all(|e| e.sequence_number <= id && e.snapshot_id <= id)
            );
            assert!(self.objects.contains_key(&list_name(id)));
            assert_eq!(
                snapshot.manifest_list,
                format!("{}/{}", self.location, list_name(id))
            );
        }
        let readable: BTreeSet<i64> = state
            .metadata
            .snapshots
            .iter()
            .map(|s| s.snapshot_id)
            .collect();
        for (name, text) in &self.objects {
            let name = name.strip_prefix("metadata/").unwrap();
            if version_of(name).is_some() {
                let metadata = Metadata::parse(text).unwrap();
                assert!(readable.contains(&metadata.current_snapshot_id), "{name}");
            }
        }
    }
}

#[test]
fn an_unchanged_table_gets_no_commit() {
    let mut table = TestTable::new();
    assert!(!table.publish(&[]));
    assert!(table.publish(&[file(1, 7)]));
    table.now_ms += 10 * GRACE_MS;
    assert!(!table.publish(&[file(1, 7)]));
    assert_eq!(table.state().version, 1);
}

#[test]
fn a_merge_is_one_snapshot_and_its_predecessor_stays_for_the_grace_time() {
    let mut table = TestTable::new();
    table.publish(&[file(1, 7), file(2, 7), file(3, 8)]);
    let first = table.state().live.clone();
    table.now_ms += 10 * GRACE_MS;
    table.publish(&[file(4, 7), file(3, 8)]);
    table.check();
    let state = table.state().clone();
    let ids: Vec<i64> = state
        .metadata
        .snapshots
        .iter()
        .map(|s| s.snapshot_id)
        .collect();
    assert_eq!(ids, [1, 2]);
    let summary = &state.metadata.snapshots[1].summary;
    assert_eq!(summary["operation"], "overwrite");
    assert_eq!(
        (&*summary["added-records"], &*summary["deleted-records"]),
        ("5", "5")
    );
    assert_eq!(summary["total-data-files"], "2");
    let third = |entries: &[Entry]| {
        entries
            .iter()
            .find(|e| e.file == file(3, 8))
            .cloned()
            .unwrap()
    };
    assert_eq!(
        third(&state.live).sequence_number,
        third(&first).sequence_number
    );
    assert_eq!(third(&state.live).status, Status::Existing);

    table.now_ms += GRACE_MS - 1;
    assert!(!table.publish(&[file(4, 7), file(3, 8)]));
    table.now_ms += 1;
    assert!(table.publish(&[file(4, 7), file(3, 8)]));
    let ids = table
        .state()
        .metadata
        .snapshots
        .iter()
        .map(|s| s.snapshot_id);
    assert_eq!(ids.collect::<Vec<_>>(), [2]);
    assert!(!table.objects.contains_key(&manifest_name(1)));
    table.check();
}

#[test]
fn all_rows_may_leave_a_table() {
    let mut table = TestTable::new();
    table.publish(&[file(1, 7)]);
    table.publish(&[]);
    assert_eq!(
        table.state().metadata.snapshots[1].summary["operation"],
        "delete"
    );
    assert!(table.state().live.is_empty());
    table.publish(&[file(2, 9)]);
    table.check();
}

#[test]
fn a_moved_table_starts_with_all_files_and_keeps_its_identity() {
    let mut table = TestTable::new();
    table.publish(&[file(1, 7), file(2, 7)]);
    let before = table.state().clone();
    table.location = "s3://traces/samples".to_owned();
    assert!(table.publish(&[file(1, 7), file(2, 7)]));
    table.check();
    let state = table.state();
    assert_eq!(state.metadata.table_uuid, before.metadata.table_uuid);
    assert_eq!(state.metadata.snapshots.len(), 1);
    assert!(state.metadata.metadata_log.is_empty());
    assert!(
        state
            .live
            .iter()
            .all(|e| e.status == Status::Added && e.sequence_number == 2)
    );
    assert_eq!(state.version, 2);
}

#[test]
fn times_never_go_back() {
    let mut table = TestTable::new();
    table.publish(&[file(1, 7)]);
    table.now_ms -= 5 * GRACE_MS;
    table.publish(&[file(2, 7)]);
    let times: Vec<i64> = table
        .state()
        .metadata
        .snapshots
        .iter()
        .map(|s| s.timestamp_ms)
        .collect();
    assert_eq!(times, [START_MS, START_MS]);
}

#[test]
fn a_tables_id_is_a_uuid() {
    let id = uuid(PLACE, START_MS);
    assert_eq!(id.len(), 36);
    let parts: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert_eq!(&id[14..15], "8");
    assert_ne!(id, uuid(PLACE, START_MS + 1));
}

#[derive(Clone, Debug)]
enum Step {
    Seal { day: i32 },
    Merge { day: i32 },
    Drop { day: i32 },
    Publish { wait_ms: i64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4).prop_map(|day| Step::Seal { day }),
        2 => (0..4).prop_map(|day| Step::Merge { day }),
        1 => (0..4).prop_map(|day| Step::Drop { day }),
        4 => (0..2 * GRACE_MS).prop_map(|wait_ms| Step::Publish { wait_ms }),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #[test]
    fn the_newest_snapshot_has_the_datasets_files(steps in steps()) {
        let (mut table, mut files) = (TestTable::new(), Vec::new());
        let mut numbers = 1..;
        for step in steps {
            match step {
                Step::Seal { day } => files.push(file(numbers.next().unwrap(), day)),
                Step::Merge { day } => {
                    let before = files.len();
                    files.retain(|f: &DataFile| f.day != day);
                    if files.len() < before {
                        files.push(file(numbers.next().unwrap(), day));
                    }
                }
                Step::Drop { day } => files.retain(|f| f.day != day),
                Step::Publish { wait_ms } => {
                    table.now_ms += wait_ms;
                    table.publish(&files);
                    let live = table.state.iter().flat_map(|s| &s.live);
                    let live: BTreeSet<&str> = live.map(|e| e.file.path.as_str()).collect();
                    let expected: BTreeSet<&str> = files.iter().map(|f| f.path.as_str()).collect();
                    prop_assert_eq!(live, expected);
                }
            }
            table.check();
        }
    }
}
