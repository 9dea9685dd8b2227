//! Tests of scenario files, keys, combinations and threads.

mod clients;
mod parts;

use super::*;
use crate::applications::Application;
use crate::dodo::Scenario;
use crate::event::{DAY, HOUR};
use crate::parallel::each;
use gleaner_policy::placement::Placement;
use gleaner_schemas::lending::Mode;
use std::num::NonZeroUsize;

fn plan(text: &str) -> Result<Plan, SweepError> {
    Plan::new(&ScenarioFile::parse(text)?, vec!["A".to_owned()])
}

#[track_caller]
fn refused(text: &str) -> String {
    plan(text).unwrap_err().to_string()
}

#[test]
fn whatever_is_left_out_is_the_study() {
    let plan = plan("").unwrap();
    let programs: Vec<Workload> = plan.cases.iter().map(|c| c.program).collect();
    assert_eq!(programs, Application::STUDY.map(Workload::Program));
    assert_eq!((plan.seeds.as_slice(), plan.length_ns), (&[1][..], 7 * DAY));
    let study = Scenario::default();
    assert_eq!(plan.cases[0].scenario, study);
}

#[test]
fn settings_are_the_scenario_s_and_sweeps_go_over_them() {
    let text = "
        programs = ['lu', 'random']
        days = 0.5
        seeds = [7, 8]
        [scenario]
        remote.region_bytes = 65536
        recruitment.mode = 'gentle'
        [sweep]
        recruitment.headroom_share = [0, 0.25]
        'remote.placement' = ['spread', 'stick', 'random']
    ";
    let plan = plan(text).unwrap();
    assert_eq!(
        plan.keys,
        ["recruitment.headroom_share", "remote.placement"]
    );
    assert_eq!((plan.cases.len(), plan.runs()), (2 * 2 * 3, 24));
    assert_eq!(plan.length_ns, 12 * HOUR);
    let of_program: Vec<&[String]> = plan.cases[..6].iter().map(|c| &c.settings[..]).collect();
    let expected = [
        ["0", "spread"],
        ["0", "stick"],
        ["0", "random"],
        ["0.25", "spread"],
        ["0.25", "stick"],
        ["0.25", "random"],
    ];
    assert_eq!(of_program, expected);
    let last = plan.cases.last().unwrap();
    assert_eq!(last.program, Workload::Program(Application::Random));
    let scenario = &last.scenario;
    assert_eq!(scenario.application, Application::Random);
    assert_eq!(scenario.remote.placement.0, Placement::Random);
    assert_eq!(scenario.remote.region_bytes, 65_536);
    assert_eq!(scenario.recruitment.mode, Mode::Gentle);
    assert_eq!(scenario.recruitment.headroom_share, 0.25);
    assert_eq!(plan.cases[1].scenario.remote.placement.0, Placement::Stick);
    assert_eq!(
        plan.words(last),
        "random on A, recruitment.headroom_share = 0.25, remote.placement = random"
    );
}

#[test]
fn every_policy_that_there_is_can_be_swept() {
    let placements = Placement::ALL.map(Placement::name).join(",");
    let mut file = ScenarioFile::parse("programs = ['lu']").unwrap();
    file.set_sweep("placement=random".parse().unwrap());
    file.set_sweep(format!("placement={placements}").parse().unwrap());
    file.set_sweep("retention=first-in,fifo,lru".parse().unwrap());
    file.set_sweep("mode=paper,gentle,spare".parse().unwrap());
    file.set_sweep("lost_region=drop_host,drop_region".parse().unwrap());
    let plan = Plan::new(&file, vec!["A".to_owned()]).unwrap();
    assert_eq!(plan.cases.len(), 7 * 3 * 3 * 2);
    assert_eq!(plan.keys[0], "remote.placement");
}

