//! Removes each file and line that is read, one at a time. The sample must still be taken, and the values of
//! that file or line must be absent, with the reason.

use crate::copies::Alteration::{self, Gone, Says, Without, WithoutFirst};
use crate::copies::{Copy, values};
use gleaner_agent::Error;
use gleaner_agent::read::loadavg::LoadAverage;
use gleaner_agent::read::vmstat::Vmstat;
use gleaner_agent::sample::sampler::Sampler;
use gleaner_schemas::column::{Row, Value};
use gleaner_schemas::rows::SampleRow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Missing values of one sample: count by item and reason, and the columns that are null.
type SampleMissingValues = (BTreeMap<(String, String), i64>, BTreeSet<&'static str>);

fn absent(sampler: &mut Sampler) -> Result<SampleMissingValues, Error> {
    let sample = sampler.take()?;
    // Files of another machine can never be examined, so every file that the tree names is noted as missing.
    // Leave these out.
    let rows = sample
        .missing_values
        .rows()
        .into_iter()
        .filter(|row| row.item != "files");
    let items = rows.map(|row| ((row.item, row.reason), row.missing_count));
    let columns = values(&sample.row).into_iter();
    let null = columns.filter(|(_, value)| *value == Value::Null);
    Ok((items.collect(), null.map(|(name, _)| name).collect()))
}

/// Asserts that the missing values of the altered tree are exactly those of the unaltered tree and the
/// expected ones, and that the columns among them are null.
fn assert_absent(
    copy: &Copy,
    whole: &SampleMissingValues,
    altered: &[(&str, Alteration)],
    expected: &[(&str, &str)],
) {
    copy.restore();
    for (file, how) in altered {
        copy.alter(file, how);
    }
    let (items, null) = absent(&mut copy.sampler()).unwrap();
    let case = altered.iter().map(|(file, how)| match how {
        Gone => format!("no {file}"),
        Without(with) | WithoutFirst(with) => format!("{file} without {with}"),
        Says(_, instead) => format!("{file} with {instead}"),
    });
    let case = case.collect::<Vec<_>>().join(", ");
    let mut wanted = whole.0.clone();
    let mut wanted_null = whole.1.clone();
    for (item, reason) in expected {
        *wanted
            .entry(((*item).to_owned(), (*reason).to_owned()))
            .or_default() += 1;
        let nullable = SampleRow::TABLE
            .columns
            .iter()
            .filter(|column| column.nullable);
        wanted_null.extend(
            nullable
                .map(|column| column.name)
                .filter(|name| name == item),
        );
    }
    assert_eq!(items, wanted, "{case}");
    assert_eq!(null, wanted_null, "{case}");
}

/// Columns whose names begin with `begin`.
fn columns(begin: &str) -> Vec<&'static str> {
    let names = SampleRow::TABLE.columns.iter().map(|column| column.name);
    names.filter(|name| name.starts_with(begin)).collect()
}

