//! `gleaner import`: machines of Bitbrains as published (tests/data/bitbrains), and files of other sources
//! that are made here from their descriptions.

use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{HostRow, SampleRow};
use gleaner_tests::{program, repository};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Folder with the machines' files, decompressed.
fn archive() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let packed = repository().join("tests/data/bitbrains");
    for entry in fs::read_dir(packed).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".zst") {
            let bytes = zstd::decode_all(fs::File::open(entry.path()).unwrap()).unwrap();
            fs::write(folder.path().join(name), bytes).unwrap();
        }
    }
    folder
}

fn import(folder: &Path, dataset: &Path, more: &[&str]) -> Output {
    let dataset = ["-o", dataset.to_str().unwrap()];
    gleaner(&[&["bitbrains", folder.to_str().unwrap()], &dataset, more].concat())
}

/// Output of `gleaner import` with these arguments.
fn gleaner(args: &[&str]) -> Output {
    let mut command = Command::new(program("gleaner").unwrap());
    command.arg("import").args(args);
    command.stdin(Stdio::null()).output().unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn told(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn machines_of_the_archive_with_all_their_roughness() {
    let (source, folder) = (archive(), tempfile::tempdir().unwrap());
    let dataset = folder.path().join("dataset");
    let json = told(&import(source.path(), &dataset, &["--json"]));
    let told_json: serde_json::Value = serde_json::from_str(&json).unwrap();
    // The expected numbers were counted in the files without Gleaner.
    let counted: Vec<_> = told_json["machines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            let count = |name: &str| m[name].as_u64().unwrap();
            let machine = m["machine"].as_str().unwrap().to_owned();
            let lost = [
                "repeated_count",
                "contradicted_count",
                "without_memory_count",
            ];
            let lost = lost.map(count);
            (
                machine,
                count("rows_count"),
                count("samples_count"),
                lost,
                count("above_physical_count"),
            )
        })
        .collect();
    let expected = [
        ("20", 2218, 432, [724, 2, 1060], 0),
        ("24", 775, 775, [0, 0, 0], 0),
        ("149", 549, 384, [0, 0, 165], 3),
        ("166", 119, 119, [0, 0, 0], 4),
        ("203", 372, 362, [0, 0, 10], 2),
        ("286", 785, 785, [0, 0, 0], 0),
        ("440", 775, 775, [0, 0, 0], 0),
    ];
    let expected =
        expected.map(|(m, rows, samples, lost, over)| (m.to_owned(), rows, samples, lost, over));
    assert_eq!(counted, expected);
    assert_eq!(told_json["source"], "GWA-T-12 Bitbrains rnd");

    let opened = Dataset::open(&dataset).unwrap();
    assert_eq!(opened.verify().problems, []);
    assert_eq!(opened.hosts().unwrap().len(), 7);
    assert_eq!(opened.hosts_named("bitbrains-rnd-440").unwrap().len(), 1);
    let rows = opened.rows(&SampleRow::TABLE) + opened.rows(&HostRow::TABLE);
    assert_eq!(told_json["new_rows_count"], rows);

    // The same import again, with a summary as text: no row is new.
    let text = told(&import(source.path(), &dataset, &[]));
    for part in [
        "bitbrains-rnd-20",
        "all 7",
        "above physical",
        "read as seconds",
        &format!(
            "\n0 rows of 7 machines in 0 files (0 B) new in {}; {rows} were there already",
            dataset.display()
        ),
        "an upper bound",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    // A machine has no row in the summary if nothing was repaired, merged or dropped.
    assert!(!text.contains("bitbrains-rnd-440"), "{text}");
}

#[test]
fn what_is_no_trace_is_refused_by_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let (source, dataset) = (folder.path().join("source"), folder.path().join("dataset"));
    fs::create_dir(&source).unwrap();
    let refused = |part: &str| {
        let output = import(&source, &dataset, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(!dataset.exists());
    };
    refused("no .csv file in");
    fs::write(source.join("1.csv"), "a,b,c\n1,2,3\n").unwrap();
    refused("1.csv line 1: \"a,b,c\" is no header; expected a header of columns with ';' between");
    let wrong = import(&source, &dataset, &["--trace", "materna"]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// Every source lists the columns that it fills, with units and origins, both with `--columns` and in the
/// help.
#[test]
fn every_source_says_what_it_fills() {
    // Plain CSV is left out: its columns are listed in the mapping file.
    let help = told(&gleaner(&["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:");
    let commands = commands.skip(1).take_while(|line| !line.is_empty());
    // Lines that continue a description are indented more than names, and are skipped.
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let sources = names.filter(|source| !["", "csv", "help"].contains(source));
    let sources: Vec<&str> = sources.collect();
    assert!(sources.len() >= 6, "{help}");
    for source in sources {
        let told_json = json(&told(&gleaner(&[source, "--columns", "--json"])));
        let columns = told_json["columns"].as_array().unwrap();
        let text = told(&gleaner(&[source, "--columns"]));
        let help = told(&gleaner(&[source, "--help"]));
        for column in columns {
            let word = |key: &str| column[key].as_str().unwrap().to_owned();
            let name = format!("{}.{}", word("table"), word("column"));
            let line = text.lines().find(|l| l.trim_start().starts_with(&name));
            let line = line.unwrap_or_else(|| panic!("{name} is not in:\n{text}"));
            assert!(line.ends_with(&word("origin")), "{line}");
            assert!(help.contains(&name), "{source} --help lacks {name}");
            let is_bytes = name.ends_with("_bytes");
            assert_eq!(column["unit"] == "bytes", is_bytes, "{column}");
        }
        assert!(columns.len() >= 6);
        assert!(text.contains(told_json["available_meaning"].as_str().unwrap()));
    }
    // `--columns` needs no folder, but an import does. For CSV, both need a mapping.
    assert_eq!(gleaner(&["bitbrains"]).status.code(), Some(2));
    assert_eq!(gleaner(&["csv", "--columns"]).status.code(), Some(2));
}

#[test]
fn a_month_of_materna() {
    let folder = tempfile::tempdir().unwrap();
    let (source, dataset) = (folder.path().join("trace"), folder.path().join("dataset"));
    fs::create_dir(&source).unwrap();
    let header = "\"Timestamp\";\"CPU cores\";\"Memory capacity provisioned [KB]\";\"Memory usage [KB]\";\"Memory usage [%]\"";
    let rows = (0..12).map(|i| {
        format!(
            "\"04.01.2016 20:{:02}:34\";\"2\";\"4194304\";\"{i}\";\"{i},5\"",
            5 * i
        )
    });
    let text = std::iter::once(header.to_owned())
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\r\n");
    fs::write(source.join("01.csv"), text).unwrap();
    let paths = [source.to_str().unwrap(), "-o", dataset.to_str().unwrap()];
    let args = [&["materna"], &paths[..], &["--trace", "3", "--json"]].concat();
    let done = json(&told(&gleaner(&args)));
    assert_eq!(done["source"], "GWA-T-13 Materna 3");
    assert_eq!(
        (&done["total"]["samples_count"], &done["new_rows_count"]),
        (&12.into(), &13.into())
    );
    assert_eq!(json(&told(&gleaner(&args)))["new_rows_count"], 0);
    assert_eq!(
        Dataset::open(&dataset)
            .unwrap()
            .hosts_named("materna-3-01")
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn machines_of_alibaba_and_what_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (file, dataset) = (
        folder.path().join("machine_usage.csv"),
        folder.path().join("dataset"),
    );
    let rows = (0..60).map(|i| {
        format!(
            "m_{},{},41,{},,,43.04,33.08,5\n",
            i % 3,
            10 + i / 3 * 10,
            100 + i % 2 - (i / 2) % 5
        )
    });
    fs::write(&file, rows.collect::<String>() + ",10,1,1,,,1,1,1\n").unwrap();
    let paths = [file.to_str().unwrap(), "-o", dataset.to_str().unwrap()];
    let args = [&["alibaba"], &paths[..]].concat();
    let text = told(&gleaner(&args));
    for part in [
        "all 3",
        "1 rows have no machine (line 61: machine_id is \"\")",
        "100 GiB stands for all memory",
        "-1 and 101 mark what is not valid",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let again = json(&told(&gleaner(&[&args[..], &["--json"]].concat())));
    assert_eq!(again["new_rows_count"], 0);
    assert_eq!(again["without_machine"]["rows_count"], 1);
    // With another start time, the same file becomes another trace in the dataset, beside the first.
    let start = ["--start", "2018-06-01T00:00:00+08:00", "--json"];
    assert_ne!(
        json(&told(&gleaner(&[&args[..], &start].concat())))["new_rows_count"],
        0
    );
    assert_eq!(Dataset::open(&dataset).unwrap().hosts().unwrap().len(), 6);

    fs::write(&file, "a,b\n1,2\n").unwrap();
    let refused = gleaner(&args);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said.contains("machine_usage.csv line 1: 2 columns instead of 9"),
        "{said}"
    );
}

/// Imports the file that docs/import.md shows, with the mapping shown there.
#[test]
fn plain_csv_by_the_mapping_of_the_docs() {
    let docs = fs::read_to_string(repository().join("docs/import.md")).unwrap();
    let block = |language: &str| {
        let (_, block) = docs.split_once(&format!("```{language}\n")).unwrap();
        block.split_once("```").unwrap().0
    };
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, mapping, dataset) = (place("pc1.csv"), place("map.toml"), place("dataset"));
    fs::write(&file, block("csv")).unwrap();
    fs::write(&mapping, block("toml")).unwrap();
    let by = ["csv", "--mapping", &mapping];

    let check = told(&gleaner(&[&by[..], &["--check", &file]].concat()));
    for part in [
        "2024-03-01T12:00:00Z",
        "available_bytes",
        "12582912000",
        "hosts.kernel_release",
        "6.1.0-18",
    ] {
        assert!(check.contains(part), "{part} is not in:\n{check}");
    }
    let check = json(&told(&gleaner(
        &[&by[..], &["--check", "--json", &file]].concat(),
    )));
    assert_eq!(
        check[1]["columns"]["available_bytes"],
        11_264_000_i64 * 1024
    );
    assert!(!Path::new(&dataset).exists());
    let columns = told(&gleaner(&[&by[..], &["--columns"]].concat()));
    assert!(
        columns.contains("physical_bytes less used kB [KiB]"),
        "{columns}"
    );

    let import = [&by[..], &[&file, "-o", &dataset]].concat();
    let text = told(&gleaner(&import));
    assert!(
        text.contains("what free(1) did not count as used"),
        "{text}"
    );
    let again = told(&gleaner(&import));
    assert!(again.contains("\n0 rows of 1 machines"), "{again}");

    fs::write(&mapping, block("toml").replace("used = ", "usd = ")).unwrap();
    let refused = gleaner(&import);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    let line = block("toml").lines().position(|l| l.starts_with("used = "));
    let place = format!("map.toml line {}", line.unwrap() + 1);
    assert!(said.contains(&place) && said.contains("`usd`"), "{said}");
}

/// An archive in a folder is unreadable. The others are imported, the unreadable one is named, and
/// the exit code is not 0.
#[test]
fn an_unusable_archive_of_pcp_is_left_out_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    let archives = folder.path().join("archives");
    let dataset = folder.path().join("dataset");
    for made in [&tools, &archives] {
        fs::create_dir(made).unwrap();
    }
    // A stand-in for PCP's tool: it prints this recorded output.
    let printed = repository().join("traces/tests/data/pcp/6.0.3.txt");
    let tool = format!(
        "#!/bin/sh\ncase \"$4\" in\n*/good) exec cat '{}' ;;\nesac\n\
         echo 'pmlogdump: Cannot open archive: Corrupted record' >&2\nexit 1\n",
        printed.display()
    );
    fs::write(tools.join("pmlogdump"), tool).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(tools.join("pmlogdump"), executable).unwrap();
    let run = || {
        let mut command = Command::new(program("gleaner").unwrap());
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        command.args(["import", "pcp"]).arg(&archives);
        command.arg("-o").arg(&dataset).env("PATH", path);
        command.stdin(Stdio::null()).output().unwrap()
    };
    fs::write(archives.join("bad.meta"), "").unwrap();
    let refused = run();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("Corrupted record"), "{said}");
    assert!(!dataset.exists(), "there was nothing to import");

    fs::write(archives.join("good.meta"), "").unwrap();
    let output = run();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("bad") && said.contains("the rest is imported"),
        "{said}"
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("warning: left out: "), "{text}");
    let opened = Dataset::open(&dataset).unwrap();
    assert_eq!(opened.hosts_named("desk").unwrap().len(), 1);
    assert_eq!(opened.rows(&SampleRow::TABLE), 5);
}

/// If no interval is given, irregular steps leave almost all of the time in gaps. This is reported with its
/// reason. With a given interval, there are no gaps.
#[test]
fn low_coverage_is_a_warning_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    let mut text =
        "Timestamp [ms];CPU cores;Memory capacity provisioned [KB];Memory usage [KB]\n".to_owned();
    let mut time_s = 1_373_932_200;
    for at in 0..60 {
        text += &format!("{time_s};4;4194304.0;1000.0\n");
        time_s += [10, 10, 30, 10, 600, 10, 9_000, 60, 10, 600][at % 10];
    }
    fs::write(source.join("1.csv"), text).unwrap();
    let found = told(&import(&source, &folder.path().join("found"), &[]));
    for part in [
        "warning: low coverage: of 1 of 1 machines",
        "longer than two intervals of 10 s",
        "--interval TIME",
    ] {
        assert!(found.contains(part), "{part} is not in:\n{found}");
    }
    let stated = folder.path().join("stated");
    let text = told(&import(
        &source,
        &stated,
        &["--interval", "4500s", "--json"],
    ));
    let done = json(&text);
    assert_eq!(done["total"]["gaps_count"], 0);
    assert_eq!(done["machines"][0]["nominal_interval_ms"], 4_500_000);
    assert_eq!(done["total"]["span_ms"], done["total"]["recorded_ms"]);
    // The analysis of each dataset sees the same coverage as the import.
    for (dataset, is_covered) in [(&folder.path().join("found"), false), (&stated, true)] {
        let mut command = Command::new(program("gleaner").unwrap());
        let analyzed = command.arg("analyze").arg(dataset).arg("--json").output();
        let findings = json(&told(&analyzed.unwrap()));
        let described = &findings["sources"][0];
        assert_eq!(described["name"], findings["hosts"][0]["source"]);
        assert_eq!(described["hosts_count"], 1);
        let physical = described["physical_meaning"].as_str().unwrap();
        assert!(physical.contains("provisioned"), "{physical}");
        let coverage = findings["hosts"][0]["coverage_share"].as_f64().unwrap();
        assert_eq!(coverage > 0.99, is_covered, "{coverage}");
        assert_eq!(coverage < 0.5, !is_covered, "{coverage}");
    }
    for (interval, words) in [("0s", "from 1ms to 1d"), ("4500", "like 90s")] {
        let wrong = folder.path().join("wrong");
        let wrong = import(&source, &wrong, &["--interval", interval]);
        let said = String::from_utf8_lossy(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}

/// Standard output of `gleaner` with these arguments.
#[track_caller]
fn said(args: &[&str]) -> String {
    let mut command = Command::new(program("gleaner").unwrap());
    told(&command.args(args).stdin(Stdio::null()).output().unwrap())
}

/// Every output with figures of imported hosts explains these figures, and no others. Hosts that an agent
/// recorded have their own explanation.
#[test]
fn what_a_trace_means_is_said_by_every_program() {
    const BOUND: &str = "Available memory is an upper bound";
    const OURS: &str = "neither the kernel nor any active program";
    let (source, folder) = (archive(), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (imported, both) = (at("imported"), at("both"));
    told(&import(source.path(), Path::new(&imported), &[]));
    said(&["synth", "-o", &both, "--hosts", "2", "--days", "1"]);
    told(&import(source.path(), Path::new(&both), &[]));

    for dataset in [&imported, &both] {
        for asked in [&[][..], &["--measure", "cluster_available"]] {
            let text = said(&[&["analyze", dataset][..], asked].concat());
            assert!(
                text.starts_with("Imported from GWA-T-12 Bitbrains rnd (7 of "),
                "{text}"
            );
            assert!(
                text.contains(BOUND) && !text.contains("installed"),
                "{text}"
            );
        }
        let text = said(&["explain", dataset, "--host", "bitbrains-rnd-440"]);
        assert!(
            text.contains(BOUND) && text.contains("not in the trace"),
            "{text}"
        );
        for claim in ["System RAM", "what the owner is not using", "not explained"] {
            assert!(!text.contains(claim), "{claim} is in:\n{text}");
        }
        let page = at("page.html");
        said(&["report", dataset, "-o", &page, "--also", "md,csv,json"]);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        for companion in [
            "page.html",
            "page.md",
            "page.json",
            "page-tables/sources.csv",
        ] {
            assert!(read(companion).contains(BOUND), "{companion}");
        }
        let is_ours = dataset == &both;
        for companion in ["page.html", "page.md", "page.json"] {
            let text = read(companion);
            assert_eq!(text.contains(OURS), is_ours, "{companion}");
            assert!(is_ours || !text.contains("installed"), "{companion}");
        }
        let table = read("page-tables/hosts.csv");
        assert!(table.contains(",GWA-T-12 Bitbrains rnd,"), "{table}");
        for (form, more) in [
            ("parquet", &["--table", "samples"][..]),
            ("availability", &["--region", "64MiB"]),
        ] {
            let out = at(form);
            said(&[&["export", dataset, "--to", form, "-o", &out][..], more].concat());
            let mark = json(&read(&format!("{form}/gleaner-export.json")));
            let available = mark["sources"][0]["available_meaning"].as_str().unwrap();
            assert!(available.contains(BOUND), "{form}");
        }
    }
    // Synthetic hosts imitate hosts with an agent, and so have the agents' explanation.
    let hosts = json(&said(&["analyze", &both, "--measure", "hosts", "--json"]));
    let hosts = hosts["hosts"].as_array().unwrap();
    let made_up = hosts
        .iter()
        .find(|host| host["source"] == "synthetic modern");
    let host = made_up.unwrap()["host_id"].as_str().unwrap();
    let text = said(&["explain", &both, "--host", host]);
    assert!(
        text.contains("System RAM") && !text.contains("imported from"),
        "{text}"
    );
}
