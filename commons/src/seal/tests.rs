use super::*;
use crate::catalog::{BLOCK_BYTES, Catalog, EntryKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

fn sealed(folder: &Path, output: &Path) -> Result<SealedFolder, SealError> {
    seal(folder, output, 3, &mut |_, _| ())
}

/// A folder with files of several sizes, links and directories.
fn made() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join("in").join(name);
    fs::create_dir_all(at("lib/empty")).unwrap();
    for (name, bytes) in [
        ("none", 0),
        ("one", 1),
        ("lib/block", BLOCK_BYTES),
        ("lib-more", BLOCK_BYTES + 1),
        ("lib/long", 5 * BLOCK_BYTES - 3),
    ] {
        let contents: Vec<u8> = (0..bytes).map(|i| (i % 253) as u8).collect();
        fs::write(at(name), contents).unwrap();
    }
    fs::hard_link(at("one"), at("same")).unwrap();
    fs::set_permissions(at("one"), fs::Permissions::from_mode(0o4750)).unwrap();
    symlink("lib/../one", at("link")).unwrap();
    symlink("loop", at("loop")).unwrap();
    folder
}

#[test]
fn a_catalog_has_every_entry_and_the_hash_of_every_block() {
    let folder = made();
    let (input, output) = (folder.path().join("in"), folder.path().join("x.catalog"));
    let mut reported = (0, 0);
    let sealed = seal(&input, &output, 3, &mut |all, bytes| {
        reported = (all, bytes)
    })
    .unwrap();
    let catalog = Catalog::open(&output, Some(sealed.hash)).unwrap();
    assert_eq!(catalog.totals(), sealed.totals);
    assert_eq!(reported, (sealed.totals.bytes, sealed.totals.bytes));
    let rows: Vec<_> = (0..catalog.rows())
        .filter_map(|row| catalog.entry(row))
        .collect();
    let paths: Vec<String> = rows.iter().map(|e| crate::catalog::shown(e.path)).collect();
    assert_eq!(
        paths,
        [
            "",
            "lib",
            "lib-more",
            "lib/block",
            "lib/empty",
            "lib/long",
            "link",
            "loop",
            "none",
            "one",
            "same"
        ]
    );
    for entry in rows {
        let path = input.join(crate::catalog::shown(entry.path));
        match entry.kind {
            EntryKind::File => {
                let contents = fs::read(path).unwrap();
                assert_eq!(entry.bytes, contents.len() as u64);
                assert_eq!(entry.blake3, Some(blake3::hash(&contents).into()));
                for (index, block) in (0..).zip(contents.chunks(BLOCK_BYTES as usize)) {
                    assert_eq!(entry.block(index), Some(blake3::hash(block).into()));
                    assert_eq!(entry.block_bytes(index), block.len() as u64);
                }
            }
            EntryKind::Symlink => {
                use std::os::unix::ffi::OsStrExt;
                assert_eq!(
                    fs::read_link(path).unwrap().as_os_str().as_bytes(),
                    entry.target
                );
            }
            EntryKind::Directory => assert!(path.is_dir()),
        }
    }
    // Of the permissions, those of the set-user-ID program are left; the bit is not.
    assert_eq!(catalog.child(0, b"one").map(|e| e.mode), Some(0o750));
}

#[test]
fn the_same_folder_gives_the_same_bytes_with_any_number_of_threads() {
    let folder = made();
    let input = folder.path().join("in");
    let catalogs = [1, 2, 16].map(|threads| {
        let output = folder.path().join(format!("{threads}.catalog"));
        seal(&input, &output, threads, &mut |_, _| ()).unwrap();
        fs::read(output).unwrap()
    });
    assert!(catalogs.iter().all(|bytes| *bytes == catalogs[0]));
}

#[test]
fn special_files_are_rejected_by_name_and_leave_an_old_catalog_as_it_was() {
    let folder = made();
    let (input, output) = (folder.path().join("in"), folder.path().join("x.catalog"));
    fs::write(&output, "old").unwrap();
    let socket = input.join("lib/socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let text = sealed(&input, &output).unwrap_err().to_string();
    assert!(text.contains("lib/socket is a socket"), "{text}");
    fs::remove_file(socket).unwrap();
    assert_eq!(fs::read(&output).unwrap(), b"old");
    sealed(&input, &output).unwrap();
    let names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_file_or_folder_that_changes_meanwhile_is_an_error_by_its_path() {
    let folder = made();
    let (input, output) = (folder.path().join("in"), folder.path().join("x.catalog"));
    let (added, grown, removed) = (
        input.join("lib/added"),
        input.join("lib/long"),
        input.join("same"),
    );
    let changes: [(&str, &dyn Fn()); 3] = [
        ("lib/long", &|| {
            use std::io::Write;
            let mut file = fs::OpenOptions::new().append(true).open(&grown).unwrap();
            file.write_all(b"more").unwrap();
        }),
        ("lib", &|| fs::write(&added, "x").unwrap()),
        // The folder changes, and the number of the other name's links.
        ("in", &|| fs::remove_file(&removed).unwrap()),
    ];
    for (path, change) in changes {
        let mut is_changed = false;
        let result = seal(&input, &output, 1, &mut |_, _| {
            if !is_changed {
                is_changed = true;
                change();
            }
        });
        assert!(is_changed);
        let Err(SealError::Changed { path: found }) = result else {
            panic!("{path}: {result:?}");
        };
        assert!(found.starts_with(&input), "{path}: {}", found.display());
        assert!(!output.exists());
    }
}

#[test]
fn the_catalog_must_lie_outside_of_the_folder() {
    let folder = made();
    let input = folder.path().join("in");
    for (output, words) in [
        (input.join("x.catalog"), "would lie inside"),
        (input.join("lib/../x.catalog"), "would lie inside"),
        (folder.path().join("nowhere/x.catalog"), "nowhere"),
        (folder.path().join("in"), "would lie inside"),
    ] {
        let text = sealed(&input, &output).unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let text = sealed(&input, &other).unwrap_err().to_string();
    assert!(text.contains("no regular file"), "{text}");
    let text = sealed(&input.join("one"), &folder.path().join("x"))
        .unwrap_err()
        .to_string();
    assert!(text.contains("one"), "{text}");
}
