//! Tests of the study's programs and hosts: calibrated compute times match their targets, and a synthetic
//! cluster is simulated all the way from dataset to outcome.
#![allow(clippy::unwrap_used)]

use gleaner_dataset::Dataset;
use gleaner_schemas::lending::Mode;
use gleaner_simulator::applications::Application;
use gleaner_simulator::calibrate;
use gleaner_simulator::dodo::{Borrower, Scenario, reference, simulate, simulate_clients};
use gleaner_simulator::event::{DAY, HOUR};
use gleaner_simulator::hosts::{Presence, Timeline, read};
use gleaner_simulator::streams::read::{BlockBytes, Format, open};
use gleaner_simulator::streams::{StoredObjects, replayed};
use gleaner_traces::published;
use gleaner_traces::synth::{Cluster, Parameters, Preset, write};

const DAY_MS: i64 = 86_400_000;

fn ideal_of_the_study(application: Application) -> f64 {
    let published = published::acharya_setia().unwrap();
    let figure = published.get("Table 5", application.name(), "ideal");
    figure.unwrap().paper
}

#[test]
fn times_to_compute_give_the_ideal_speedups_that_they_were_calibrated_to() {
    let scenario = Scenario::default();
    for application in [Application::Dmine, Application::Db2, Application::Lu] {
        let program = application.thinking(application.think_ns());
        let [baseline_ns, ideal_ns] = reference(&scenario, &program).unwrap();
        let ours = baseline_ns as f64 / ideal_ns as f64;
        let paper = ideal_of_the_study(application);
        assert!(
            (ours - paper).abs() < 0.005,
            "{application}: {ours} {paper}"
        );
    }
}

#[test]
fn calibration_finds_what_is_built_in() {
    let lu = Application::Lu;
    let found = calibrate(lu, ideal_of_the_study(lu), &Scenario::default()).unwrap();
    let ratio = found.unwrap() as f64 / lu.think_ns() as f64;
    assert!((ratio - 1.0).abs() < 0.005, "{ratio}");
    let too_much = calibrate(lu, 1e9, &Scenario::default()).unwrap();
    assert_eq!(too_much, None);
}

/// Hosts of the study's smaller cluster for three days, of which the second and third are simulated.
fn hosts() -> Vec<Timeline> {
    let folder = tempfile::tempdir().unwrap();
    let parameters = Parameters {
        days: 3,
        hosts: 6,
        ..Parameters::of_preset(Preset::AcharyaSetiaB, 7).unwrap()
    };
    let dataset = folder.path().join("dataset");
    write(&Cluster::new(&parameters).unwrap(), &dataset, |_| {}).unwrap();
    let begin_ms = parameters.start_ms + DAY_MS;
    let reading = Scenario::default()
        .recruitment
        .reading(begin_ms, begin_ms + 2 * DAY_MS);
    read(&Dataset::open(&dataset).unwrap(), &reading).unwrap()
}

#[test]
fn a_synthetic_cluster_lends_and_its_owners_return() {
    let hosts = hosts();
    assert_eq!(hosts.len(), 6);
    for host in &hosts {
        assert!(host.changes.windows(2).all(|c| c[0].at_ns < c[1].at_ns));
        assert!(host.changes.iter().all(|c| c.at_ns <= 2 * DAY));
        let most = host.physical_bytes - host.physical_bytes * 15 / 100;
        for change in &host.changes {
            let lent = change.quotas.bytes(Mode::Paper);
            assert!(lent <= most);
            assert!(lent == 0 || change.presence == Presence::Idle);
        }
        for (i, back) in host.returns.iter().enumerate() {
            let told = host.changes.iter().find(|c| c.returned == Some(i as u32));
            assert_eq!(told.map(|c| c.at_ns), Some(back.at_ns));
            let wanted = back.wanted.unwrap();
            assert!(wanted.demand.footprint_bytes > 0);
            assert!(wanted.demand.physical_bytes == host.physical_bytes);
        }
    }
    let idle_ns: u64 = hosts.iter().map(|host| host.idle_ns(2 * DAY)).sum();
    assert!(idle_ns > 6 * 8 * HOUR, "{idle_ns}");
    assert!(hosts.iter().any(|host| !host.returns.is_empty()));
}