#[test]
fn each_line_and_each_file() {
    const UNSUPPORTED: &str = "unsupported";
    let copy = Copy::of("desktop-6.1-amd64");
    let whole = absent(&mut copy.sampler()).unwrap();
    let check = |file: &str, how: Alteration, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|item| (*item, UNSUPPORTED)).collect();
        assert_absent(&copy, &whole, &[(file, how)], &expected);
    };

    let meminfo = |line, expected: &[&str]| check("t1/proc/meminfo", Without(line), expected);
    let available = [
        "mem_available_bytes",
        "mem_available_min_bytes",
        "harvestable_bytes",
    ];
    meminfo("MemAvailable:", &available);
    for (line, column) in [
        ("Buffers:", "buffers_bytes"),
        ("Cached:", "cached_bytes"),
        ("SwapCached:", "swap_cached_bytes"),
        ("AnonPages:", "anon_bytes"),
        ("Shmem:", "shmem_bytes"),
        ("Mapped:", "mapped_bytes"),
        ("Active(file):", "active_file_bytes"),
        ("Inactive(file):", "inactive_file_bytes"),
        ("Unevictable:", "unevictable_bytes"),
        ("Dirty:", "dirty_bytes"),
        ("Writeback:", "writeback_bytes"),
        ("Slab:", "slab_bytes"),
        ("KernelStack:", "kernel_stack_bytes"),
        ("PageTables:", "page_tables_bytes"),
        ("Percpu:", "percpu_bytes"),
        ("VmallocUsed:", "vmalloc_bytes"),
        ("SwapTotal:", "swap_total_bytes"),
        ("SwapFree:", "swap_free_bytes"),
        ("Zswap:", "zswap_bytes"),
    ] {
        meminfo(line, &[column]);
    }
    // Older kernels have other names for these figures, or count them elsewhere: without such a line no value
    // is missing.
    for line in [
        "KReclaimable:",
        "SReclaimable:",
        "Hugetlb:",
        "HugePages_Total:",
        "SecPageTables:",
    ] {
        meminfo(line, &[]);
    }

    let vmstat = [
        ("workingset_refault_file", "refault_file_total_pages"),
        ("workingset_refault_anon", "refault_anon_total_pages"),
        ("pswpin", "swap_in_total_pages"),
        ("pswpout", "swap_out_total_pages"),
        ("pgmajfault", "major_fault_total_count"),
    ];
    for (line, column) in vmstat {
        check("t1/proc/vmstat", Without(line), &[column]);
    }
    check("t1/proc/vmstat", Gone, &Vmstat::COLUMNS);

    for resource in ["memory", "cpu", "io"] {
        let of_the_file = columns(&format!("psi_{resource}_"));
        check(&format!("t1/proc/pressure/{resource}"), Gone, &of_the_file);
    }
    let full = ["psi_memory_full_total_us"];
    check("t1/proc/pressure/memory", Without("full"), &full);
    check("t1/proc/loadavg", Gone, &LoadAverage::COLUMNS);

    let zones = ["reserve_bytes", "pcp_free_bytes"];
    check("t1/proc/zoneinfo", Gone, &zones);
    check("t1/proc/zoneinfo", Without("high "), &zones[..1]);
    check("t1/proc/zoneinfo", WithoutFirst("high "), &zones[..1]);
    check("t1/proc/zoneinfo", Without("count:"), &zones[1..]);
    check("t1/proc/zoneinfo", WithoutFirst("managed"), &[]); // iomem states physical memory
    check("t1/proc/iomem", Gone, &[]); // the zones state physical memory
    check("t1/proc/sys/kernel/random/boot_id", Gone, &["boot_id"]);
    check("t1/proc/uptime", Gone, &["boottime_ms"]);
}

