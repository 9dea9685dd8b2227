//! Tests scenarios worked by hand, and properties that hold for any scenario.
//!
//! The client of these tests has simple times: a disk takes 1 ns per byte; the network 0.1 ns per byte and 5
//! ns per message; seeks, rotation and the string take no time.

mod shared;

use super::simulate::{Runs, engine};
use super::*;
use crate::Request;
use crate::applications::{Layout, Program};
use crate::dodo::client::Geometry;
use crate::dodo::cluster::Cluster;
use crate::dodo::owners::PageIn;
use crate::event::{DAY, SECOND};
use crate::hosts::{
    Cause, Change, ModeQuotas, Presence, RecordedSample, Return, ReturnMemory, Timeline,
};
use gleaner_policy::eviction::Policy;
use gleaner_policy::idle::Verdict;
use gleaner_policy::memory_context::Demand;
use gleaner_policy::placement::Placement;
use gleaner_schemas::lending::{Mode, SLAB_BYTES};
use proptest::prelude::*;

/// Room for several regions; the manager grants whole slabs of 2 MiB.
const ROOM: u64 = 64 << 20;

/// A program that makes exactly these requests.
#[derive(Clone, Debug)]
struct FixedProgram {
    requests: Vec<Request>,
    processes: u32,
    keeps_regions: bool,
    files: u32,
}

impl FixedProgram {
    /// Program of one process that reads these blocks of 100 bytes; a region has ten blocks.
    fn reading(blocks: &[u64], think_ns: u64) -> Self {
        let request = |&object| Request {
            object,
            bytes: 100,
            is_write: false,
            think_ns,
        };
        Self {
            requests: blocks.iter().map(request).collect(),
            processes: 1,
            keeps_regions: false,
            files: 2,
        }
    }
}

impl Program for FixedProgram {
    type Stream = std::vec::IntoIter<Request>;

    fn layout(&self) -> Layout {
        Layout {
            files: self.files,
            file_blocks: 20,
            block_bytes: 100,
            largest_request_bytes: 100,
        }
    }

    fn run(&self, _: u64, _: u64) -> Self::Stream {
        self.requests.clone().into_iter()
    }

    fn keeps_regions(&self) -> bool {
        self.keeps_regions
    }

    fn processes(&self) -> u32 {
        self.processes
    }
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.client.local_cache_bytes = 0;
    scenario.client.disks = Disks {
        seek_mean_ns: 0,
        seek_max_ns: 0,
        rotation_ns: 0,
        media_bytes_per_s: SECOND,
        string_bytes_per_s: 1_000_000 * SECOND,
        ..Disks::default()
    };
    scenario.network = Network {
        bytes_per_s: Some(10 * SECOND),
        latency_ns: 5,
    };
    scenario.remote.region_bytes = 1000;
    scenario
}

/// Change of a host that keeps no headroom.
fn change(at_ns: u64, presence: Presence, bytes: u64, returned: Option<u32>) -> Change {
    let verdict = match presence {
        Presence::Idle => Verdict::Idle { since_ms: 0 },
        _ => Verdict::Waiting { at_ms: 300_000 },
    };
    let seen = RecordedSample {
        physical_bytes: 0,
        available_bytes: bytes,
        mem_available_bytes: None,
        verdict,
    };
    Change {
        at_ns,
        presence,
        quotas: ModeQuotas {
            paper_bytes: bytes,
            ..ModeQuotas::default()
        },
        seen: (presence != Presence::Unseen).then_some(seen),
        returned,
    }
}

fn host(name: &str, changes: Vec<Change>) -> Timeline {
    let wanted = ReturnMemory {
        demand: Demand {
            footprint_bytes: 800,
            guest_bytes: 0,
            kernel_bytes: 300,
            physical_bytes: 2000,
            reserve_bytes: 50,
        },
        upper_bound_bytes: 700,
    };
    let returns = changes.iter().filter(|c| c.returned.is_some());
    let returns = returns.map(|c| Return {
        at_ns: c.at_ns,
        cause: Cause::Owner,
        wanted: Some(wanted),
    });
    Timeline {
        host_id: name.to_owned(),
        physical_bytes: 2000,
        returns: returns.collect(),
        changes,
    }
}

