//! Inputs of scenario files: datasets, whose hosts are servers, and curves of programs.

use super::*;
use crate::hosts::{Change, Timeline};
use gleaner_schemas::curve::{Curve, FaultPoint};
use gleaner_schemas::lending::Mode;

#[test]
fn a_curve_gives_the_rates_of_a_client() {
    let point = |memory_pages, reuse_count, write_backs_count| FaultPoint {
        memory_pages,
        reuse_count,
        write_backs_count,
    };
    let curve = Curve {
        native_cpu_s: 2.0,
        footprint_pages: 100,
        faults: vec![point(25, 900, 90), point(50, 400, 40), point(100, 0, 0)],
        ..Curve::default()
    };
    let scenario = Scenario::default().with_curve(&curve, 0.5);
    assert_eq!(
        (scenario.page_ins_per_s, scenario.page_outs_per_s),
        (200.0, 20.0)
    );
    assert_eq!(scenario.client_pages, [50]);
}

#[test]
fn recorded_hosts_change_room() {
    let host = Timeline::always_idle("a", 4_096 * 100);
    let change = |server, pages| RoomChange {
        server,
        at_ms: 0,
        pages,
    };
    let hosts = [host.clone(), host];
    let found = room_changes(&hosts, Mode::Paper, 1_000);
    assert_eq!(found, [change(0, 100), change(1, 100)]);
    assert_eq!(room_changes(&hosts[..1], Mode::Paper, 30), [change(0, 30)]);
}

#[test]
fn a_host_has_room_only_from_its_first_sample_on() {
    let mut host = Timeline::always_idle("a", 4_096 * 100);
    host.changes[0].at_ns = 3_000_000_000;
    let again = Change {
        at_ns: 4_000_000_000,
        ..host.changes[0]
    };
    host.changes.push(again);
    let change = |at_ms, pages| RoomChange {
        server: 0,
        at_ms,
        pages,
    };
    let found = room_changes(&[host], Mode::Paper, 1_000);
    assert_eq!(found, [change(0, 0), change(3_000, 100)]);

    // The pages of a client are on its disk until the server has room.
    let scenario = Scenario {
        clients: 1,
        client_pages: vec![10],
        servers: 1,
        owners: found,
        length_ms: 5_000,
        ..Scenario::default()
    };
    let outcome = simulate(&scenario, 1).unwrap();
    assert_eq!((outcome.returns.len(), outcome.lost_pages), (0, 0));
    assert_eq!(outcome.lost_with_one_pages, 0);
}

#[test]
fn each_curve_of_a_file_gives_rows_of_its_own() {
    let text = "system = 'servers'\ncolumns = ['p50_us']\n\
                [curves]\nfast = 'fast.curve'\nslow = 'slow.curve'\n\
                [scenario]\nclients = 1\nlength_ms = 2000\n\
                [sweep]\nlocal_share = [0.25, 0.5]";
    let file = ScenarioFile::parse(text).unwrap();
    assert_eq!(file.keys(), ["curve", "local_share"]);
    let curve = |native_cpu_s| Curve {
        native_cpu_s,
        page_bytes: PAGE_BYTES,
        footprint_pages: 400,
        faults: [(100, 900), (200, 300), (400, 0)]
            .map(|(memory_pages, reuse_count)| FaultPoint {
                memory_pages,
                reuse_count,
                write_backs_count: 0,
            })
            .to_vec(),
        ..Curve::default()
    };
    let mut inputs = Inputs::default();
    inputs.curves.insert("fast".to_owned(), curve(1.0));
    inputs.curves.insert("slow".to_owned(), curve(10.0));
    let threads = NonZeroUsize::MIN;
    let found = rows(&file, &inputs, threads, &|_| {}).unwrap();
    let settings: Vec<String> = found.iter().map(|row| row.settings.join(" ")).collect();
    assert_eq!(settings, ["fast 0.25", "fast 0.5", "slow 0.25", "slow 0.5"]);
    let cases = file.cases().unwrap();
    assert_eq!(cases[2].curve.as_deref(), Some("slow"));

    // Without page-ins, with other pages, and without the curve there is nothing to simulate.
    let refused = |inputs: &Inputs, file: &ScenarioFile| {
        let refused = rows(file, inputs, threads, &|_| {});
        refused.unwrap_err().to_string()
    };
    let all_local = text.replace("[0.25, 0.5]", "[1.0]");
    let all_local = ScenarioFile::parse(&all_local).unwrap();
    assert!(refused(&inputs, &all_local).contains("page_ins_per_s = 0"));
    let other_pages = Curve {
        page_bytes: 8_192,
        ..curve(1.0)
    };
    inputs.curves.insert("slow".to_owned(), other_pages);
    assert!(refused(&inputs, &file).contains("curve slow has pages of 8192 bytes"));
    assert!(refused(&Inputs::default(), &file).contains("curve fast is not read"));
}

#[test]
fn settings_of_datasets_and_curves_need_them_and_replace_others() {
    let with = |rest: &str| format!("system = 'servers'\n{rest}");
    let (datasets, curves) = (
        "[datasets]\nlab = 'lab'\n",
        "[curves]\nsort = 'sort.curve'\n",
    );
    for (text, expected) in [
        (with("[scenario]\nrecorded.mode = 'spare'"), "[datasets]"),
        (with("[sweep]\nrecorded.mode = ['spare']"), "[datasets]"),
        (with("from = 2026-11-16"), "from"),
        (with("[scenario]\nlocal_share = 0.25"), "[curves]"),
        (
            with(&format!(
                "{datasets}[scenario]\nowners = [{{ server = 0, at_ms = 5, pages = 0 }}]"
            )),
            "come from the datasets",
        ),
        (
            with(&format!("{datasets}[sweep]\nservers = [2, 3]")),
            "come from the datasets",
        ),
        (
            with(&format!("{curves}[sweep]\npage_ins_per_s = [2]")),
            "comes from the curves",
        ),
        (
            with("[scenario]\nrecorded.headroom_share = 2"),
            "recorded.headroom_share = 2",
        ),
        (
            with(&format!("{datasets}[sweep]\nrecorded.mood = ['spare']")),
            "mood",
        ),
    ] {
        let error = ScenarioFile::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    let both = with(&format!(
        "from = 2026-11-16\n{datasets}{curves}[sweep]\nlength_ms = [1000, 9000]\nrecorded.mode = ['spare']"
    ));
    let file = ScenarioFile::parse(&both).unwrap();
    assert_eq!(
        file.keys(),
        ["dataset", "curve", "length_ms", "recorded.mode"]
    );
    assert_eq!(file.longest_ms().unwrap(), 9_000);
    assert_eq!(
        file.cases().unwrap()[0].values,
        ["lab", "sort", "1000", "spare"]
    );
}
