use super::*;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use arrow::record_batch::RecordBatch;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const NO_HASH: Hash = [0; HASH_BYTES];

fn directory(path: &str) -> NewEntry {
    NewEntry {
        path: path.as_bytes().to_vec(),
        kind: EntryKind::Directory,
        mode: 0o755,
        mtime_ns: 1,
        bytes: 0,
        target: None,
        blake3: None,
        blocks: Vec::new(),
    }
}

fn file(path: &str, bytes: u64) -> NewEntry {
    NewEntry {
        kind: EntryKind::File,
        bytes,
        blake3: Some([7; HASH_BYTES]),
        blocks: (0..blocks_of(bytes))
            .map(|i| [i as u8; HASH_BYTES])
            .collect(),
        ..directory(path)
    }
}

fn link(path: &str, target: &str) -> NewEntry {
    NewEntry {
        kind: EntryKind::Symlink,
        target: Some(target.as_bytes().to_vec()),
        ..directory(path)
    }
}

fn written(entries: &[NewEntry]) -> Vec<u8> {
    let mut writer = CatalogWriter::new(Vec::new()).unwrap();
    for entry in entries {
        writer.add(entry).unwrap();
    }
    let (bytes, hash) = writer.finish().unwrap();
    assert_eq!(blake3::hash(&bytes), hash);
    bytes
}

fn opened(entries: &[NewEntry]) -> Result<Catalog, CatalogError> {
    Catalog::of_contents(Path::new("x.catalog"), written(entries))
}

fn path(entry: &CatalogEntry<'_>) -> String {
    String::from_utf8(entry.path.to_vec()).unwrap()
}

#[test]
fn each_hostile_row_is_rejected_by_its_name() {
    let long = "n".repeat(256);
    let deep = "d/".repeat(2048) + "x";
    let cases: Vec<(Vec<NewEntry>, &str)> = vec![
        (vec![file("../x", 1)], "contains the name . or .."),
        (vec![file("..", 1)], "contains the name . or .."),
        (
            vec![directory("a"), file("a/./x", 1)],
            "contains the name . or ..",
        ),
        (vec![file("/etc/passwd", 1)], "is absolute"),
        (
            vec![directory("a"), file("a//x", 1)],
            "contains an empty name",
        ),
        (
            vec![directory("a"), directory("a/")],
            "contains an empty name",
        ),
        (vec![file("a\0b", 1)], "contains a NUL"),
        (vec![file(&long, 1)], "longer than 255 bytes"),
        (vec![file(&deep, 1)], "longer than 4,095 bytes"),
        (vec![file("a", 1), file("a", 1)], "the same path"),
        (vec![file("b", 1), file("a", 1)], "not sorted"),
        (vec![directory("")], "its path is empty"),
        (vec![file("a/x", 1)], "its directory \"a\" has no row"),
        (vec![file("a", 1), file("a/x", 1)], "\"a\" is no directory"),
        (
            vec![link("a", "b"), file("a/x", 1)],
            "\"a\" is no directory",
        ),
        (vec![link("a", "b\0c")], "its target contains a NUL"),
        (vec![link("a", "")], "its target is empty"),
        (
            vec![NewEntry {
                target: None,
                ..link("a", "b")
            }],
            "has a target",
        ),
        (
            vec![NewEntry {
                target: Some(vec![1]),
                ..file("a", 1)
            }],
            "has a target",
        ),
        (
            vec![NewEntry {
                blake3: None,
                ..file("a", 1)
            }],
            "has a hash",
        ),
        (
            vec![NewEntry {
                blake3: Some(NO_HASH),
                ..directory("a")
            }],
            "has a hash",
        ),
        (
            vec![NewEntry {
                mode: 0o4755,
                ..file("a", 1)
            }],
            "more than permissions",
        ),
        (
            vec![NewEntry {
                bytes: 5,
                ..directory("a")
            }],
            "only a file has a size",
        ),
        (
            vec![NewEntry {
                bytes: u64::MAX,
                ..file("a", 1)
            }],
            "above 2^63 - 1",
        ),
        (
            vec![NewEntry {
                blocks: Vec::new(),
                ..file("a", 1)
            }],
            "needs 1 blocks, and it lists 0",
        ),
        (
            vec![NewEntry {
                blocks: vec![NO_HASH],
                ..file("a", 0)
            }],
            "needs 0 blocks, and it lists 1",
        ),
        (
            vec![NewEntry {
                bytes: BLOCK_BYTES,
                ..file("a", BLOCK_BYTES + 1)
            }],
            "needs 1 blocks",
        ),
        // 2^40 blocks.
        (
            vec![NewEntry {
                bytes: 1 << 56,
                ..file("a", 1)
            }],
            "needs 1099511627776 blocks",
        ),
        (
            vec![NewEntry {
                blocks: vec![NO_HASH],
                ..directory("a")
            }],
            "needs 0 blocks",
        ),
    ];
    for (rows, words) in cases {
        let last = rows.last().unwrap().path.clone();
        let row = rows.len();
        let all: Vec<NewEntry> = std::iter::once(directory("")).chain(rows).collect();
        let error = opened(&all).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(words), "{words:?}: {text}");
        let CatalogError::Row {
            row: found, name, ..
        } = error
        else {
            panic!("{text}");
        };
        assert_eq!((found, name), (row as u64, shown(&last)), "{text}");
    }
}

