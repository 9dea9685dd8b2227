//! Scenario files: shipped ones, and faulty ones, which are refused by line.

use super::*;

#[test]
fn shipped_scenarios_can_be_run() {
    for (name, text) in SHIPPED {
        assert!(ScenarioFile::is_of_gms(text), "{name}");
        let file = ScenarioFile::parse(text).unwrap();
        assert!(!file.about.is_empty() && file.about.len() < 120, "{name}");
        assert!(runs(&file).unwrap() > 20, "{name}");
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