fn always() -> Timeline {
    host("always", vec![change(0, Presence::Idle, ROOM, None)])
}

/// Runs the program once. Returns the end of the run, the counts by place, and the figures of regions and
/// owners.
fn run(
    scenario: &Scenario,
    program: &FixedProgram,
    hosts: &[Timeline],
) -> (u64, Counts, Regions, Owners) {
    let geometry = Geometry::new(program.layout(), scenario.remote.region_bytes);
    let (recruitment, remote) = (&scenario.recruitment, &scenario.remote);
    let sizes = geometry.region_bytes();
    let cluster = Cluster::new(hosts, recruitment, remote, sizes, scenario.seed);
    let cluster = (!hosts.is_empty()).then_some(cluster);
    let mut engine = engine(scenario, program, geometry, cluster, &scenario.network);
    let one = Runs {
        count: 1,
        until_ns: 1000 * SECOND,
        pause_ns: 0,
    };
    let runs = one.of(scenario, program, &mut engine).unwrap();
    let (counts, cluster) = (engine.client.counts, engine.cluster);
    let end_ns = runs[0].end_ns;
    let page_in = PageIn::of(scenario);
    let (regions, owners) = cluster.map_or_else(Default::default, |c| c.finish(end_ns, page_in));
    (end_ns, counts, regions, owners)
}

fn answered(counts: &Counts) -> [u64; 3] {
    [
        counts.local_requests_count,
        counts.remote_requests_count,
        counts.disk_requests_count,
    ]
}

#[test]
fn one_host_and_one_region() {
    let program = FixedProgram::reading(&[0, 0, 7], 1000);
    let (end, counts, ..) = run(&scenario(), &program, &[]);
    assert_eq!((end, answered(&counts)), (3 * 1100, [0, 0, 3]));
    let (end, counts, regions, _) = run(&scenario(), &program, &[always()]);
    // The region is requested at 1000, granted at 1010, read from disk by 2010, and stored by 2010 + 100 + 5.
    // Then the program twice computes for 1000 and reads remotely in 5 + 10 + 5.
    assert_eq!((end, answered(&counts)), (2115 + 2 * 1020, [0, 2, 1]));
    assert_eq!((regions.stored_count, regions.deleted_count), (1, 1));
    assert_eq!((counts.remote_bytes, counts.disk_bytes), (200, 1000));
}

#[test]
fn the_owner_returns_in_the_middle() {
    let program = FixedProgram::reading(&[0, 0, 7], 1000);
    let back = vec![
        change(0, Presence::Idle, ROOM, None),
        change(3500, Presence::InUse, 0, Some(0)),
    ];
    let (end, counts, regions, owners) = run(&scenario(), &program, &[host("h", back)]);
    // The run is as above until 3135. Then a request to the host fails at 4135, the manager refuses memory at
    // 4145, and the block is read from disk by 4255.
    assert_eq!((end, answered(&counts)), (4255, [0, 1, 2]));
    assert_eq!(
        (
            regions.reclaimed_count,
            regions.failed_accesses,
            regions.refusals
        ),
        (1, 1, 1)
    );
    assert_eq!((owners.returns, owners.reclaims), (1, 1));
    // Processes, guest memory and kernel (800 + 1000 + 300) exceed the memory without the reserve (2000 − 50)
    // by 150.
    assert_eq!(owners.mean_memory_context_bytes, Some(150.0));
    assert_eq!(owners.median_memory_context_bytes, Some(150));
    assert_eq!(owners.mean_upper_bound_bytes, Some(700.0));
    // Of 4255 ns, 1000 bytes are lent from the grant's request at 1000 to the owner's return at 3500.
    assert_eq!(regions.mean_leased_bytes, 1000.0 * 2500.0 / 4255.0);
}