#[test]
fn the_first_row_is_the_folder_itself() {
    for first in [file("", 1), directory("a"), link("", "x")] {
        let text = opened(&[first]).unwrap_err().to_string();
        assert!(
            text.contains("row 0") && text.contains("not the sealed folder"),
            "{text}"
        );
    }
    assert!(opened(&[]).unwrap_err().to_string().contains("no row"));
    assert_eq!(opened(&[directory("")]).unwrap().rows(), 1);
}

#[test]
fn links_may_lead_anywhere_since_the_kernel_follows_them() {
    let rows = [
        directory(""),
        link("a", "a"),
        link("b", "../../../etc"),
        link("c", "/x"),
    ];
    let catalog = opened(&rows).unwrap();
    let targets: Vec<_> = catalog.children(0, 0).map(|e| e.target.to_vec()).collect();
    assert_eq!(targets, [&b"a"[..], b"../../../etc", b"/x"]);
}

#[test]
fn a_pinned_hash_admits_one_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.catalog");
    let bytes = written(&[directory(""), file("a", 1)]);
    std::fs::write(&path, &bytes).unwrap();
    let hash = blake3::hash(&bytes);
    let catalog = Catalog::open(&path, Some(hash.into())).unwrap();
    assert_eq!(catalog.name(), hash.to_string());
    let error = Catalog::open(&path, Some(NO_HASH)).unwrap_err();
    assert!(matches!(error, CatalogError::OtherHash { .. }), "{error}");
    assert!(Catalog::open(folder.path(), None).is_err());
    std::fs::write(&path, b"").unwrap();
    assert!(Catalog::open(&path, None).is_err());
}

#[test]
fn names_that_sort_before_the_slash_do_not_hide_a_directorys_entries() {
    let rows = [
        directory(""),
        directory("a"),
        file("a-b", 1),
        directory("a.d"),
        file("a.d/x", 1),
        directory("a/b"),
        file("a/b!", 1),
        file("a/b/c", 1),
        file("a/c", 1),
        file("a0", 1),
    ];
    let catalog = opened(&rows).unwrap();
    let list =
        |row, from| -> Vec<String> { catalog.children(row, from).map(|e| path(&e)).collect() };
    assert_eq!(list(0, 0), ["a", "a-b", "a.d", "a0"]);
    assert_eq!(list(1, 0), ["a/b", "a/b!", "a/c"]);
    assert_eq!(list(1, 7), ["a/c"]);
    assert_eq!(list(3, 0), ["a.d/x"]);
    assert_eq!(catalog.child(1, b"c").map(|e| e.row), Some(8));
    for name in [&b""[..], b"b/c", b"x", b".."] {
        assert_eq!(catalog.child(1, name).map(|e| e.row), None);
    }
    assert_eq!(
        (catalog.parent(7), catalog.parent(1), catalog.parent(0)),
        (Some(5), Some(0), Some(0))
    );
    assert_eq!(catalog.parent(99), None);
}

