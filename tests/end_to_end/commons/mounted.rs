//! A mount shows the sealed folder, byte by byte.

use super::stage::{BLOCK, Mounted, Stage};
use gleaner_harness::{Random, succeed};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;

/// Compares all entries of two folders.
pub(super) fn assert_equal(mounted: &Path, sealed: &Path) {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into()).collect();
        names.sort();
        names
    };
    assert_eq!(list(mounted), list(sealed), "{}", sealed.display());
    for name in list(sealed) {
        let (one, other) = (mounted.join(&name), sealed.join(&name));
        let (found, wanted) = (
            fs::symlink_metadata(&one).unwrap(),
            fs::symlink_metadata(&other).unwrap(),
        );
        assert_eq!(found.file_type(), wanted.file_type(), "{name:?}");
        assert_eq!(
            found.permissions().mode() & 0o777,
            wanted.permissions().mode() & 0o777,
            "{name:?}"
        );
        assert_eq!(
            found.modified().unwrap(),
            wanted.modified().unwrap(),
            "{name:?}"
        );
        if wanted.is_dir() {
            assert_equal(&one, &other);
        } else if wanted.is_symlink() {
            assert_eq!(fs::read_link(&one).unwrap(), fs::read_link(&other).unwrap());
        } else {
            assert_eq!(found.len(), wanted.len(), "{name:?}");
            assert!(
                fs::read(&one).unwrap() == fs::read(&other).unwrap(),
                "{name:?} differs"
            );
        }
    }
}

fn random_reads(mounted: &Mounted, stage: &Stage, random: &mut Random) {
    let name = "lib/deep/er/large";
    let (file, wanted) = (
        File::open(mounted.point.join(name)).unwrap(),
        fs::read(stage.input().join(name)).unwrap(),
    );
    for _ in 0..200 {
        let offset = random.below(wanted.len() as u64 + 100) as usize;
        let length = random.below(5 * BLOCK as u64) as usize;
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match file
                .read_at(&mut bytes[filled..], (offset + filled) as u64)
                .unwrap()
            {
                0 => break,
                count => filled += count,
            }
        }
        let end = (offset + length).min(wanted.len()).max(offset);
        let expected = wanted.get(offset..end).unwrap_or_default();
        assert!(bytes[..filled] == *expected, "{length} bytes at {offset}");
    }
}

#[test]
fn reads_mmap_links_and_programs_are_those_of_the_folder_with_and_without_the_kernels_cache() {
    let mut random = Random::new();
    let stage = Stage::new(&mut random);
    for cache in ["true", "false"] {
        let mounted = stage.mount(
            &format!("cache-{cache}"),
            &["--kernel-cache", cache, "--local", "1MiB"],
        );
        assert_equal(&mounted.point, &stage.input());
        random_reads(&mounted, &stage, &mut random);
        let large = "lib/deep/er/large";
        let script = "import hashlib, mmap, sys\n\
            with open(sys.argv[1], 'rb') as file:\n\
            \x20   for flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):\n\
            \x20       with mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ) as mapped:\n\
            \x20           print(hashlib.sha256(mapped).hexdigest())\n";
        let hashes =
            |path: PathBuf| succeed(Command::new("python3").args(["-c", script]).arg(path));
        assert_eq!(
            hashes(mounted.point.join(large)),
            hashes(stage.input().join(large))
        );
        let version = |path: PathBuf| succeed(Command::new(path).arg("--version"));
        assert_eq!(
            version(mounted.point.join("program")),
            version(stage.input().join("program"))
        );
        for missing in ["nothing", "lib/nothing", "one/x", "dangling", "loop"] {
            assert!(fs::read(mounted.point.join(missing)).is_err(), "{missing}");
        }
        let written = fs::write(mounted.point.join("new"), "x").map_err(|e| e.kind());
        assert_eq!(written, Err(ErrorKind::ReadOnlyFilesystem));
        assert_eq!(fs::metadata(&mounted.point).unwrap().ino(), 1);
        assert!(mounted.figure("source_reads_count") > 0);
        let text = mounted.status();
        assert!(
            text.contains(&stage.pin) && text.contains("from the source"),
            "{text}"
        );
        assert_eq!(mounted.end(), [""; 0]);
    }
}

#[test]
fn twenty_readers_at_once_fetch_each_block_once() {
    let stage = Stage::new(&mut Random::new());
    let mounted = stage.mount("many-readers", &["--kernel-cache", "false"]);
    let name = "lib/deep/er/large";
    let wanted = fs::read(stage.input().join(name)).unwrap();
    let start = Barrier::new(20);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                start.wait();
                assert!(fs::read(mounted.point.join(name)).unwrap() == wanted);
            });
        }
    });
    assert_eq!(mounted.figure("fetched_blocks_count"), 40);
    assert_eq!(mounted.figure("fetched_bytes"), wanted.len() as u64);
    assert_eq!(
        mounted.figure("source_read_bytes") + mounted.figure("local_read_bytes"),
        20 * wanted.len() as u64
    );
    assert_eq!(mounted.figure("frames_count"), 40);
}

#[test]
fn local_memory_stays_within_its_size() {
    let stage = Stage::new(&mut Random::new());
    let mounted = stage.mount("small", &["--kernel-cache", "false", "--local", "640KiB"]);
    for _ in 0..2 {
        assert_equal(&mounted.point, &stage.input());
        assert!(mounted.figure("local_used_bytes") <= 640 << 10);
    }
    assert!(
        mounted.figure("fetched_blocks_count") > 80,
        "the large file was not read twice"
    );
}
