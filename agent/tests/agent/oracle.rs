//! Our parsers and those of the procfs crate read the same bytes, of this host and of the captured trees, and
//! agree.

use gleaner_agent::read::{
    iomem, loadavg::LoadAverage, maps, meminfo::Meminfo, mountinfo, pressure, process, vmstat,
};
use procfs_core::FromRead;
use procfs_core::process as theirs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compares one file and returns the number of figures that both parsers found; 0 if the crate rejects the
/// file. The crate requires every line, and captured trees have only the lines under test.
type Compare = fn(&[u8]) -> usize;

/// Files under a proc root.
const OF_THE_HOST: [(&str, Compare); 8] = [
    ("meminfo", meminfo),
    ("vmstat", vmstat_counters),
    ("loadavg", load_average),
    ("pressure/memory", stalls),
    ("pressure/cpu", stalls),
    ("pressure/io", stalls),
    ("self/mountinfo", mounts),
    ("iomem", system_ram),
];
const OF_A_PROCESS: [(&str, Compare); 5] = [
    ("stat", stat),
    ("statm", statm),
    ("status", status),
    ("smaps_rollup", rollup),
    ("maps", mappings),
];

#[test]
fn parsers_agree_with_the_procfs_crate_on_this_host_and_on_captured_trees() {
    let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees");
    let roots = [
        PathBuf::from("/proc"),
        trees.join("desktop-6.1-amd64/t1/proc"),
        trees.join("server-arm64-64k/proc"),
    ];
    let mut agreed: BTreeMap<&str, usize> = BTreeMap::new();
    for root in &roots {
        for (file, compare) in OF_THE_HOST {
            compare_file(&root.join(file), file, compare, &mut agreed);
        }
        for entry in std::fs::read_dir(root).unwrap().flatten() {
            if !entry.file_name().as_encoded_bytes()[0].is_ascii_digit() {
                continue;
            }
            for (file, compare) in OF_A_PROCESS {
                compare_file(&entry.path().join(file), file, compare, &mut agreed);
            }
        }
    }
    for (file, _) in OF_THE_HOST.iter().chain(&OF_A_PROCESS) {
        assert!(
            agreed.get(file).is_some_and(|count| *count > 0),
            "{file}: {agreed:?}"
        );
    }
}

/// Compares a file; skips a missing file, or one whose process has ended.
fn compare_file(
    path: &Path,
    file: &'static str,
    compare: Compare,
    agreed: &mut BTreeMap<&'static str, usize>,
) {
    match std::fs::read(path) {
        Ok(text) if !text.is_empty() => *agreed.entry(file).or_default() += compare(&text),
        _ => {}
    }
}

fn meminfo(text: &[u8]) -> usize {
    let ours = Meminfo::parse(text).unwrap();
    let Ok(theirs) = procfs_core::Meminfo::from_read(text) else {
        return 0;
    };
    let figures = [
        ("MemTotal", Some(theirs.mem_total)),
        ("MemFree", Some(theirs.mem_free)),
        ("MemAvailable", theirs.mem_available),
        ("Buffers", Some(theirs.buffers)),
        ("Cached", Some(theirs.cached)),
        ("SwapCached", Some(theirs.swap_cached)),
        ("AnonPages", theirs.anon_pages),
        ("Shmem", theirs.shmem),
        ("Mapped", Some(theirs.mapped)),
        ("Active(file)", theirs.active_file),
        ("Inactive(file)", theirs.inactive_file),
        ("Unevictable", theirs.unevictable),
        ("Dirty", Some(theirs.dirty)),
        ("Writeback", Some(theirs.writeback)),
        ("Slab", Some(theirs.slab)),
        ("KReclaimable", theirs.k_reclaimable),
        ("SReclaimable", theirs.s_reclaimable),
        ("KernelStack", theirs.kernel_stack),
        ("PageTables", theirs.page_tables),
        ("SecPageTables", theirs.secondary_page_tables),
        ("Percpu", theirs.per_cpu),
        ("VmallocUsed", Some(theirs.vmalloc_used)),
        ("Hugetlb", theirs.hugetlb),
        ("HugePages_Total", theirs.hugepages_total),
        ("Hugepagesize", theirs.hugepagesize),
        ("SwapTotal", Some(theirs.swap_total)),
        ("SwapFree", Some(theirs.swap_free)),
        ("Zswap", theirs.z_swap),
        ("Zswapped", theirs.z_swapped),
    ];
    for (name, theirs) in figures {
        assert_eq!(ours.get(name), theirs, "{name}");
    }
    figures.iter().flat_map(|(_, theirs)| theirs).count()
}