/// A tree: paths with the kinds of their entries. Every parent is a directory.
fn tree() -> impl Strategy<Value = BTreeMap<Vec<u8>, NewEntry>> {
    let name = prop_oneof![
        "[a-c]{1,2}",
        "[a!./-]{3,4}".prop_filter("a name", |n| !n.contains('/')),
        "\\PC{1,8}"
    ];
    let name = name.prop_filter("a name", |n: &String| {
        !n.contains('/') && n != "." && n != ".."
    });
    let step = (
        any::<prop::sample::Index>(),
        name,
        0..4_u8,
        0..3 * BLOCK_BYTES,
        any::<i64>(),
        0..=0o777_u32,
    );
    prop::collection::vec(step, 0..40).prop_map(|steps| {
        let mut all = BTreeMap::from([(Vec::new(), directory(""))]);
        let mut directories = vec![String::new()];
        for (at, name, kind, bytes, mtime_ns, mode) in steps {
            let parent = at.get(&directories);
            let path = if parent.is_empty() {
                name
            } else {
                format!("{parent}/{name}")
            };
            if all.contains_key(path.as_bytes()) {
                continue;
            }
            let entry = match kind {
                0 => file(&path, bytes),
                1 => link(&path, "x"),
                _ => {
                    directories.push(path.clone());
                    directory(&path)
                }
            };
            all.insert(
                path.into_bytes(),
                NewEntry {
                    mtime_ns,
                    mode,
                    ..entry
                },
            );
        }
        all
    })
}

proptest! {
    #[test]
    fn a_catalog_reads_back_as_it_was_written(tree in tree()) {
        let rows: Vec<NewEntry> = tree.values().cloned().collect();
        let catalog = opened(&rows).unwrap();
        prop_assert_eq!(catalog.rows(), rows.len() as u64);
        let mut totals = CatalogTotals::default();
        for (row, wanted) in (0..).zip(&rows) {
            let found = catalog.entry(row).unwrap();
            prop_assert_eq!(found.path, &wanted.path[..]);
            prop_assert_eq!(found.kind, wanted.kind);
            prop_assert_eq!((found.mode, found.mtime_ns, found.bytes), (wanted.mode, wanted.mtime_ns, wanted.bytes));
            prop_assert_eq!(found.target, wanted.target.as_deref().unwrap_or_default());
            prop_assert_eq!(found.blake3, wanted.blake3);
            let blocks: Vec<Hash> = (0..).map_while(|i| found.block(i)).collect();
            prop_assert_eq!(&blocks, &wanted.blocks);
            let lengths: u64 = (0..found.blocks_count()).map(|i| found.block_bytes(i)).sum();
            prop_assert_eq!(lengths, wanted.bytes);
            if wanted.kind == EntryKind::File {
                totals.files += 1;
                totals.bytes += wanted.bytes;
                totals.blocks += wanted.blocks.len() as u64;
            }
        }
        prop_assert_eq!(catalog.totals(), totals);
        prop_assert_eq!(catalog.entry(rows.len() as u64), None);
        prop_assert_eq!(written(&rows), written(&rows));
    }

    /// Against the slow and obvious way: the parent of a path is what is before its last slash.
    #[test]
    fn directories_list_their_entries_and_no_others(tree in tree()) {
        let rows: Vec<NewEntry> = tree.values().cloned().collect();
        let catalog = opened(&rows).unwrap();
        for (row, entry) in (0..).zip(&rows) {
            let mut prefix = entry.path.clone();
            if row > 0 {
                prefix.push(b'/');
            }
            let is_child = |path: &[u8]| {
                let name = path.strip_prefix(&prefix[..]);
                name.is_some_and(|name| !name.is_empty() && !name.contains(&b'/'))
            };
            let wanted: Vec<u64> = (0..).zip(&rows).filter(|(_, e)| is_child(&e.path)).map(|(row, _)| row).collect();
            let found: Vec<u64> = catalog.children(row, 0).map(|e| e.row).collect();
            prop_assert_eq!(&found, &wanted);
            // A listing that is resumed behind any entry goes on with the next one.
            for (index, last) in wanted.iter().enumerate() {
                let rest: Vec<u64> = catalog.children(row, last + 1).map(|e| e.row).collect();
                prop_assert_eq!(&rest[..], &wanted[index + 1..]);
                prop_assert_eq!(catalog.parent(*last), Some(row));
                let name = catalog.entry(*last).unwrap().name().to_vec();
                prop_assert_eq!(catalog.child(row, &name).map(|e| e.row), Some(*last));
            }
        }
    }

    #[test]
    fn no_damage_goes_further_than_an_error(tree in tree(), seed: u64) {
        let rows: Vec<NewEntry> = tree.values().cloned().collect();
        let bytes = written(&rows);
        for damaged in damages(&bytes, seed) {
            let Ok(catalog) = Catalog::of_contents(Path::new("x"), damaged) else {
                continue;
            };
            // A catalog that is accepted can be used, whatever it says.
            for row in 0..catalog.rows() {
                let entry = catalog.entry(row).unwrap();
                prop_assert_eq!(entry.blocks_count(), blocks_of(entry.bytes));
                let count = catalog.children(row, 0).count();
                prop_assert!((count as u64) < catalog.rows());
            }
        }
    }
}

