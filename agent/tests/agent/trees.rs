//! Two captured /proc trees, made for this test in the style of those of prometheus/procfs, sysstat and PCP,
//! with figures computed by hand.

use crate::{bytes, categories_less_physical, sample, sample_command, value};
use serde_json::{Value as Json, json};
use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

pub(crate) const TREES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/trees");
const KIB: i64 = 1024;

/// Compares columns in bytes with figures in KiB.
fn assert_kib(sample: &Json, expected: &[(&str, i64)]) {
    for (name, kib) in expected {
        assert_eq!(bytes(sample, name), Some(kib * KIB), "{name}");
    }
}

/// Rows of one table, reduced to a few columns, sorted by one column's text.
fn rows(table: &Json, key: &str, columns: &[&str]) -> Vec<Json> {
    let row = |r: &Json| {
        let values = columns.iter().map(|c| r[c]["value"].clone());
        json!(
            [r[key]["value"].clone()]
                .into_iter()
                .chain(values)
                .collect::<Vec<_>>()
        )
    };
    let mut rows: Vec<Json> = table.as_array().unwrap().iter().map(row).collect();
    rows.sort_by_key(ToString::to_string);
    rows
}

/// Makes a `dev` folder with two input devices, a console and a pseudo-terminal, each last used some seconds
/// ago.
fn devices(dev: &Path, keyboard_s: u64, sensor_s: u64, tty7_s: u64, pts0_s: u64) {
    let now = SystemTime::now();
    std::fs::create_dir_all(dev.join("input")).unwrap();
    std::fs::create_dir_all(dev.join("pts")).unwrap();
    for (name, ago_s) in [("event0", keyboard_s), ("event1", sensor_s)] {
        let time = (now - Duration::from_secs(ago_s))
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let key_code = [0x1e_u8; 8];
        let event = [
            &(time.as_secs() as i64).to_ne_bytes()[..],
            &i64::from(time.subsec_micros()).to_ne_bytes(),
            &key_code,
        ];
        std::fs::write(dev.join("input").join(name), event.concat()).unwrap();
    }
    for (name, ago_s) in [("tty7", tty7_s), ("pts/0", pts0_s)] {
        let accessed = FileTimes::new().set_accessed(now - Duration::from_secs(ago_s));
        File::create(dev.join(name))
            .unwrap()
            .set_times(accessed)
            .unwrap();
    }
}

