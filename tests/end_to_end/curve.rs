//! `gleaner curve` records programs under QEMU, and agrees with valgrind's tools about them; measures them with less
//! memory, and watches them.

mod measured;

use crate::gleaner::{complaint, gleaner, told};
use gleaner_harness::succeed;
use gleaner_simulator::references::{OrderReader, OrderStep};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A folder with the program of `curve/program.c`.
struct Recorded {
    folder: TempDir,
    program: PathBuf,
}

impl Recorded {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        let source = gleaner_tests::repository().join("tests/end_to_end/curve/program.c");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-static", "-pthread", "-o"]);
        succeed(gcc.arg(&program).arg(source));
        Self { folder, program }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Curve of the program with these words as its arguments, and the output of `gleaner curve record`.
    #[track_caller]
    fn curve(&self, how: &str, options: &[&str]) -> (Value, String) {
        let (file, program) = (self.path("curve"), self.program.display().to_string());
        let mut args = vec!["curve", "record", "-o", file.as_str()];
        args.extend(options);
        args.extend(["--", program.as_str()]);
        args.extend(how.split(' '));
        let output = told(&args);
        (json(&told(&["curve", "show", &file, "--json"])), output)
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Asserts that two counts differ by at most a thousandth.
#[track_caller]
fn near(found: u64, expected: u64) {
    let difference = found.abs_diff(expected);
    assert!(
        difference * 1000 <= expected,
        "{found} is not near {expected}"
    );
}

/// Reuse faults by memory size, in pages.
fn faults(curve: &Value) -> Vec<(u64, u64)> {
    let points = curve["faults"].as_array().unwrap();
    let point = |point: &Value| {
        let number = |key: &str| point[key].as_u64().unwrap();
        (number("memory_pages"), number("reuse_count"))
    };
    points.iter().map(point).collect()
}

#[test]
fn instructions_and_cache_misses_are_cachegrinds() {
    let recorded = Recorded::new();
    let mut cachegrind = Command::new("valgrind");
    cachegrind.args([
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--I1=32768,2,32",
        "--D1=32768,2,32",
    ]);
    cachegrind.args(["--LL=1048576,2,128", "--cachegrind-out-file=/dev/null"]);
    let done = cachegrind.arg(&recorded.program).output().unwrap();
    let said = complaint(&done);
    let count = |label: &str| -> u64 {
        let line = said.lines().find(|line| line.contains(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {said}"));
        let (_, numbers) = line.split_once(label).unwrap();
        let number = numbers.split_whitespace().next().unwrap();
        number.replace(',', "").parse().unwrap()
    };
    let (curve, _) = recorded.curve("walk", &["--of", "misses"]);
    near(
        curve["instructions_count"].as_u64().unwrap(),
        count("I   refs:"),
    );
    let touches = curve["first_touch"].as_array().unwrap();
    near(
        touches.last().unwrap()["references_count"]
            .as_u64()
            .unwrap(),
        count("LL misses:"),
    );
    assert_eq!(curve["misses_of_bytes"], 1 << 20);
}

#[test]
fn faults_are_those_of_lackeys_accesses() {
    let recorded = Recorded::new();
    let trace = recorded.path("program.lackey");
    let mut lackey = Command::new("valgrind");
    lackey.args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no"]);
    succeed(
        lackey
            .arg(format!("--log-file={trace}"))
            .arg(&recorded.program)
            .arg("sample"),
    );
    let imported = recorded.path("imported.curve");
    let import = [
        "curve",
        "record",
        "-o",
        imported.as_str(),
        "--stream",
        trace.as_str(),
        "--stream-format",
        "lackey",
        "--native-s",
        "0.01",
    ];
    told(&import);
    let imported = json(&told(&["curve", "show", &imported, "--json"]));
    let (curve, _) = recorded.curve("sample", &[]);
    let (imported, found) = (faults(&imported), faults(&curve));
    let mut compared = 0;
    for (pages, count) in found {
        if let Some((_, expected)) = imported.iter().find(|(other, _)| *other == pages) {
            // One thousandth, and the pages that valgrind's start touches.
            assert!(
                count.abs_diff(*expected) <= expected / 1000 + 2,
                "{pages} pages: {count}, not {expected}"
            );
            compared += 1;
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn programs_that_close_fork_and_have_threads_are_whole() {
    let recorded = Recorded::new();
    for (how, processes, threads, least_pages) in [
        ("close", 1, 1, 1024),
        ("fork", 2, 2, 2048),
        ("threads", 1, 9, 3072),
    ] {
        let (curve, output) = recorded.curve(how, &["--native-s", "0.01"]);
        assert_eq!(curve["cut"], Value::Null, "{how}");
        assert_eq!(curve["recorder"]["processes_count"], processes, "{how}");
        assert_eq!(curve["recorder"]["threads_count"], threads, "{how}");
        let footprint = curve["footprint_pages"].as_u64().unwrap();
        assert!(
            (least_pages..least_pages + 300).contains(&footprint),
            "{how}: {footprint}"
        );
        assert!(
            output.contains("program: ") && !output.contains("cut"),
            "{output}"
        );
    }
}

/// Each way frees 1 MiB four times, between two uses of another MiB. Freed pages are not fetched again, and make room.
#[test]
fn freed_memory_costs_no_faults() {
    let recorded = Recorded::new();
    for how in [
        "discard",
        "unmap",
        "replace",
        "break",
        "shrink",
        "move",
        "fork-and-end",
    ] {
        let (curve, _) = recorded.curve(&format!("free {how}"), &["--native-s", "0.01"]);
        let points = faults(&curve);
        let at_most = |pages: u64| {
            let fitting = points.iter().rev().find(|(memory, _)| *memory <= pages);
            fitting.unwrap().1
        };
        // Less than one MiB: the first MiB is fetched again. More than two: nothing is.
        let (little, enough) = (at_most(250), at_most(650));
        assert!((256..350).contains(&little), "{how}: {little}");
        assert!(enough < 50, "{how}: {enough}");
    }
}

#[test]
fn instructions_are_as_many_if_qemu_counts_them_as_by_calls() {
    let recorded = Recorded::new();
    // QEMU counts them as long as there is one thread, but not with --code.
    for how in ["walk", "fork", "threads"] {
        let count = |options: &[&str]| {
            let (curve, _) = recorded.curve(how, options);
            curve["instructions_count"].as_u64().unwrap()
        };
        let by_calls = count(&["--native-s", "0.01", "--code"]);
        near(count(&["--native-s", "0.01"]), by_calls);
    }
}

#[test]
fn an_order_file_has_the_references_of_the_curve() {
    let recorded = Recorded::new();
    let order = recorded.path("program.order");
    for (how, options) in [
        ("walk", &["--of", "misses"][..]),
        ("threads", &["--native-s", "0.01"][..]),
    ] {
        let (curve, output) =
            recorded.curve(how, &[options, &["--order", order.as_str()]].concat());
        assert!(output.contains("exchanges of pages is in"), "{output}");
        let (mut pages, mut references, mut instructions) = (0_u64, 0_u64, 0_u64);
        for block in OrderReader::open(Path::new(&order)).unwrap() {
            let block = block.unwrap();
            instructions += block.instructions;
            for step in block.steps {
                match step {
                    OrderStep::Enter { page } => pages = pages.max(u64::from(page) + 1),
                    OrderStep::Leave { references: of, .. } => references += of,
                }
            }
        }
        assert_eq!(curve["footprint_pages"], pages, "{how}");
        assert_eq!(curve["instructions_count"], instructions, "{how}");
        let touches = curve["first_touch"].as_array().unwrap();
        assert_eq!(
            touches.last().unwrap()["references_count"],
            references,
            "{how}"
        );
    }
}

#[test]
fn programs_that_are_killed_or_replaced_say_that_they_are_cut() {
    let recorded = Recorded::new();
    for (how, reason) in [
        ("kill", "1 of 1 processes were killed"),
        ("exec", "replaced by another program (execve)"),
    ] {
        let (curve, output) = recorded.curve(how, &[]);
        assert!(
            curve["cut"].as_str().unwrap().contains(reason),
            "{how}: {}",
            curve["cut"]
        );
        assert!(
            output.contains("The curve is cut: ") && output.contains(reason),
            "{output}"
        );
        // All but the lists of the threads was recorded.
        assert!(curve["footprint_pages"].as_u64().unwrap() > 1000, "{how}");
        let predicted = told(&[
            "curve",
            "predict",
            &recorded.path("curve"),
            "--local",
            "50%",
        ]);
        assert!(predicted.contains("The curve is cut: "), "{predicted}");
    }
}

#[test]
fn a_script_is_recorded_by_its_interpreter_and_output_comes_once() {
    let recorded = Recorded::new();
    let script = recorded.path("script");
    let text = format!("#!{} sample\n", recorded.program.display());
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let file = recorded.path("curve");
    let output = told(&["curve", "record", "-o", &file, "--", &script]);
    let numbers = output
        .lines()
        .filter(|line| line.bytes().all(|byte| byte.is_ascii_digit()));
    assert_eq!(numbers.count(), 1, "{output}");
    assert!(
        output.contains("script: ") && output.contains("times native"),
        "{output}"
    );
}

/// Predictions are multiples of the duration, in which the program also waits; its files are in memory by then.
#[test]
fn the_native_duration_is_that_of_a_second_run_with_what_it_waits() {
    let recorded = Recorded::new();
    let (curve, _) = recorded.curve(&format!("wait {}", recorded.path("read")), &[]);
    let [cpu_s, wall_s] = ["native_cpu_s", "native_wall_s"].map(|key| curve[key].as_f64().unwrap());
    assert!(
        (0.3..3.0).contains(&wall_s) && cpu_s < wall_s - 0.2,
        "{cpu_s} {wall_s}"
    );
    let file = recorded.path("curve");
    let options = ["--local", "512KiB", "--technology", "tcp-25gbe", "--json"];
    let predicted = json(&told(
        &[&["curve", "predict", &file][..], &options].concat(),
    ));
    let predicted = &predicted["predictions"][0];
    let faults = predicted["faults_count"].as_f64().unwrap();
    let slowdown = predicted["slowdown"].as_f64().unwrap();
    let us_per_fault = (slowdown - 1.0) * wall_s * 1e6 / faults;
    assert!(
        faults > 1000.0 && (34.0..40.0).contains(&us_per_fault),
        "{us_per_fault} {predicted}"
    );
}

#[test]
fn a_curve_is_shown_and_predicts() {
    let recorded = Recorded::new();
    let (curve, _) = recorded.curve("walk", &[]);
    assert!(curve["peak_bytes"].as_u64().unwrap() > 4 << 20);
    let points = faults(&curve);
    assert!(points.windows(2).all(|pair| pair[0].1 >= pair[1].1));
    assert_eq!(points.first().unwrap().0, 32);
    let file = recorded.path("curve");
    let shown = told(&[
        "curve",
        "show",
        &file,
        "--page",
        &recorded.path("show.html"),
    ]);
    assert!(
        shown.contains("write-backs") && shown.contains("50 %") && shown.contains("10 ms"),
        "{shown}"
    );
    let said = told(&[
        "curve",
        "predict",
        &file,
        "--local",
        "2MiB,75%",
        "--page",
        &recorded.path("predict.html"),
    ]);
    let sentence = "program: with 2.0 MiB local and the rest lent it would run ";
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with(sentence))
            .count(),
        10,
        "{said}"
    );
    assert!(
        said.contains("assumed figures, not measured here") && said.contains("--of misses"),
        "{said}"
    );
    for page in ["show.html", "predict.html"] {
        let html = fs::read_to_string(recorded.path(page)).unwrap();
        assert!(
            html.contains("What would the program lose with less local memory?"),
            "{page}"
        );
    }

    let predicted = json(&told(&[
        "curve",
        "predict",
        &file,
        "--local",
        "2MiB",
        "--processes",
        "3",
        "--json",
    ]));
    for (document, form) in [(&curve, "curve"), (&predicted, "predictions")] {
        let schema = json(&told(&["schema", "--as", form]));
        let keys =
            |of: &Value| -> Vec<String> { of.as_object().unwrap().keys().cloned().collect() };
        assert_eq!(keys(&schema["properties"]), keys(document));
    }
    let all = predicted["predictions"].as_array().unwrap();
    for prediction in all {
        let number = |key: &str| prediction[key].as_f64().unwrap();
        assert!(
            1.0 <= number("low")
                && number("low") <= number("slowdown")
                && number("slowdown") <= number("high")
        );
    }
}

#[test]
fn wrong_input_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| -> String {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let seed =
        fs::read_to_string(gleaner_tests::repository().join("fuzz/corpus/curve/curve")).unwrap();
    let curve = path("good.curve", seed.trim_start_matches('0'));
    let torn = path("torn.curve", &seed[1..seed.len() / 2]);
    let rising = path(
        "rising.curve",
        &seed[1..].replace("\"reuse_count\":100,", "\"reuse_count\":500,"),
    );
    let technology = path("mine.toml", "label = \"x\"\nlink_mbit_per_s = -3\n");
    let out = folder.path().join("o").display().to_string();
    let missing_folder = Path::new("/missing/o").display().to_string();
    for (args, code, found) in [
        (
            vec!["curve", "show", torn.as_str()],
            1,
            "torn.curve: this is no curve: EOF while parsing",
        ),
        (
            vec!["curve", "show", rising.as_str()],
            1,
            "rising.curve: faults[1].reuse_count rises with the memory",
        ),
        (vec!["curve", "show", "/missing"], 1, "cannot open /missing"),
        (
            vec![
                "curve",
                "predict",
                curve.as_str(),
                "--local",
                "50%",
                "--technology",
                technology.as_str(),
            ],
            1,
            "line 2",
        ),
        (
            vec![
                "curve",
                "predict",
                curve.as_str(),
                "--local",
                "50%",
                "--technology",
                "steam",
            ],
            1,
            "there is no technology steam",
        ),
        (
            vec!["curve", "predict", curve.as_str(), "--local", "4KiB"],
            1,
            "the curve begins at 128.0 KiB",
        ),
        (
            vec![
                "curve",
                "predict",
                curve.as_str(),
                "--local",
                "50%",
                "--technology",
                "cxl-direct",
            ],
            1,
            "--of misses",
        ),
        (
            vec!["curve", "predict", curve.as_str(), "--local", "150%"],
            2,
            "is no size",
        ),
        (vec!["curve", "predict", curve.as_str()], 2, "--local"),
        (
            vec!["curve", "record", "-o", out.as_str(), "--", "/missing"],
            1,
            "there is no program /missing",
        ),
        (
            vec![
                "curve",
                "record",
                "-o",
                missing_folder.as_str(),
                "--",
                "true",
            ],
            1,
            "there is no such folder",
        ),
        (vec!["curve", "record", "-o", out.as_str()], 2, "--stream"),
        (
            vec![
                "curve",
                "record",
                "-o",
                out.as_str(),
                "--of",
                "misses",
                "--cache",
                "5000",
                "--",
                "true",
            ],
            1,
            "no power of two",
        ),
    ] {
        let done = gleaner(&args);
        let said = complaint(&done);
        assert_eq!(done.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(found), "{args:?}: {said}");
    }
    assert!(!Path::new(&out).exists());
}
