//! Scenario files: shipped ones, and faulty ones, which are refused by line.

use super::*;

#[test]
fn shipped_scenarios_can_be_run() {
    for (name, text) in SHIPPED {
        assert!(ScenarioFile::is_of_gms(text), "{name}");
        let file = ScenarioFile::parse(text).unwrap();
        assert!(!file.about.is_empty() && file.about.len() < 120, "{name}");
        assert!(runs(&file).unwrap() >= 8, "{name}");
        assert!(!file.keys().is_empty(), "{name}");
    }
}

#[test]
fn files_of_other_systems_are_told_apart() {
    for text in [
        "",
        "about = 'system = gms'",
        "[scenario]\nsystem = 'gms'",
        "system = 'dodo'",
    ] {
        assert!(!ScenarioFile::is_of_gms(text), "{text}");
    }
    assert!(ScenarioFile::is_of_gms("about = 'x'\n system='gms' # GMS"));
}

#[test]
fn faulty_files_are_refused_by_line() {
    let head = "system = 'gms'\n";
    for (text, expected) in [
        ("about = 'no system'", "missing field `system`"),
        ("system = 'gmss'", "line 1"),
        ("system = 'gms'\nsead = [1]", "line 2"),
        ("system = 'gms'\n[scenario]\npolicy = 'lru'", "line 3"),
        ("system = 'gms'\n[scenario]\nclients = -1", "line 3"),
        (
            "system = 'gms'\n[scenario]\n\nclients = 0",
            "line 4: clients = 0",
        ),
        (
            "system = 'gms'\n[scenario]\nclients = 20000",
            "line 3: clients = 20000",
        ),
        (
            "system = 'gms'\n[scenario]\nrich_percent = nan",
            "line 3: rich_percent",
        ),
        (
            "system = 'gms'\n[scenario]\nprograms = []",
            "line 3: programs = 0",
        ),
        (
            "system = 'gms'\n[scenario.costs]\nlink_ns = 2000000",
            "line 3: costs.link_ns",
        ),
        ("system = 'gms'\n[scenario.costs]\nspeed = 1", "line 3"),
        ("system = 'gms'\n[sweep]\nboost = [1]", "sweep of boost"),
        (
            "system = 'gms'\n[scenario]\nowners = [{ node = 8, at_ms = 0, frames = 1 }]",
            "line 3: owners = 8",
        ),
        (
            "system = 'gms'\n[sweep]\nboost_quarters = 5",
            "write a list",
        ),
        (
            "system = 'gms'\n[sweep]\nboost_quarters = []",
            "write a list",
        ),
        (
            "system = 'gms'\n[sweep]\nboost_quarters = ['five']",
            "sweep of boost_quarters",
        ),
        (
            "system = 'gms'\n[sweep]\nboost_quarters = [5, 0]",
            "boost_quarters = 0",
        ),
        (
            "system = 'gms'\nseeds = []\n[sweep]\nchances = [2]",
            "0 runs",
        ),
        ("system = 'gms'\n[scenario", "line 2"),
        ("system = 'gms'\nfrom = 'noon'", "line 2"),
        ("system = 'gms'\ndays = 0", "line 2: days = 0"),
        (
            "system = 'gms'\nnodes_per_client = 0",
            "line 2: nodes_per_client = 0",
        ),
        (
            "system = 'gms'\n[scenario]\nframe_bytes = 10000",
            "line 3: frame_bytes = 10000",
        ),
        (
            "system = 'gms'\n[scenario]\nframe_bytes = 4096",
            "line 3: frame_bytes = 4096",
        ),
        (
            "system = 'gms'\n[datasets]\nA = 'A'\n[scenario.recorded]\nlent_share = 1.5",
            "line 5: recorded.lent_share = 1.5",
        ),
        (
            "system = 'gms'\n[datasets]\nA = 'A'\n[scenario.recorded]\nlent = 1",
            "line 5",
        ),
        (
            "system = 'gms'\n[datasets]\nA = 'A'\n[scenario]\nhas_bystanders = true",
            "line 5: has_bystanders = true: recorded hosts have owners",
        ),
        (
            "system = 'gms'\n[scenario.recorded]\nlent_share = 0.5",
            "line 2: recorded",
        ),
        (
            "system = 'gms'\n[sweep]\nrecorded.lent_share = [0.5]",
            "write a table [datasets]",
        ),
        (
            "system = 'gms'\n[datasets]\nA = 'A'\n[sweep]\nrich_nodes = [1]",
            "rich_nodes = 1",
        ),
    ] {
        let error = ScenarioFile::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
    ScenarioFile::parse(head).unwrap();
}

#[test]
fn values_to_try_can_be_added() {
    let mut file = ScenarioFile::parse("system = 'gms'").unwrap();
    assert_eq!(file.cases().unwrap().len(), 1);
    file.set_sweep("boost_quarters", vec![4.into(), 5.into()])
        .unwrap();
    file.set_sweep("costs.link_ns", vec![0.into()]).unwrap();
    assert_eq!(file.keys(), ["boost_quarters", "costs.link_ns"]);
    let cases = file.cases().unwrap();
    assert_eq!(cases.len(), 2);
    assert_eq!(
        (
            cases[0].scenario.boost_quarters,
            cases[0].scenario.costs.link_ns
        ),
        (4, 0)
    );
    assert!(
        file.set_sweep("boost_quarters.high", vec![1.into()])
            .is_err()
    );
}

#[test]
fn settings_of_hash_are_varied_under_hash_alone() {
    let text = "system = 'gms'\n[sweep]\nis_exclusive = [false, true]\npolicy = ['gms', 'hash', 'none']\n\
                programs = [['oo7', 'render'], ['shared-reader']]";
    let cases = ScenarioFile::parse(text).unwrap().cases().unwrap();
    let values: Vec<String> = cases.iter().map(|case| case.values.join(" ")).collect();
    assert_eq!(
        values,
        [
            "– gms oo7+render",
            "– gms shared-reader",
            "false hash oo7+render",
            "false hash shared-reader",
            "– none oo7+render",
            "– none shared-reader",
            "true hash oo7+render",
            "true hash shared-reader",
        ]
    );
}

#[test]
fn datasets_are_a_setting_of_their_own() {
    let text = "system = 'gms'\nnodes_per_client = 4\nfrom = 2026-11-16\n[datasets]\nA = 'a'\nB = 'b'\n\
                [sweep]\nidle_nodes = [2, 12]";
    let file = ScenarioFile::parse(text).unwrap();
    assert_eq!(file.keys(), ["dataset", "idle_nodes"]);
    assert_eq!(file.from.as_deref(), Some("2026-11-16"));
    assert_eq!(file.length_ns(), crate::event::DAY / 2);
    let cases = file.cases().unwrap();
    let of = |case: &Case| {
        let dataset = case.dataset.clone().unwrap_or_default();
        (dataset, case.values.join(" "), case.scenario.clients)
    };
    let a = |values: &str, clients| ("A".to_owned(), values.to_owned(), clients);
    assert_eq!([of(&cases[0]), of(&cases[1])], [a("A 2", 1), a("A 12", 3)]);
    assert_eq!(cases.len(), 4);
    let threads = std::num::NonZeroUsize::MIN;
    let error = rows(&file, &[], threads, &|_| {}).unwrap_err().to_string();
    assert!(error.contains("dataset A is not open"), "{error}");
}
