//! Damage is reported with the file's name. It is never read as data, and never causes a panic.

use crate::made_rows::{Name, batch};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::{
    Dataset, DatasetError, FORMAT_VERSION, Problem, ProblemKind, Writer, repair,
};
use gleaner_schemas::SCHEMA_VERSION;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::FileRow;
use std::fs;
use std::path::{Path, PathBuf};

/// A dataset with a single file.
fn small() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let table = FileRow::TABLE;
    let rows: Vec<Name> = (0..40).map(|key| Name::new(1, 0, 5, key)).collect();
    let mut writer = Writer::open(folder.path()).unwrap();
    writer.append(&table, batch(&table, &rows)).unwrap();
    writer.seal().unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    let file = folder.path().join(&dataset.manifest().files[0].path);
    (folder, file)
}

fn read(root: &Path) -> Result<RecordBatch, DatasetError> {
    let columns: Vec<&str> = FileRow::TABLE.columns.iter().map(|c| c.name).collect();
    Dataset::open(root)?.read_host(&FileRow::TABLE, "host-1", &columns)
}

/// Asserts that there is exactly one problem, that it is with `file`, and returns it.
#[track_caller]
fn the_problem(root: &Path, file: &Path) -> Problem {
    let mut verified = Dataset::open(root).unwrap().verify();
    assert_eq!((verified.files, verified.rows), (1, 40));
    let problem = verified.problems.pop().unwrap();
    assert_eq!(verified.problems, []);
    assert_eq!(root.join(&problem.path), file);
    problem
}

#[track_caller]
fn names_the_file(error: &DatasetError, file: &Path) {
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(error.to_string().contains(name), "{error}");
}

#[test]
fn a_torn_file_is_named_by_every_reader() {
    let (folder, file) = small();
    let whole = fs::read(&file).unwrap();
    for length in [0, 1, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(matches!(error, DatasetError::Torn { .. }), "{error}");
        names_the_file(&error, &file);
        let problem = the_problem(folder.path(), &file);
        let torn = ProblemKind::Torn {
            expected: whole.len() as u64,
            found: length as u64,
        };
        assert_eq!(
            (problem.kind, problem.rows, problem.hosts_count),
            (torn, 40, 1)
        );
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(the_problem(folder.path(), &file).kind, ProblemKind::Missing);
    names_the_file(&read(folder.path()).unwrap_err(), &file);
}

#[test]
fn flipped_bytes_are_found_by_verify_and_never_read_as_data() {
    let (folder, file) = small();
    let whole = fs::read(&file).unwrap();
    let sound = read(folder.path()).unwrap();
    assert_eq!(sound.num_rows(), 40);
    let mut told_while_reading = 0;
    for position in (0..whole.len()).step_by(7) {
        let mut altered = whole.clone();
        altered[position] ^= 0x55;
        fs::write(&file, &altered).unwrap();
        let problem = the_problem(folder.path(), &file);
        let rows = match problem.kind {
            ProblemKind::OutsideRows => 0,
            ProblemKind::Footer | ProblemKind::Batches(1) => 40,
            other => panic!("{other}"),
        };
        assert_eq!(problem.rows, rows);
        match read(folder.path()) {
            Ok(rows) => assert_eq!(rows, sound, "byte {position}"), // outside the bytes that are read
            Err(error) => {
                told_while_reading += 1;
                names_the_file(&error, &file);
            }
        }
    }
    println!(
        "{told_while_reading} of {} told without verify",
        whole.len()
    );
    assert!(told_while_reading > 0);
}

#[test]
fn a_folder_without_a_manifest_is_no_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let error = Dataset::open(folder.path()).unwrap_err();
    assert!(
        error.to_string().contains("gleaner-agent export"),
        "{error}"
    );
    fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let error = Writer::open(folder.path()).unwrap_err();
    assert!(matches!(error, DatasetError::NotEmpty { .. }), "{error}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(
        left.len(),
        1,
        "nothing is left in a folder that is not ours"
    );
}

#[test]
fn newer_versions_are_refused_by_readers_and_writers() {
    for (what, now) in [
        ("format_version", FORMAT_VERSION),
        ("schema_version", SCHEMA_VERSION),
    ] {
        let (folder, _) = small();
        let manifest = folder.path().join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        let newer = text.replace(
            &format!("\"{what}\": {now}"),
            &format!("\"{what}\": {}", now + 1),
        );
        assert_ne!(text, newer);
        fs::write(&manifest, newer).unwrap();
        let readers = Dataset::open(folder.path()).err().unwrap();
        let writers = Writer::open(folder.path()).err().unwrap();
        for error in [readers, writers] {
            assert!(matches!(error, DatasetError::Newer { .. }), "{error}");
            assert!(error.to_string().contains("newer Gleaner"), "{error}");
        }
    }
}