fn vmstat_counters(text: &[u8]) -> usize {
    let ours = vmstat::Vmstat::parse(text).unwrap();
    let Ok(procfs_core::VmStat(theirs)) = procfs_core::VmStat::from_read(text) else {
        return 0;
    };
    let figures = [
        ("workingset_refault_file", ours.refault_file),
        ("workingset_refault_anon", ours.refault_anon),
        ("pswpin", ours.swap_in),
        ("pswpout", ours.swap_out),
        ("pgmajfault", ours.major_fault),
        ("pgsteal_kswapd", ours.reclaimed_kswapd),
        ("pgsteal_direct", ours.reclaimed_direct),
        ("oom_kill", ours.oom_kill),
    ];
    for (name, ours) in figures {
        let theirs = theirs.get(name).map(|count| u64::try_from(*count).unwrap());
        assert_eq!(ours, theirs, "{name}");
    }
    figures.iter().flat_map(|(_, ours)| ours).count()
}

fn load_average(text: &[u8]) -> usize {
    let ours = LoadAverage::parse(text).unwrap();
    let theirs = procfs_core::LoadAverage::from_read(text).unwrap();
    // The crate's figures have single precision.
    assert_eq!(
        [ours.load1 as f32, ours.load5 as f32, ours.load15 as f32],
        [theirs.one, theirs.five, theirs.fifteen]
    );
    assert_eq!(
        [ours.running, ours.tasks],
        [theirs.cur, theirs.max].map(i64::from)
    );
    5
}

fn stalls(text: &[u8]) -> usize {
    let ours = pressure::Pressure::parse(text).unwrap();
    // The `cpu` file of kernels before 5.13 has one line; the crate requires two.
    let Some(full_total_us) = ours.full_total_us else {
        return 1;
    };
    let (some, full) = procfs_core::get_pressure(text).unwrap();
    assert_eq!(
        [ours.some_total_us, full_total_us],
        [some.total, full.total]
    );
    2
}

fn mounts(text: &[u8]) -> usize {
    let ours: Vec<_> = mountinfo::mounts(text).collect();
    let theirs = theirs::MountInfos::from_read(text).unwrap().0;
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let (major, minor) = ours.device;
        assert_eq!(format!("{major}:{minor}"), theirs.majmin);
        assert_eq!(ours.kind, theirs.fs_type);
        // The crate does not decode escaped spaces.
        if !theirs.mount_point.to_string_lossy().contains('\\') {
            assert_eq!(ours.point, theirs.mount_point);
        }
    }
    ours.len()
}

fn system_ram(text: &[u8]) -> usize {
    let theirs = procfs_core::Iomem::from_read(text).unwrap().0;
    let ranges = theirs
        .iter()
        .filter(|(_, map)| map.name.starts_with("System RAM"));
    let bytes: u64 = ranges
        .map(|(_, map)| map.address.1 - map.address.0 + 1)
        .sum();
    match iomem::system_ram_bytes(text) {
        Ok(ours) => assert_eq!(ours, bytes),
        Err(_) => assert!(theirs.iter().all(|(_, map)| map.address == (0, 0))), // hidden from this user
    }
    1
}