/// A 16 GiB desktop, Linux 6.1, at two moments: in between, a browser worked, a compiler took the process id
/// of a finished make, and a shell, a kernel thread and our own agent were active.
#[test]
fn desktop() {
    let tree = format!("{TREES}/desktop-6.1-amd64");
    let dev = tempfile::tempdir().unwrap();
    devices(dev.path(), 600, 1, 4000, 900);
    let begun = SystemTime::now();
    let document = sample(
        sample_command()
            .args([
                "--proc-root",
                &format!("{tree}/t1/proc"),
                "--sys-root",
                &format!("{tree}/t1/sys"),
            ])
            .arg("--dev-root")
            .arg(dev.path())
            .args(["--run-root", &format!("{tree}/run")])
            .args([
                "--before",
                &format!("{tree}/t0/proc"),
                "--page-size",
                "4096",
                "--ticks",
                "100",
            ]),
    );
    let row = &document["sample"];
    assert_kib(
        row,
        &[
            ("physical_bytes", 636 + 3071 * 1024 + 13_312 * 1024), // iomem's three ranges: 16776828
            ("static_kernel_bytes", 456_828),                      // 16776828 − 16320000
            ("balloon_bytes", 0),
            // 16320000 − 10800800 free − 199200 anonymous − 200000 − 4000000 cached − 400000 reclaimable
            // − 100000 on the per-CPU lists
            ("dynamic_kernel_bytes", 620_000),
            ("reserve_bytes", 80_000), // 5000 + 15000 pages
            // anonymous 4000 systemd + 80000 Xorg + 60000 browser + 50000 compiler,
            // shared 60000 Xorg + 40000 browser, file 5000 + 20000 + 90000 (not the estimate's 10000)
            ("process_bytes", 194_000 + 100_000 + 115_000),
            ("file_cache_bytes", 0), // another machine's files cannot be asked
            ("guest_bytes", 0),
            ("available_bytes", 15_211_000), // 16776828 − all of the above
            ("category_correction_bytes", 0),
            ("available_free_bytes", 10_820_800), // 10800800 + 100000 − 80000
            ("pcp_free_bytes", 100_000),          // 10 + 24990 pages
            // anonymous: bash 500 and the agent 800 pages; shmem (KiB): 300000 − 100000
            ("available_idle_process_bytes", 2000 + 3200 + 200_000),
            ("available_unused_cache_bytes", 3_785_000), // 3900000 on the LRU lists − 115000
            ("available_reclaimable_kernel_bytes", 400_000),
            ("available_residual_bytes", 0),
            ("page_tables_bytes", 20_000),
            ("zswap_bytes", 0),
            ("zram_bytes", 30 * 1024),
            ("zram_stored_bytes", 100 * 1024),
        ],
    );
    assert_eq!(document["numa_nodes"], json!([])); // the sample has the figures of a single node
    for column in ["arc_bytes", "arc_min_bytes"] {
        assert_eq!(bytes(row, column), None, "{column}");
    }
    // 13900000 KiB − 15 % of 16776828 KiB (2576920780 bytes)
    assert_eq!(
        bytes(row, "harvestable_bytes"),
        Some(13_900_000 * KIB - 2_576_920_780)
    );
    assert_eq!(categories_less_physical(row), 0);
    assert_eq!(row["load5"], json!({ "value": 0.25, "unit": "tasks" }));
    assert_eq!(value(row, "boottime_ms", Some("ms")), Some(5_000_500));
    assert_eq!(
        value(row, "psi_memory_full_total_us", Some("us")),
        Some(7000)
    );
    assert_eq!(
        value(row, "refault_file_total_pages", Some("pages")),
        Some(1234)
    );
    assert_eq!(value(row, "processes_count", Some("count")), Some(6)); // the kernel thread does not count
    assert_eq!(value(row, "active_processes_count", Some("count")), Some(4));

    let columns = [
        "pid",
        "cpu_ms",
        "always_active",
        "memory_source",
        "start_boottime_ms",
        "rss_bytes",
        "private_bytes",
        "shared_bytes",
    ];
    let expected = [
        json!([
            "Web Content",
            2100,
            500,
            false,
            "pss",
            20_000,
            48_500 * 4 * KIB,
            160_000 * KIB,
            34_000 * KIB
        ]),
        json!([
            "Xorg",
            900,
            0,
            true,
            "pss",
            9000,
            48_000 * 4 * KIB,
            100_000 * KIB,
            92_000 * KIB
        ]),
        json!([
            "cc1 (x) y",
            2500,
            null,
            false,
            "rss_estimate",
            4_990_000,
            15_000 * 4 * KIB,
            null,
            null
        ]),
        json!(["systemd", 1, 0, true, "pss", 50, 3000 * 4 * KIB, null, null]),
    ];
    assert_eq!(rows(&document["processes"], "name", &columns), expected);

    let columns = [
        "open_processes_count",
        "mapping_processes_count",
        "size_bytes",
        "cached_bytes",
        "mapped_cached_bytes",
    ];
    let expected = [
        json!(["/usr/lib/firefox esr/libxul.so", 0, 1, null, null, null]),
        json!([
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            0,
            2,
            null,
            null,
            null
        ]),
    ];
    assert_eq!(rows(&document["files"], "path", &columns), expected);

    // The keyboard was used last, ten minutes before. The sensor's events are a second old, but no person
    // caused them.
    let passed_ms = begun.elapsed().unwrap().as_millis() as i64 + 2000; // and what `devices` took
    let within = |idle_ms: Option<i64>, ago_s: i64| {
        let idle_ms = idle_ms.unwrap();
        assert!(
            (ago_s * 1000..=ago_s * 1000 + passed_ms).contains(&idle_ms),
            "{idle_ms} {ago_s}"
        );
    };
    within(value(row, "owner_idle_ms", Some("ms")), 600);
    for (source, ago_s, count) in [(0, 600, 1), (1, 900, 2)] {
        let source = &document["activity"][source];
        within(value(source, "idle_ms", Some("ms")), ago_s);
        assert_eq!(value(source, "devices_count", Some("count")), Some(count));
    }

    // There is no session reporter and no logind. Two files cannot be examined, and two processes have no
    // `maps`.
    let missing_values = rows(
        &document["missing_values"],
        "item",
        &["reason", "missing_count"],
    );
    let expected = [
        json!(["activity", "unsupported", 2]),
        json!(["cgroups", "unsupported", 1]), // init.scope's swap
        json!(["files", "vanished", 4]),
    ];
    assert_eq!(missing_values, expected);
}