#[test]
fn a_host_that_is_off_has_no_owner_who_waits() {
    let program = FixedProgram::reading(&[0, 0, 7], 1000);
    let off = vec![
        change(0, Presence::Idle, ROOM, None),
        change(3500, Presence::Unseen, 0, None),
    ];
    let (_, _, regions, owners) = run(&scenario(), &program, &[host("h", off)]);
    assert_eq!(
        (
            regions.reclaimed_count,
            regions.lost_with_host_count,
            owners.returns
        ),
        (0, 1, 0)
    );
}

#[test]
fn an_idle_host_that_needs_a_part_drops_what_came_last() {
    // Regions 0 and 1 take a slab each; from 6000 on the host may keep only one slab.
    let program = FixedProgram::reading(&[0, 10, 0, 10, 0], 1000);
    let less = vec![
        change(0, Presence::Idle, ROOM, None),
        change(6000, Presence::Idle, SLAB_BYTES + 1500, None),
    ];
    let hosts = [host("h", less)];
    let (end, counts, regions, _) = run(&scenario(), &program, &hosts);
    // The regions are stored by 2115 and 4230, and region 0 is read by 5250. Region 1 is lost: a request
    // fails at 6250, and the client knows it at 6260 and drops region 0 on that host, too. Region 1 then
    // takes the free slab: granted at 6270, stored by 7375. So region 0 gets no slab: it is requested at
    // 8375, and read from disk by 8485.
    assert_eq!((end, answered(&counts)), (8485, [0, 1, 4]));
    assert_eq!(
        (
            regions.dropped_by_shrink_count,
            regions.dropped_by_client_count,
            regions.refusals
        ),
        (1, 1, 1)
    );
    let mut alone = scenario();
    alone.remote.lost_region = LostRegion::DropRegion;
    let (end, counts, regions, _) = run(&alone, &program, &hosts);
    // Region 0 keeps its slab. So region 1 gets no slab, and is read from disk by 6370.
    assert_eq!((end, answered(&counts)), (6370 + 1020, [0, 2, 3]));
    assert_eq!(
        (
            regions.dropped_by_shrink_count,
            regions.dropped_by_client_count
        ),
        (1, 0)
    );
}

#[test]
fn a_quota_falls_at_once_and_rises_late_as_live() {
    // One slab may be lent at first, none for one second, and then two. The quota rises only 180 s after the
    // dip's end.
    let dip = vec![
        change(0, Presence::Idle, SLAB_BYTES, None),
        change(SECOND, Presence::Idle, 0, None),
        change(2 * SECOND, Presence::Idle, 2 * SLAB_BYTES, None),
    ];
    let hosts = [host("h", dip)];
    let mut scenario = scenario();
    scenario.remote.refraction_ms = 0;
    scenario.recruitment.rise_after_s = 180.0;
    let stored_after = |seconds: u64, scenario: &Scenario| {
        let program = FixedProgram::reading(&[0], seconds * SECOND);
        run(scenario, &program, &hosts).2.stored_count
    };
    assert_eq!(
        [0, 181, 182, 183].map(|s| stored_after(s, &scenario)),
        [1, 0, 1, 1]
    );
    scenario.recruitment.rise_after_s = 0.0;
    assert_eq!([1, 2].map(|s| stored_after(s, &scenario)), [0, 1]);
}

#[test]
fn a_host_in_need_gives_back_in_steps_as_live() {
    // Ten regions take a slab each. From 60 s on the host has room for one, and reclaims two slabs each
    // second.
    let blocks: Vec<u64> = (0..10).map(|region| region * 10).collect();
    let less = vec![
        change(0, Presence::Idle, ROOM, None),
        change(60 * SECOND, Presence::Idle, SLAB_BYTES, None),
    ];
    let hosts = [host("h", less)];
    let mut scenario = scenario();
    scenario.recruitment.shrink_step_bytes = Some(2 * SLAB_BYTES);
    scenario.recruitment.shrink_every_s = 1.0;
    let mut program = FixedProgram::reading(&blocks, 0);
    program.files = 5;
    program.requests.push(Request {
        object: 0,
        bytes: 100,
        is_write: false,
        think_ns: 0,
    });
    let shrunk_by = |at_ns: u64| {
        let mut program = program.clone();
        program.requests[10].think_ns = at_ns;
        run(&scenario, &program, &hosts).2.dropped_by_shrink_count
    };
    let seconds = [59, 60, 61, 62, 63, 64, 90];
    let found = seconds.map(|s| shrunk_by(s * SECOND));
    assert_eq!(found, [0, 2, 4, 6, 8, 9, 9]);
}