#[test]
fn two_days_of_lu_gain_something_and_the_same_seed_gives_the_same() {
    let hosts = hosts();
    let scenario = Scenario {
        application: Application::Lu,
        length_ns: 2 * DAY,
        ..Scenario::default()
    };
    let outcome = simulate(&scenario, &hosts).unwrap();
    assert!(outcome.speedup > 1.0 && outcome.speedup < outcome.ideal_speedup);
    assert!(outcome.counts.remote_requests_count > 0 && outcome.owners.reclaims > 0);
    assert_eq!(outcome, simulate(&scenario, &hosts).unwrap());
    let json = serde_json::to_string(&outcome).unwrap();
    assert!(json.contains("\"gain_share\""));
}

/// Results of a seed as first recorded: making the simulator faster must not change them.
#[test]
fn a_seed_gives_what_it_gave() {
    let hosts = hosts();
    let golden = [
        (
            Application::Dmine,
            [333_036_922_093, 0, 30_802, 3_928_294, 210, 102],
        ),
        (
            Application::Db2,
            [1_540_068_451_912, 76_990, 18_910, 2_884_141, 290, 150],
        ),
        (
            Application::Lu,
            [1_663_527_917_192, 18_228, 4_073, 50_494, 266, 99],
        ),
        (
            Application::Hotcold,
            [4_149_363_791_302, 319_581, 21_698, 566_780, 234, 103],
        ),
        (
            Application::Random,
            [4_756_639_951_498, 92_205, 9_940, 690_906, 242, 102],
        ),
    ];
    for (application, expected) in golden {
        let scenario = Scenario {
            application,
            length_ns: 4 * HOUR,
            reference_runs: 1,
            ..Scenario::default()
        };
        let outcome = simulate(&scenario, &hosts).unwrap();
        let (counts, regions) = (outcome.counts, outcome.regions);
        let found = [
            outcome.run_ns,
            counts.local_requests_count,
            counts.remote_requests_count,
            counts.disk_requests_count,
            regions.stored_count,
            regions.dropped_by_client_count,
        ];
        assert_eq!(found, expected, "{application}");
    }
}

#[test]
fn clients_of_a_recorded_stream_borrow_from_a_cluster_at_once() {
    let hosts = hosts();
    // Two clients (ASUs) read 8 MiB of their volumes three times, one block of 8 KiB per second.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.spc");
    let line = |at: u64| {
        let lba = at % 1024 * 16;
        format!(
            "0,{lba},8192,R,{at}.0\n1,{},8192,R,{at}.5\n",
            lba + 1_000_000
        )
    };
    std::fs::write(&file, (0..3 * 1024).map(line).collect::<String>()).unwrap();
    let block = BlockBytes::new(8192).unwrap();
    let stream = open(&file, &Format::Spc(block), 0).unwrap();
    let mut scenario = Scenario {
        length_ns: 2 * DAY,
        ..Scenario::default()
    };
    scenario.client.local_cache_bytes = 0;
    let programs = replayed(
        stream,
        StoredObjects::AsVolume(block),
        scenario.remote.region_bytes,
    );
    let clients: Vec<_> = (programs.unwrap().into_iter().zip(&hosts))
        .map(|(program, host)| Borrower {
            name: format!("ASU {}", program.client().number()),
            host_id: Some(host.host_id.clone()),
            begin_ns: program.begin_ns() + 10 * HOUR,
            program,
        })
        .collect();
    let outcome = simulate_clients(&scenario, &clients, &hosts).unwrap();
    assert_eq!(
        (clients.len(), outcome.counts.requests_count),
        (2, 2 * 3 * 1024)
    );
    for (told, client) in outcome.clients.iter().zip(&clients) {
        assert_eq!((&told.name, &told.host_id), (&client.name, &client.host_id));
        assert!(
            told.end_ns.is_some() && told.counts.remote_requests_count > 0,
            "{told:?}"
        );
        let answers = told.counts.local_requests_count
            + told.counts.remote_requests_count
            + told.counts.disk_requests_count;
        assert_eq!((answers, told.counts.requests_count), (3 * 1024, 3 * 1024));
    }
    assert_eq!(
        outcome,
        simulate_clients(&scenario, &clients, &hosts).unwrap()
    );
}