/// On the same desktop, a shell with 2000 KiB of anonymous memory plays a memory server.
#[test]
fn what_a_named_process_holds_is_lent() {
    let tree = format!("{TREES}/desktop-6.1-amd64");
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "guest_processes = [\"bash\"]\n").unwrap();
    let document = sample(
        sample_command()
            .args(["--proc-root", &format!("{tree}/t1/proc")])
            .args(["--sys-root", &format!("{tree}/t1/sys")])
            .args(["--before", &format!("{tree}/t0/proc")])
            .args(["--run-root", &format!("{tree}/run")])
            .args(["--dev-root=/nonexistent", "--config"])
            .arg(config.path())
            .args(["--page-size=4096", "--ticks=100"]),
    );
    let row = &document["sample"];
    assert_kib(
        row,
        &[
            ("guest_bytes", 2000),
            ("available_bytes", 15_211_000 - 2000),
            ("process_bytes", 194_000 + 100_000 + 115_000),
            ("available_idle_process_bytes", 3200 + 200_000),
            ("available_residual_bytes", 0),
        ],
    );
    assert_eq!(categories_less_physical(row), 0);
}

/// A 64 GiB server with 64 KiB pages and an older kernel, read without root. The tree has one moment only, so
/// a process counts by the CPU time of its whole life.
#[test]
fn server() {
    let tree = format!("{TREES}/server-arm64-64k");
    let document = sample(
        sample_command()
            .args([
                "--proc-root",
                &format!("{tree}/proc"),
                "--sys-root",
                &format!("{tree}/sys"),
            ])
            .args(["--dev-root", &format!("{tree}/dev"), "--settle", "0s"])
            .args(["--run-root", &format!("{tree}/run")])
            .args(["--page-size", "65536", "--ticks", "100"]),
    );
    let row = &document["sample"];
    assert_kib(
        row,
        &[
            ("physical_bytes", 1_048_576 * 64), // present pages, since the zones agree with MemTotal
            ("static_kernel_bytes", 67_108_864 - 66_000_000),
            ("hugetlb_bytes", 512 * 2048),
            ("arc_bytes", 1_200_000),
            ("arc_min_bytes", 200_000),
            // 66000000 − 31967000 free − 6033000 − 25000000 − 1000 − 900000 − 1000000 of the ARC that can be
            // reclaimed; huge pages and the rest of the ARC are part of the result
            ("dynamic_kernel_bytes", 1_099_000),
            ("available_reclaimable_kernel_bytes", 1_900_000),
            ("reserve_bytes", 2000 * 64),
            // postgres, beyond the limit for smaps_rollup: 6000000 anonymous, 1500000 shared, 500000 of files;
            // cron: 1000 anonymous (its 500 of files may be among postgres')
            ("process_bytes", 6_001_000 + 1_500_000 + 500_000),
            ("available_bytes", 56_772_000), // 67108864 − all of the above
            ("available_unused_cache_bytes", 22_500_000), // 23000000 on the LRU lists − 500000
            ("category_correction_bytes", 0),
            ("available_idle_process_bytes", 500 * 64 + 500_000), // sleepd, shmem 2000000 − 1500000
            ("available_residual_bytes", 1000),                   // swap cache, in no other part
        ],
    );
    assert_eq!(categories_less_physical(row), 0);
    for column in ["zram_bytes", "zram_stored_bytes"] {
        assert_eq!(bytes(row, column), None, "{column}");
    }
    assert_eq!(value(row, "owner_idle_ms", Some("ms")), None);
    let nodes = [
        ("mem_total_bytes", [33_000_000, 33_000_000]),
        ("mem_free_bytes", [16_000_000, 15_967_000]),
        ("reserve_bytes", [900 * 64, 1100 * 64]),
        ("active_file_bytes", [12_000_000, 8_000_000]),
        ("inactive_file_bytes", [1_200_000, 1_800_000]),
        ("anon_bytes", [3_000_000, 3_033_000]),
        ("shmem_bytes", [1_500_000, 500_000]),
        ("slab_bytes", [800_000, 700_000]),
        ("reclaimable_kernel_bytes", [500_000, 400_000]),
        ("hugetlb_bytes", [512 * 2048, 0]),
    ];
    assert_eq!(
        rows(&document["numa_nodes"], "numa_node", &[]),
        [json!([0]), json!([1])]
    );
    for (column, kib) in nodes {
        let nodes = document["numa_nodes"].as_array().unwrap();
        let found = [0, 1].map(|node| bytes(&nodes[node], column));
        assert_eq!(found, kib.map(|kib| Some(kib * KIB)), "{column}");
        // The nodes' figures sum up to the host's.
        let sum: i64 = found.into_iter().flatten().sum();
        assert_eq!(Some(sum), bytes(row, column), "{column}");
    }

    let columns = ["cpu_ms", "memory_source", "anon_bytes", "swap_bytes"];
    let expected = [
        json!(["cron", null, "pss", 1000 * KIB, 0]),
        json!([
            "postgres",
            null,
            "rss_estimate",
            6_000_000 * KIB,
            2000 * KIB
        ]),
    ];
    assert_eq!(rows(&document["processes"], "name", &columns), expected);

    let missing_values = rows(
        &document["missing_values"],
        "item",
        &["reason", "missing_count"],
    );
    let expected = [
        json!(["activity", "unsupported", 4]),
        json!(["boot_id", "unsupported", 1]),
        json!(["cgroups", "unsupported", 1]),
        json!(["files", "vanished", 2]),
        json!(["oom_kill_total_count", "unsupported", 1]),
        json!(["owner_idle_ms", "unsupported", 1]),
        json!(["pcp_free_bytes", "unsupported", 1]), // the tree's per-CPU lists have no count
        json!(["psi_cpu_some_total_us", "unsupported", 1]),
        json!(["psi_io_full_total_us", "unsupported", 1]),
        json!(["psi_io_some_total_us", "unsupported", 1]),
        json!(["psi_memory_full_total_us", "unsupported", 1]),
        json!(["psi_memory_some_total_us", "unsupported", 1]),
        json!(["reclaimed_direct_total_pages", "unsupported", 1]),
        json!(["reclaimed_kswapd_total_pages", "unsupported", 1]),
        json!(["refault_anon_total_pages", "unsupported", 1]),
        json!(["refault_file_total_pages", "unsupported", 1]),
        json!(["zswap_bytes", "unsupported", 1]),
        json!(["zswapped_bytes", "unsupported", 1]),
    ];
    assert_eq!(missing_values, expected);
}