#[test]
fn what_is_learnt_first_is_told_once_for_all_cases_that_share_it() {
    let mut file = ScenarioFile::parse("programs = ['lu', 'db2']").unwrap();
    let names = vec!["A".to_owned(), "B".to_owned()];
    let forecasts = |file: &ScenarioFile| {
        let plan = Plan::new(file, names.clone()).unwrap();
        plan.forecasts(&plan.runs_of_part(1, 1))
    };
    assert_eq!(forecasts(&file), []);
    file.set_sweep("mode=paper,gentle".parse().unwrap());
    file.set_sweep("expected_for_s=0,600,3600".parse().unwrap());
    file.set_sweep("confidence=0.5,0.9".parse().unwrap());
    let places =
        |found: &[(usize, ForecastInputs)]| found.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(places(&forecasts(&file)), [0, 1]);
    // Each pair of these values needs its own forecast: `idle_after_s` changes the idle rule, and the time
    // zone changes when a week begins.
    file.set_sweep("idle_after_s=0,300".parse().unwrap());
    file.set_sweep("recruitment.time_zone=UTC,Europe/Berlin".parse().unwrap());
    let found = forecasts(&file);
    assert_eq!(places(&found), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(found[0].1.idle.idle_after_ms, 0);
    assert_eq!(found[1].1.time_zone.to_string(), "Europe/Berlin");
}

#[test]
fn on_a_command_line_values_are_numbers_truths_or_text() {
    let swept: SweptKey = "recruitment.is_always_idle = true, 1.5,3,paper"
        .parse()
        .unwrap();
    let kinds: Vec<&str> = swept.values.iter().map(toml::Value::type_str).collect();
    assert_eq!(swept.key, "recruitment.is_always_idle");
    assert_eq!(kinds, ["boolean", "float", "integer", "string"]);
    for wrong in ["placement", "placement=", "placement=,"] {
        let error = wrong.parse::<SweptKey>().unwrap_err().to_string();
        assert!(error.contains("KEY=VALUE"), "{error}");
    }
    let two = "bytes_per_s=1".parse::<SweptKey>();
    assert!(two.is_ok(), "network's alone is called so: {two:?}");
}

#[test]
fn what_is_wrong_is_named_with_its_value() {
    for (text, words) in [
        (
            "[sweep]\nremote.placment = ['random']",
            &["remote.placment = random", "`placement`"][..],
        ),
        (
            "[sweep]\nremote.placement = ['randm']",
            &["remote.placement = randm", "longest-available"],
        ),
        (
            "[sweep]\nplacement = [3]",
            &["remote.placement = 3", "string"],
        ),
        (
            "[sweep]\nnowhere.at.all = [1]",
            &["nowhere.at.all = 1", "`nowhere`"],
        ),
        ("[sweep]\nremote = [1]", &["remote = 1"]),
        (
            "[sweep]\nremote.placement = 'random'",
            &["remote.placement", "a list"],
        ),
        (
            "[sweep]\nremote.placement = []",
            &["remote.placement", "a list"],
        ),
        (
            "[sweep]\nnetwork.latency_ns = [-1]",
            &["network.latency_ns = -1"],
        ),
        (
            "[sweep]\nheadroom_share = [0.1, 1.5]",
            &["recruitment.headroom_share = 1.5", "from 0 to 1"],
        ),
        (
            "[sweep]\nidle_after_s = [nan]",
            &["recruitment.idle_after_s = NaN"],
        ),
        (
            "[sweep]\npage_in_bytes = [0]",
            &["recruitment.page_in_bytes = 0", "more than 0"],
        ),
        ("[sweep]\nseed = [1, 2]", &["seed", "`seeds`"]),
        ("[sweep]\nlength_ns = [1]", &["length_ns", "`days`"]),
        (
            "[scenario]\napplication = 'lu'",
            &["application", "`programs`"],
        ),
        (
            "[scenario]\nremote.placment = 'random'",
            &["[scenario]", "`placment`"],
        ),
        ("progams = ['lu']", &["line 1", "`progams`", "`programs`"]),
        ("programs = ['emacs']", &["line 1", "`emacs`", "`hotcold`"]),
        ("programs = []", &["no program"]),
        ("seeds = []", &["no seed"]),
        ("days = 0", &["days = 0", "more than 0"]),
        ("days = nan", &["days = NaN"]),
        ("from = 'monday'", &["from = monday", "RFC 3339"]),
    ] {
        let said = refused(text);
        for word in words {
            assert!(said.contains(word), "{text}\n{said}\nlacks {word}");
        }
    }
    let none = Plan::new(&ScenarioFile::parse("").unwrap(), Vec::new());
    assert!(none.unwrap_err().to_string().contains("--dataset"));
}

#[test]
fn a_begin_stands_with_or_without_quotes() {
    for from in ["1998-09-14", "'1998-09-14'", "'905731200000'"] {
        let file = ScenarioFile::parse(&format!("from = {from}")).unwrap();
        let ms = gleaner_dataset::instant_ms(&file.from.unwrap());
        assert_eq!(ms, Some(905_731_200_000), "{from}");
    }
}

#[test]
fn shipped_scenarios_can_be_run() {
    for shipped in SHIPPED {
        let file = ScenarioFile::parse(shipped.text).unwrap();
        assert!(!file.about.is_empty() && file.about.len() < 120);
        assert_eq!(file.datasets.len(), 2, "{}", shipped.name);
        let names = file.datasets.keys().cloned().collect();
        let plan = Plan::new(&file, names).unwrap();
        assert!(plan.runs() > 7, "{}", shipped.name);
        assert_eq!(
            ShippedScenario::named(shipped.name).map(|s| s.text),
            Some(shipped.text)
        );
    }
}

#[test]
fn the_first_error_is_told_however_many_threads_there_are() {
    let items: Vec<u32> = (0..100).collect();
    for threads in [1, 2, 7] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let twice = each(threads, &items, |i| Ok::<u32, ()>(2 * i));
        assert_eq!(twice, Ok((0..100).map(|i| 2 * i).collect()));
        let failed = each(
            threads,
            &items,
            |i| if i % 10 == 3 { Err(*i) } else { Ok(()) },
        );
        assert_eq!(failed, Err(3));
    }
}