/// Values with several sources, contradictory values, and values of single processes.
#[test]
fn other_reasons() {
    let copy = Copy::of("desktop-6.1-amd64");
    let whole = absent(&mut copy.sampler()).unwrap();
    let check = |altered: &[(&str, Alteration)], expected: &[(&str, &str)]| {
        assert_absent(&copy, &whole, altered, expected);
    };
    let all = |items: &[&'static str], reason: &'static str| {
        items.iter().map(|item| (*item, reason)).collect::<Vec<_>>()
    };

    check(
        &[(
            "t1/proc/meminfo",
            Says("KReclaimable:", "KReclaimable: -4 kB\n"),
        )],
        &[("reclaimable_kernel_bytes", "malformed")], // SReclaimable is there, and smaller
    );
    check(
        &[(
            "t1/proc/meminfo",
            Says("Cached:", "Cached: 99999999999999999999 kB\n"),
        )],
        &[("cached_bytes", "malformed")],
    );
    let zones = ["reserve_bytes", "pcp_free_bytes"];
    check(
        &[("t1/proc/zoneinfo", Says("high ", "high many\n"))],
        &all(&zones, "malformed"),
    );
    check(
        &[("t1/proc/loadavg", Says("0.10", "0.10 0.25\n"))],
        &all(&LoadAverage::COLUMNS, "malformed"),
    );
    check(
        &[("t1/proc/pressure/io", Says("some", "some total=-1\n"))],
        &all(&columns("psi_io_"), "malformed"),
    );

    // Physical memory comes from iomem, otherwise from the zones; without both it is absent, for iomem's
    // reason.
    let mut unknown = all(&zones, "unsupported");
    unknown.push(("static_kernel_bytes", "unsupported"));
    check(
        &[("t1/proc/iomem", Gone), ("t1/proc/zoneinfo", Gone)],
        &unknown,
    );
    check(
        &[
            ("t1/proc/iomem", Gone),
            ("t1/proc/zoneinfo", WithoutFirst("managed")),
        ],
        &unknown[2..],
    );
    unknown[2].1 = "malformed";
    check(
        &[
            (
                "t1/proc/iomem",
                Says("0010", "00100000-zfffffff : System RAM\n"),
            ),
            ("t1/proc/zoneinfo", Gone),
        ],
        &unknown,
    );
    unknown[2].1 = "denied"; // as users other than root see it
    let hidden = "00000000-00000000 : System RAM\n";
    check(
        &[
            ("t1/proc/iomem", Says("", hidden)),
            ("t1/proc/zoneinfo", Gone),
        ],
        &unknown,
    );

    // A process without its files has vanished.
    let ended = [("processes", "vanished")];
    check(&[("t1/proc/2200/statm", Gone)], &ended);
    check(&[("t1/proc/2200/stat", Gone)], &ended);
    check(&[("t1/proc/2500/status", Gone)], &ended);
    let zombie = Says("", "Name:\tx\nState:\tZ (zombie)\n");
    check(&[("t1/proc/2500/status", zombie)], &ended);
    // Before Linux 4.5 this line never existed: the process counts, without its kinds of memory.
    check(
        &[("t1/proc/2500/status", Without("RssAnon:"))],
        &[("process_kinds", "unsupported")],
    );
    check(
        &[("t1/proc/2200/stat", Says("2200", "2200 (bash) S 1\n"))],
        &[("processes", "malformed")],
    );
    check(
        &[("t1/proc/2200/statm", Says("4500", "4500 -1 1000\n"))],
        &[("processes", "malformed")],
    );
}

#[test]
fn without_the_memory_that_there_is_there_is_no_sample() {
    let copy = Copy::of("desktop-6.1-amd64");
    for altered in [
        Gone,
        Without("MemTotal:"),
        Without("MemFree:"),
        Says("MemTotal:", "MemTotal: 18446744073709551615 kB\n"),
        Says("MemFree:", "MemFree: -1 kB\n"),
    ] {
        copy.restore();
        copy.alter("t1/proc/meminfo", &altered);
        let said = copy.sampler().take().unwrap_err().to_string();
        assert!(
            said.contains("meminfo") && said.contains("--proc-root"),
            "{said}"
        );
    }
}

/// A group without a file lacks a controller of the kernel; a group that ended while the sample was taken has
/// vanished, of which no owner need be warned.
#[test]
fn a_group_that_ended_has_vanished() {
    let copy = Copy::of("desktop-6.1-amd64");
    let groups = || {
        let (items, _) = absent(&mut copy.sampler()).unwrap();
        ["unsupported", "vanished"].map(|reason| {
            let key = ("cgroups".to_owned(), reason.to_owned());
            items.get(&key).copied().unwrap_or(0)
        })
    };
    assert_eq!(groups(), [1, 0]); // init.scope has no account of its swap

    let scope = "t1/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope";
    copy.alter(&format!("{scope}/memory.stat"), &Gone);
    assert_eq!(groups(), [2, 0]);
    copy.restore();
    std::fs::remove_dir_all(copy.altered(Path::new(scope))).unwrap();
    assert_eq!(groups(), [1, 3]);
}