/// DAMON's estimate is read if the owner allows it; it is absent if there is none.
#[test]
fn damon_by_the_owners_word() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&config, "damon = true\n").unwrap();
    let sampled = |tree: &str, config: Option<&Path>| {
        let mut command = sample_command();
        let roots = ["proc", "sys"].map(|root| format!("{TREES}/{tree}/{root}"));
        command.args(["--proc-root", &roots[0], "--sys-root", &roots[1]]);
        command.args(["--dev-root", "/nonexistent", "--settle", "0s"]);
        command.args(config.map(|path| format!("--config={}", path.display())));
        let document = sample(&mut command);
        let idle = ["10", "25", "50", "75", "90"].map(|p| {
            value(
                &document["sample"],
                &format!("damon_idle_p{p}_ms"),
                Some("ms"),
            )
        });
        let missing_values = rows(&document["missing_values"], "item", &["reason"]);
        let told = missing_values.contains(&json!(["damon_idle_p50_ms", "unsupported"]));
        (idle, told)
    };
    let idle_ms = [-1000, 500, 3000, 5500, 7000].map(Some);
    let desktop = "desktop-6.1-amd64/t1";
    assert_eq!(sampled(desktop, Some(config.path())), (idle_ms, false));
    assert_eq!(sampled(desktop, None), ([None; 5], false));
    let server = "server-arm64-64k";
    assert_eq!(sampled(server, Some(config.path())), ([None; 5], true));
}