/// The file cut off at some places, and with single bytes changed.
fn damages(bytes: &[u8], seed: u64) -> Vec<Vec<u8>> {
    let mut random = gleaner_harness::Random(seed);
    let length = bytes.len() as u64;
    let mut all: Vec<Vec<u8>> = (0..8)
        .map(|_| bytes[..random.below(length) as usize].to_vec())
        .collect();
    for _ in 0..40 {
        let mut damaged = bytes.to_vec();
        for _ in 0..=random.below(3) {
            // Headers lie at both ends, and matter more than values.
            let at = match random.below(3) {
                0 => random.below(length),
                1 => random.below(length.min(1500)),
                _ => length - 1 - random.below(length.min(1500)),
            };
            damaged[at as usize] = random.below(256) as u8;
        }
        all.push(damaged);
    }
    all
}

#[test]
fn many_rows_span_several_record_batches() {
    let mut rows = vec![directory("")];
    rows.extend((0..150_000).map(|i| file(&format!("{i:06}"), 1)));
    let bytes = written(&rows);
    let catalog = Catalog::of_contents(Path::new("x"), bytes).unwrap();
    assert_eq!((catalog.rows(), catalog.totals().files), (150_001, 150_000));
    assert_eq!(catalog.children(0, 0).count(), 150_000);
    for i in [0, 65_535, 65_536, 131_072, 149_999] {
        let name = format!("{i:06}");
        assert_eq!(
            catalog.child(0, name.as_bytes()).map(|e| e.row),
            Some(i + 1)
        );
    }
}

#[test]
fn a_table_of_another_kind_is_rejected() {
    use arrow::array::{ArrayRef, Int32Array};
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("path", column)]).unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.into_inner().unwrap();
    let error = Catalog::of_contents(Path::new("x"), bytes).unwrap_err();
    assert!(error.to_string().contains("gleaner_catalog"), "{error}");
}

/// Arrow's own reader reads a catalog, and its writer may write one, but only as it can be read in place.
#[test]
fn a_catalog_that_arrow_writes_is_read_unless_it_is_compressed() {
    let rows = [directory(""), file("a", 3 * BLOCK_BYTES), link("b", "a")];
    let bytes = written(&rows);
    let reader = FileReader::try_new(std::io::Cursor::new(&bytes), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    for (compression, is_read) in [(None, true), (Some(CompressionType::LZ4_FRAME), false)] {
        let options = IpcWriteOptions::default().try_with_compression(compression);
        let mut writer =
            FileWriter::try_new_with_options(Vec::new(), &schema, options.unwrap()).unwrap();
        batches
            .iter()
            .for_each(|batch| writer.write(batch).unwrap());
        let found = Catalog::of_contents(Path::new("x"), writer.into_inner().unwrap());
        match found {
            Ok(catalog) => assert!(is_read && catalog.totals().blocks == 3),
            Err(error) => assert!(
                !is_read && error.to_string().contains("is compressed"),
                "{error}"
            ),
        }
    }
}
