//! A source that is not as it was sealed: reads fail, and no byte is ever wrong.

use super::mounted::assert_equal;
use super::stage::{BLOCK, Stage, commons};
use gleaner_harness::Random;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

const EIO: Option<i32> = Some(5);

/// Reads a block of a file.
fn block(path: &Path, index: usize) -> Result<Vec<u8>, Option<i32>> {
    let mut bytes = vec![0; BLOCK];
    let file = File::open(path).unwrap();
    let read = file.read_exact_at(&mut bytes, (index * BLOCK) as u64);
    read.map(|()| bytes).map_err(|e| e.raw_os_error())
}

#[test]
fn a_changed_block_is_an_error_and_the_others_are_read() {
    let stage = Stage::new(&mut Random::new());
    let name = "lib/deep/er/large";
    let source = stage.input().join(name);
    let sound = fs::read(&source).unwrap();
    let mut changed = sound.clone();
    changed[7 * BLOCK + 100] ^= 1;
    fs::write(&source, &changed).unwrap();
    let mounted = stage.mount("changed", &["--kernel-cache", "false"]);
    let file = mounted.point.join(name);
    for _ in 0..3 {
        assert_eq!(block(&file, 7), Err(EIO));
    }
    assert_eq!(block(&file, 8).unwrap(), sound[8 * BLOCK..9 * BLOCK]);
    let line = mounted.running().hear("differs from the catalog");
    assert!(
        line.contains(name) && line.contains("block 7 at byte 458752"),
        "{line}"
    );
    // A file that is truncated while its reader is at it, and one that is removed.
    fs::write(&source, &sound[..20 * BLOCK + 1]).unwrap();
    assert_eq!(block(&file, 20), Err(EIO));
    assert_eq!(block(&file, 30), Err(EIO));
    assert_eq!(block(&file, 19).unwrap(), sound[19 * BLOCK..20 * BLOCK]);
    fs::remove_file(stage.input().join("one")).unwrap();
    let removed = fs::read(mounted.point.join("one")).map_err(|e| e.raw_os_error());
    assert_eq!(removed, Err(EIO));
    mounted
        .running()
        .hear("one: block 0 at byte 0 cannot be read");
    // The same file, restored.
    fs::write(&source, &sound).unwrap();
    assert!(fs::read(&file).unwrap() == sound);
    assert!(mounted.figure("differing_blocks_count") >= 4);
    let said = mounted.end();
    assert!(
        !said.iter().any(|line| line.contains(name)),
        "a second line about one file: {said:?}"
    );
}

#[test]
fn a_special_file_at_the_source_holds_up_nothing() {
    let stage = Stage::new(&mut Random::new());
    let pipe = stage.input().join("one");
    fs::remove_file(&pipe).unwrap();
    gleaner_harness::succeed(std::process::Command::new("mkfifo").arg(&pipe));
    let mounted = stage.mount("special", &[]);
    let read = fs::read(mounted.point.join("one")).map_err(|e| e.raw_os_error());
    assert_eq!(read, Err(EIO));
    mounted.running().hear("it is no regular file");
}

#[test]
fn a_source_under_its_own_mount_is_still_read() {
    let stage = Stage::new(&mut Random::new());
    let copy = stage.point("over");
    gleaner_harness::succeed(
        std::process::Command::new("cp")
            .arg("-a")
            .arg(stage.input().join("."))
            .arg(&copy),
    );
    let mounted = stage.mount_from("over", copy.to_str().unwrap(), &[]);
    assert_equal(&mounted.point, &stage.input());
}

#[test]
fn a_hostile_catalog_and_a_wrong_pin_are_not_mounted() {
    let mut random = Random::new();
    let stage = Stage::new(&mut random);
    let sound = fs::read(stage.catalog()).unwrap();
    let try_mount = |bytes: &[u8], words: &str| {
        fs::write(stage.catalog(), bytes).unwrap();
        let mut command = commons();
        command
            .arg("mount")
            .arg(stage.catalog())
            .arg(stage.point("hostile"))
            .arg("--source")
            .arg(stage.input());
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{said}");
    };
    try_mount(&sound[..sound.len() / 2], "is no catalog");
    try_mount(b"", "catalog");
    let at = sound
        .windows(9)
        .position(|bytes| bytes == b"lib/block")
        .unwrap();
    let mut climbing = sound.clone();
    climbing[at..at + 9].copy_from_slice(b"lib/../ck");
    try_mount(&climbing, "contains the name . or ..");
    fs::write(stage.catalog(), &climbing).unwrap();
    let source = stage.input();
    let pinned = stage
        .command("pinned", source.to_str().unwrap(), &[])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&pinned.stderr).into_owned();
    assert!(said.contains("the pinned one is"), "{said}");
}