#[test]
fn a_refusal_is_respected_for_a_minute() {
    let late = vec![change(31 * SECOND, Presence::Idle, ROOM, None)];
    let program = FixedProgram::reading(&[0, 0, 0, 0], 30 * SECOND);
    let (end, counts, regions, _) = run(&scenario(), &program, &[host("h", late)]);
    // The manager refuses at 30 s; the client makes no request at 60 s, is granted memory at 90 s, and reads
    // remotely at 120 s.
    assert_eq!(answered(&counts), [0, 1, 3]);
    assert_eq!((regions.refusals, regions.stored_count), (1, 1));
    let expected = 120 * SECOND + (10 + 100) + 100 + (10 + 1000 + 100 + 5) + 20;
    assert_eq!(end, expected);
}

#[test]
fn what_is_used_least_or_came_first_goes_where_that_is_the_rule() {
    // The regions are used in the order 0, 1, 0, 2, 0, 1.
    let program = FixedProgram::reading(&[0, 10, 0, 20, 0, 10], 1000);
    let hosts = [host("h", vec![change(0, Presence::Idle, 2000, None)])];
    let mut lru = scenario();
    lru.remote.retention = RetentionName(Policy::Lru);
    // The manager chooses only hosts with a whole free slab. This host has none, so the manager always
    // refuses and no region is ever stored.
    let (_, counts, ..) = run(&lru, &program, &hosts);
    assert_eq!(answered(&counts), [0, 0, 6]);
    // Two slabs are free, so a third region needs an eviction. By least recent use, 1 is evicted for 2, and
    // later 2 for 1.
    let room = vec![change(0, Presence::Idle, 2 * SLAB_BYTES + 1000, None)];
    let hosts = [host("h", room)];
    let (_, counts, regions, _) = run(&lru, &program, &hosts);
    assert_eq!(answered(&counts), [0, 2, 4]);
    assert_eq!((regions.stored_count, regions.deleted_count), (4, 4));
    // By arrival, 0 is evicted for 2, 1 for 0, and 2 for 1.
    let mut fifo = scenario();
    fifo.remote.retention = RetentionName(Policy::Fifo);
    let (_, counts, regions, _) = run(&fifo, &program, &hosts);
    assert_eq!(answered(&counts), [0, 1, 5]);
    assert_eq!((regions.stored_count, regions.deleted_count), (5, 5));
    // Under the default policy regions that came first stay, so 2 is never stored.
    let (_, counts, regions, _) = run(&scenario(), &program, &hosts);
    assert_eq!((answered(&counts), regions.stored_count), ([0, 3, 3], 2));
}

#[test]
fn processes_wait_for_a_region_that_another_one_fetches() {
    let mut program = FixedProgram::reading(&[0, 1, 2], 1000);
    program.processes = 2;
    let (end, counts, regions, _) = run(&scenario(), &program, &[always()]);
    // One process fetches the region until 2115. The other process waits, and has its block at 2115 + 20. The
    // first process requests the third block at 3115.
    assert_eq!((end, answered(&counts)), (3135, [0, 2, 1]));
    assert_eq!(regions.stored_count, 1);
}

#[test]
fn two_disks_share_a_string_and_one_disk_is_one() {
    let mut shared = scenario();
    // Reading 100 bytes takes 100 ns on a disk and 50 ns on the string. Both disks need the string from 50
    // on.
    shared.client.disks.string_bytes_per_s = 2 * SECOND;
    let mut program = FixedProgram::reading(&[0, 20], 0);
    program.processes = 2;
    assert_eq!(run(&shared, &program, &[]).0, 150);
    shared.client.disks.count = 1;
    assert_eq!(run(&shared, &program, &[]).0, 200);
    shared.client.disks.count = 2;
    shared.client.overlap = Overlap::Serial;
    assert_eq!(run(&shared, &program, &[]).0, 200);
}

