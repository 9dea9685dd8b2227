//! A full disk: if a seal does not fit, the dataset stays unchanged and the writer usable.

use crate::made_rows::{Name, batch, read_names};
use gleaner_dataset::{Dataset, DatasetError, Writer};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{FileRow, SampleRow};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system in memory.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(folder.path())
            .status();
        assert!(mounted.unwrap().success(), "tests run as root");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the file system except for `left` bytes.
    fn fill(&self, left: usize) {
        let filler = self.path().join("filler");
        fs::write(&filler, vec![1; 64 << 20]).unwrap_err();
        let length = fs::metadata(&filler).unwrap().len() as usize;
        let file = fs::File::options().write(true).open(&filler).unwrap();
        file.set_len(length.saturating_sub(left) as u64).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn arrow_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        if path.is_dir() {
            found.extend(arrow_files(&path));
        } else if path.extension().is_some_and(|e| e == "arrow") {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_seal_that_does_not_fit_can_be_repeated() {
    let disk = Disk::new("4m");
    let root = disk.path().join("dataset");
    let tables = [SampleRow::TABLE, FileRow::TABLE];
    let names =
        |sequence: i64| -> Vec<Name> { (0..=255).map(|i| Name::new(i, 0, sequence, 0)).collect() };
    let mut writer = Writer::open(&root).unwrap();
    for table in &tables {
        writer.append(table, batch(table, &names(1))).unwrap();
    }
    writer.seal().unwrap();
    let sealed = arrow_files(&root);

    let mut refused = 0;
    for left in (0..200).step_by(8) {
        let _ = fs::remove_file(disk.path().join("filler"));
        disk.fill(left << 10);
        for table in &tables {
            // The writer keeps rows appended while the disk is full; each round appends them once more.
            writer.append(table, batch(table, &names(2))).unwrap();
        }
        match writer.seal() {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, DatasetError::Io { .. }), "{error}"),
        }
        refused += 1;
        assert_eq!(arrow_files(&root), sealed, "with {left} KiB left");
        let dataset = Dataset::open(&root).unwrap();
        assert_eq!(dataset.verify().problems, []);
        assert_eq!(read_names(&dataset, &tables[1], "host-7").len(), 1);
    }
    assert!(refused > 3, "{refused}");
    fs::remove_file(disk.path().join("filler")).unwrap();
    writer.seal().unwrap();
    assert_eq!(writer.pending_rows(), 0);
    let dataset = Dataset::open(&root).unwrap();
    assert_eq!(dataset.verify().problems, []);
    for table in &tables {
        let mut expected: Vec<Name> = names(1).into_iter().chain(names(2)).collect();
        expected.retain(|n| n.host == "host-7");
        expected.sort();
        assert_eq!(read_names(&dataset, table, "host-7"), expected);
    }
}