fn stat(text: &[u8]) -> usize {
    const PF_KTHREAD: u32 = 0x0020_0000;
    let ours = process::Stat::parse(text).unwrap();
    let Ok(theirs) = theirs::Stat::from_read(text) else {
        return 0;
    };
    assert_eq!(ours.name, theirs.comm.as_bytes());
    assert_eq!(ours.is_kernel_thread, theirs.flags & PF_KTHREAD != 0);
    assert_eq!(ours.cpu_ticks, theirs.utime + theirs.stime);
    assert_eq!(ours.started_ticks, theirs.starttime);
    assert_eq!(ours.resident_pages, theirs.rss);
    let (major, minor) = theirs.tty_nr();
    let terminal = ours
        .terminal
        .map_or((0, 0), |(major, minor)| (major as i32, minor as i32));
    assert_eq!(terminal, (major, minor), "{}", theirs.tty_nr);
    6
}

fn statm(text: &[u8]) -> usize {
    let ours = process::Statm::parse(text).unwrap();
    let Ok(theirs) = theirs::StatM::from_read(text) else {
        return 0;
    };
    let found = [ours.resident_pages, ours.shared_pages];
    assert_eq!(found, [theirs.resident, theirs.shared]);
    2
}

fn status(text: &[u8]) -> usize {
    let Ok(theirs) = theirs::Status::from_read(text) else {
        return 0;
    };
    let theirs = [
        theirs.rssanon,
        theirs.rssfile,
        theirs.rssshmem,
        theirs.vmswap,
    ];
    let ours = process::Split::from_status(text).unwrap_or_default();
    let ours = [
        ours.anon_bytes,
        ours.file_bytes,
        ours.shmem_bytes,
        ours.swap_bytes,
    ];
    // The crate gives the sizes in KiB, as in the file.
    assert_eq!(ours, theirs.map(|kib| kib.map(|kib| kib * 1024)));
    theirs.iter().flatten().count()
}

fn rollup(text: &[u8]) -> usize {
    let ours = process::Split::from_smaps_rollup(text).unwrap();
    let theirs = theirs::SmapsRollup::from_read(text).unwrap();
    let figures = &theirs
        .memory_map_rollup
        .iter()
        .next()
        .unwrap()
        .extension
        .map;
    let of = |names: &[&str]| {
        let found: Vec<u64> = names
            .iter()
            .filter_map(|n| figures.get(*n).copied())
            .collect();
        (!found.is_empty()).then(|| found.iter().sum::<u64>())
    };
    let pairs = [
        (ours.anon_bytes, of(&["Pss_Anon"])),
        (ours.file_bytes, of(&["Pss_File"])),
        (ours.shmem_bytes, of(&["Pss_Shmem"])),
        (ours.swap_bytes, of(&["SwapPss"])),
        (
            ours.private_bytes,
            of(&["Private_Clean", "Private_Dirty", "Private_Hugetlb"]),
        ),
        (
            ours.shared_bytes,
            of(&["Shared_Clean", "Shared_Dirty", "Shared_Hugetlb"]),
        ),
    ];
    for (ours, theirs) in pairs {
        assert_eq!(ours, theirs);
    }
    pairs.iter().flat_map(|(ours, _)| ours).count()
}

fn mappings(text: &[u8]) -> usize {
    let theirs = theirs::MemoryMaps::from_read(text).unwrap();
    let theirs: BTreeMap<_, _> = theirs.iter().map(|map| (map.address.0, map)).collect();
    let mut count = 0;
    for line in text.split(|byte| *byte == b'\n') {
        let Some(ours) = maps::file_mapping(line) else {
            continue;
        };
        let theirs = theirs[&ours.addresses.start];
        assert_eq!((ours.addresses.start, ours.addresses.end), theirs.address);
        assert_eq!(ours.range.start, theirs.offset);
        assert_eq!(ours.inode, theirs.inode);
        assert_eq!((ours.device.0 as i32, ours.device.1 as i32), theirs.dev);
        count += 1;
    }
    count
}