#[test]
fn what_goes_on_where_a_stream_ended_needs_no_turn() {
    let mut turning = scenario();
    turning.client.disks.rotation_ns = 1 << 31;
    let late = |blocks: &[u64]| run(&turning, &FixedProgram::reading(blocks, 0), &[]).0;
    let [one, on, back] = [&[0_u64][..], &[0, 1, 2], &[0, 2, 1]].map(late);
    assert_eq!(on, one + 200);
    assert!(back > on);
    turning.client.disks.sequential_streams = 0;
    assert!(run(&turning, &FixedProgram::reading(&[0, 1, 2], 0), &[]).0 > on);
}

#[test]
fn the_clients_own_memory_comes_first_and_writes_go_to_disk_and_host() {
    let mut cached = scenario();
    cached.client.local_cache_bytes = 200;
    let program = FixedProgram::reading(&[0, 1, 0, 2, 1, 2], 1000);
    let (end, counts, ..) = run(&cached, &program, &[]);
    // Blocks 0 and 1 come from disk, then 0 from the cache. Reading 2 evicts 1, and reading 1 evicts 0. Then
    // 2 comes from the cache.
    assert_eq!((end, answered(&counts)), (6000 + 4 * 100, [2, 0, 4]));
    let mut program = FixedProgram::reading(&[0, 0, 0], 1000);
    program.requests[1].is_write = true;
    let (end, counts, ..) = run(&scenario(), &program, &[always()]);
    // The region is stored by 2115. The write at 3115 takes 100 ns to disk and, concurrently, 15 ns to the
    // host. The last read begins at 4215.
    assert_eq!((end, answered(&counts)), (4215 + 20, [0, 1, 2]));
}

#[test]
fn speedup_and_ideal_of_a_week_of_runs() {
    let mut kept = FixedProgram::reading(&[0, 1, 2, 3], 1000);
    kept.keeps_regions = true;
    let mut scenario = scenario();
    scenario.length_ns = 100_000;
    let outcome = simulate_program(&scenario, &kept, &[always()]).unwrap();
    assert_eq!(
        (outcome.baseline_run_ns, outcome.ideal_run_ns),
        (4400, 4000)
    );
    let first = outcome.runs[0];
    assert_eq!((first.begin_ns, first.end_ns), (0, 2115 + 3 * 1020));
    assert_eq!(outcome.runs[1].ns(), 4 * 1020);
    // The first run takes 5175 ns, the other 23 runs 4080 ns each: 99,015 ns.
    assert_eq!(outcome.runs.len(), 24);
    let mean = 99_015 / 24;
    assert_eq!(outcome.run_ns, mean);
    assert_eq!(outcome.speedup, 4400.0 / mean as f64);
    assert_eq!(outcome.ideal_speedup, 1.1);
    scenario.length_ns = 5000;
    let short = simulate_program(&scenario, &kept, &[always()]);
    assert!(matches!(short, Err(SimulationError::TooShort { .. })));
    scenario.client.disks.count = 0;
    let wrong = simulate_program(&scenario, &kept, &[])
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("client.disks.count"), "{wrong}");
}

/// Cost grows with requests, not with time. Decades between two requests are one step; otherwise this test
/// would not end.
#[test]
fn time_in_which_nothing_happens_costs_nothing() {
    let year_ns = 365 * DAY;
    let mut kept = FixedProgram::reading(&[0, 1, 2, 3], 1000);
    kept.keeps_regions = true;
    let mut scenario = scenario();
    (scenario.length_ns, scenario.pause_ns) = (70 * year_ns, year_ns);
    let outcome = simulate_program(&scenario, &kept, &[always()]).unwrap();
    assert_eq!(
        (outcome.runs.len(), outcome.counts.requests_count),
        (70, 280)
    );
    assert_eq!(outcome.hours.len(), 70);
}