#[test]
fn a_damaged_manifest_is_told() {
    let (folder, _) = small();
    let manifest = folder.path().join("manifest.json");
    fs::write(&manifest, "{\"format_version\": 1").unwrap();
    let error = Dataset::open(folder.path()).unwrap_err();
    names_the_file(&error, &manifest);
}

#[test]
fn what_a_dead_writer_left_is_ignored_and_then_removed() {
    let (folder, file) = small();
    let orphan = file.with_file_name("0123456789abcdef0123456789abcdef.arrow");
    fs::copy(&file, &orphan).unwrap();
    let staged = folder.path().join(".staging/0");
    fs::write(&staged, "half a file").unwrap();
    assert_eq!(read(folder.path()).unwrap().num_rows(), 40);
    drop(Writer::open(folder.path()).unwrap());
    assert!(!orphan.exists() && !staged.exists() && file.exists());
    let kept = folder.path().join(".retired");
    let kept = kept.join(orphan.strip_prefix(folder.path()).unwrap());
    assert!(kept.exists(), "for who opened the dataset before");
    assert_eq!(read(folder.path()).unwrap().num_rows(), 40);
}

/// Any flipped bit of the manifest is detected. Without its hash, 40 of 900 flipped bits changed a count of
/// rows, a hash or a path without an error.
#[test]
fn an_altered_manifest_is_never_read() {
    let (folder, _) = small();
    let manifest = folder.path().join("manifest.json");
    let whole = fs::read(&manifest).unwrap();
    for bit in 0..8 * whole.len() {
        let mut altered = whole.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        fs::write(&manifest, &altered).unwrap();
        let error = Dataset::open(folder.path()).err();
        let error = error.unwrap_or_else(|| panic!("bit {bit} of {}", whole.len()));
        names_the_file(&error, &manifest);
    }
    // One count in the manifest is changed, as by an editor. The repair then rebuilds the manifest from the files.
    let text = String::from_utf8(whole.clone()).unwrap();
    fs::write(&manifest, text.replace("\"rows\": 40", "\"rows\": 41")).unwrap();
    let refused = [
        Dataset::open(folder.path()).err().unwrap(),
        Writer::open(folder.path()).err().unwrap(),
    ];
    for error in refused {
        assert!(
            matches!(error, DatasetError::ManifestAltered { .. }),
            "{error}"
        );
        assert!(error.to_string().contains("repair"), "{error}");
    }
    assert!(repair(folder.path()).unwrap().manifest_rebuilt);
    assert_eq!(fs::read(&manifest).unwrap(), whole);
}

/// Manifests of older versions have no hash: their tables, hosts and times are compared with the files.
#[test]
fn what_the_manifest_says_of_tables_hosts_and_times_is_held_against_the_files() {
    let (folder, file) = small();
    let manifest = folder.path().join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let (members, _) = text.rsplit_once(",\n  \"blake3\"").unwrap();
    let older = format!("{members}\n}}\n");
    fs::write(&manifest, &older).unwrap();
    assert_eq!(Dataset::open(folder.path()).unwrap().verify().problems, []);
    let entry = Dataset::open(folder.path()).unwrap().manifest().files[0].clone();
    for (said, instead, what) in [
        (
            format!("\"first_time_ms\": {}", entry.first_time_ms),
            format!("\"first_time_ms\": {}", entry.first_time_ms - 1),
            "times",
        ),
        (
            format!("\"last_time_ms\": {}", entry.last_time_ms),
            format!("\"last_time_ms\": {}", entry.last_time_ms + 1),
            "times",
        ),
        (
            "\"hosts_count\": 1".to_owned(),
            "\"hosts_count\": 7".to_owned(),
            "hosts",
        ),
        (
            "\"first_host_id\": \"host-1\"".to_owned(),
            "\"first_host_id\": \"host-0\"".to_owned(),
            "hosts",
        ),
        (
            "\"last_host_id\": \"host-1\"".to_owned(),
            "\"last_host_id\": \"host-9\"".to_owned(),
            "hosts",
        ),
        (
            "\"table\": \"files\"".to_owned(),
            "\"table\": \"samples\"".to_owned(),
            "table",
        ),
    ] {
        let altered = older.replace(&said, &instead);
        assert_ne!(altered, older, "{said}");
        fs::write(&manifest, altered).unwrap();
        let problem = the_problem(folder.path(), &file);
        assert_eq!(problem.kind, ProblemKind::Entry(what), "{instead}");
        let repaired = repair(folder.path()).unwrap();
        assert_eq!((repaired.saved_rows, repaired.lost.len()), (0, 0));
        assert_eq!(fs::read_to_string(&manifest).unwrap(), text, "{instead}");
        assert_eq!(read(folder.path()).unwrap().num_rows(), 40);
    }
}