/// Rows of the control groups of active processes, with the memory that the kernel charges to each group. The
/// processes of some groups are active because the owner declares them active.
#[test]
fn control_groups() {
    const SESSION: &str = "/user.slice/user-1000.slice/session-2.scope";
    const FIREFOX: &str =
        "/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox.scope";
    let tree = format!("{TREES}/desktop-6.1-amd64");
    let config = tempfile::NamedTempFile::new().unwrap();
    let sampled = |text: &str| {
        std::fs::write(&config, text).unwrap();
        let mut command = sample_command();
        for (option, folder) in [
            ("proc-root", "t1/proc"),
            ("sys-root", "t1/sys"),
            ("before", "t0/proc"),
        ] {
            command.arg(format!("--{option}={tree}/{folder}"));
        }
        command
            .arg("--dev-root=/nonexistent")
            .arg("--config")
            .arg(config.path());
        sample(command.args(["--page-size=4096", "--ticks=100"]))
    };
    let document = sampled("");
    let columns = [
        "active_processes_count",
        "memory_bytes",
        "anon_bytes",
        "file_bytes",
        "shmem_bytes",
        "kernel_bytes",
        "swap_bytes",
    ];
    let expected = [
        json!([
            "/init.scope",
            1,
            9_437_184,
            4_096_000,
            5_120_000,
            0,
            221_184,
            null
        ]),
        json!([
            SESSION,
            2,
            314_572_800,
            134_217_728,
            157_286_400,
            62_914_560,
            23_068_672,
            0
        ]),
        json!([
            FIREFOX,
            1,
            262_144_000,
            62_914_560,
            188_743_680,
            41_943_040,
            10_485_760,
            1_024_000
        ]),
    ];
    assert_eq!(rows(&document["cgroups"], "path", &columns), expected);
    let group_of = |name: &str, document: &Json| {
        let is = |row: &&Json| row["name"]["value"] == name;
        let process = document["processes"].as_array().unwrap().iter().find(is)?;
        let id = &process["cgroup_id"]["value"];
        let groups = document["cgroups"].as_array().unwrap();
        let group = groups
            .iter()
            .find(|group| group["cgroup_id"]["value"] == *id)?;
        Some(group["path"]["value"].as_str()?.to_owned())
    };
    assert_eq!(group_of("Xorg", &document).as_deref(), Some(SESSION));
    assert_eq!(group_of("Web Content", &document).as_deref(), Some(FIREFOX));

    let active = |text: &str| {
        value(
            &sampled(text)["sample"],
            "active_processes_count",
            Some("count"),
        )
        .unwrap()
    };
    // bash sleeps in the session: if its group is declared active, it is the fifth active process. A prefix
    // of a group's name is no group.
    for (group, count) in [
        (SESSION, 5),
        ("/user.slice", 5),
        ("/user.slice/user-1000.slice/", 5),
        ("/user.sli", 4),
        ("/../..", 4),
    ] {
        let text = format!("always_active_cgroups = [\"{group}\"]\n");
        assert_eq!(active(&text), count, "{group}");
    }
}