#[test]
fn a_scenario_is_read_as_it_is_written() {
    let mut written = scenario();
    written.remote.placement = PlacementName(Placement::Spread);
    written.recruitment.mode = Mode::Spare;
    let text = serde_json::to_string(&written).unwrap();
    assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), written);
    let few: Scenario = serde_json::from_str(r#"{"application": "lu"}"#).unwrap();
    assert_eq!(few.remote, Remote::default());
    for wrong in [
        r#"{"aplication": "lu"}"#,
        r#"{"remote": {"placement": "best"}}"#,
    ] {
        assert!(serde_json::from_str::<Scenario>(wrong).is_err(), "{wrong}");
    }
}

/// Makes a host with random changes.
fn any_host() -> impl Strategy<Value = Timeline> {
    let step = (1u64..3000, 0u8..4, 0u64..6 << 20);
    prop::collection::vec(step, 0..30).prop_map(|steps| {
        let (mut at_ns, mut returns, mut was_idle, mut changes) = (0, 0, false, Vec::new());
        for (passed_ns, kind, bytes) in steps {
            at_ns += passed_ns;
            let returned = (kind == 2 && was_idle).then(|| {
                returns += 1;
                returns - 1
            });
            was_idle = kind < 2;
            changes.push(match kind {
                0 | 1 => change(at_ns, Presence::Idle, bytes, None),
                2 => change(at_ns, Presence::InUse, 0, returned),
                _ => change(at_ns, Presence::Unseen, 0, None),
            });
        }
        host(&format!("h{at_ns}"), changes)
    })
}

fn any_program() -> impl Strategy<Value = FixedProgram> {
    let request = (0u64..40, any::<bool>(), 0u64..200);
    let requests = prop::collection::vec(request, 1..200);
    (requests, 1u32..5, any::<bool>()).prop_map(|(requests, processes, keeps_regions)| {
        FixedProgram {
            requests: (requests.into_iter())
                .map(|(object, is_write, think_ns)| Request {
                    object,
                    bytes: 100,
                    is_write: is_write && object % 3 == 0,
                    think_ns,
                })
                .collect(),
            processes,
            keeps_regions,
            files: 2,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any hosts and program, every request is answered once, and no host lends beyond its quota or
    /// answers after a reclaim; otherwise the simulation returns an error. A repetition gives the same
    /// result.
    #[test]
    fn it_holds_whatever_happens(
        hosts in prop::collection::vec(any_host(), 1..5),
        program in any_program(),
        placement in prop::sample::select(&Placement::ALL[..]),
        retention in prop::sample::select(&Policy::ALL[..]),
        drops_host in any::<bool>(),
        cache_blocks in 0u64..10,
        refraction_ms in 0i64..2,
    ) {
        let mut scenario = scenario();
        scenario.length_ns = 500_000;
        scenario.client.local_cache_bytes = cache_blocks * 100;
        scenario.remote = Remote {
            placement: PlacementName(placement),
            retention: RetentionName(retention),
            refraction_ms,
            lost_region: if drops_host { LostRegion::DropHost } else { LostRegion::DropRegion },
            ..scenario.remote
        };
        let outcome = simulate_program(&scenario, &program, &hosts);
        prop_assert!(!matches!(outcome, Err(SimulationError::Violation(_))), "{outcome:?}");
        if let Ok(outcome) = outcome {
            let counts = outcome.counts;
            let unanswered = counts.requests_count - answered(&counts).iter().sum::<u64>();
            prop_assert!(unanswered <= u64::from(program.processes));
            prop_assert!(outcome.regions.mean_leased_bytes <= outcome.regions.mean_quota_bytes);
            prop_assert!(outcome.runs.windows(2).all(|r| r[0].end_ns <= r[1].begin_ns));
            let again = simulate_program(&scenario, &program, &hosts).unwrap();
            prop_assert_eq!(outcome, again);
        }
    }
}
