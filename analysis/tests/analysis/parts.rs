//! An analysis in parts gives the findings of one analysis to the byte: whatever the parts, their order, the
//! tree of merges and the repetitions.

use crate::recording::{Recording, sample};
use gleaner_analysis::{AnalysisError, Part, PartError, Plan, analyze, analyze_part, analyze_site};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, IdlePeriod, MemoryPoint, Parameters};
use gleaner_traces::synth;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{LazyLock, Mutex};
use tempfile::TempDir;

const HOSTS: usize = 6;
/// Positions at which the property test may divide the hosts; few, so that cases share ranges.
const CUTS: [usize; 3] = [1, 3, 4];

/// A synthetic fleet, the plan of its analysis, and the findings of one analysis as JSON.
struct Fleet {
    dataset: Dataset,
    plan: Plan,
    json: String,
    /// Stored parts by range of hosts: cases of the property test share many ranges.
    parts: Mutex<BTreeMap<(usize, usize), Vec<u8>>>,
    _folder: TempDir,
}

static FLEET: LazyLock<Fleet> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let parameters = synth::Parameters {
        days: 3,
        hosts: HOSTS,
        ..synth::Parameters::of_preset(synth::Preset::Modern, 3).unwrap()
    };
    let cluster = synth::Cluster::new(&parameters).unwrap();
    synth::write(&cluster, folder.path(), |_| {}).unwrap();
    let dataset = Dataset::open(folder.path()).unwrap();
    let asked = Parameters {
        bootstrap_count: 50,
        measures: Findings::keys(),
        ..Parameters::default()
    };
    let plan = Plan::new(&dataset, &asked).unwrap();
    let findings = analyze(&dataset, &asked, &mut |_| ()).unwrap();
    Fleet {
        json: json(&findings),
        dataset,
        plan,
        parts: Mutex::default(),
        _folder: folder,
    }
});

impl Fleet {
    fn stored(&self, hosts: Range<usize>) -> Vec<u8> {
        let mut parts = self.parts.lock().unwrap();
        let stored = parts.entry((hosts.start, hosts.end)).or_insert_with(|| {
            let plan = self.plan.part(hosts).unwrap();
            let part = analyze_part(&self.dataset, &plan, &mut |_| ());
            part.unwrap().to_bytes().unwrap()
        });
        stored.clone()
    }

    fn part(&self, hosts: Range<usize>) -> Part {
        Part::from_bytes(&self.stored(hosts), "stored").unwrap()
    }
}

fn json(findings: &Findings) -> String {
    serde_json::to_string(findings).unwrap()
}

fn small() -> (TempDir, Dataset) {
    recorded(&["a", "b", "c"])
}

fn recorded(hosts: &[&str]) -> (TempDir, Dataset) {
    let mut r = Recording::new();
    for &host in hosts {
        r.host(host, 90);
        for i in 0..20 {
            r.row(host, i + 1, i * 90, &sample(300 + i * 10));
        }
    }
    r.dataset()
}

fn part_of(dataset: &Dataset, parameters: &Parameters, hosts: Range<usize>) -> Part {
    let plan = Plan::new(dataset, parameters).unwrap().part(hosts).unwrap();
    analyze_part(dataset, &plan, &mut |_| ()).unwrap()
}

fn of_small(dataset: &Dataset, hosts: Range<usize>) -> Part {
    part_of(dataset, &Parameters::default(), hosts)
}

fn reason(error: AnalysisError) -> PartError {
    match error {
        AnalysisError::Part { source, .. } => source,
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Parts between random cuts are merged in random pairs until one is left; each part is stored and read
    /// before every merge. Some parts are given twice: at once, or when all others have been merged.
    #[test]
    fn parts_in_any_order_give_the_findings_of_one_analysis(
        cuts in prop::sample::subsequence(&CUTS, 0..=CUTS.len()),
        repeated in any::<[prop::sample::Index; 2]>(),
        picks in any::<[prop::sample::Index; 2 * CUTS.len()]>(),
    ) {
        let ends: Vec<usize> = [0].into_iter().chain(cuts).chain([HOSTS]).collect();
        let ranges: Vec<Range<usize>> = ends.windows(2).map(|w| w[0]..w[1]).collect();
        let mut parts: Vec<Part> = ranges.iter().cloned().map(|r| FLEET.part(r)).collect();
        let [early, late] = repeated.map(|pick| pick.index(ranges.len()));
        let again = FLEET.part(ranges[early].clone());
        parts.push(again.merge(FLEET.part(ranges[early].clone()), "early").unwrap());
        parts.swap_remove(early);
        let mut picks = picks.iter();
        while parts.len() > 1 {
            let other = parts.swap_remove(picks.next().unwrap().index(parts.len()));
            let into = parts.swap_remove(picks.next().unwrap().index(parts.len()));
            let stored = into.merge(other, "other").unwrap().to_bytes().unwrap();
            parts.push(Part::from_bytes(&stored, "merged").unwrap());
        }
        let late = FLEET.part(ranges[late].clone());
        let merged = parts.pop().unwrap().merge(late, "late").unwrap();
        prop_assert!(merged.hosts().eq(std::iter::once(0..HOSTS)));
        prop_assert!(json(&merged.finish().unwrap()) == FLEET.json);
    }
}

#[test]
fn a_plan_is_the_same_if_its_parameters_are_given() {
    let plan = &FLEET.plan;
    assert_eq!(&Plan::new(&FLEET.dataset, &plan.parameters).unwrap(), plan);
    assert!(!plan.parameters.region_bytes.is_empty());
    let text = serde_json::to_string(plan).unwrap();
    assert_eq!(&serde_json::from_str::<Plan>(&text).unwrap(), plan);
}

#[test]
fn a_plan_is_divided_into_ranges_that_follow_each_other() {
    let plan = FLEET.plan.part(1..6).unwrap();
    for parts_count in 1..12 {
        let ranges: Vec<Range<usize>> = plan.ranges(parts_count).collect();
        assert_eq!(ranges.len(), parts_count);
        assert_eq!((ranges[0].start, ranges[parts_count - 1].end), (1, 6));
        assert!(ranges.windows(2).all(|w| w[0].end == w[1].start));
        let lengths = ranges.iter().map(Range::len);
        assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
    }
    for outside in [0..2, 5..7, 0..6] {
        assert!(matches!(
            plan.part(outside),
            Err(AnalysisError::Parameter { name: "hosts", .. })
        ));
    }
}

#[test]
fn findings_do_not_depend_on_the_order_of_the_hosts() {
    let ids = FLEET.plan.hosts().to_vec();
    let place = |host: &str| ids.iter().position(|id| id == host).unwrap();
    // In the order of ids, the hosts of two groups alternate; the group between them has no hosts.
    let group_of = |host: &str| place(host) % 2 * 2;
    let (plan, groups) = FLEET.plan.clone().by_groups(3, group_of);
    assert_eq!(groups, [0..3, 3..3, 3..6]);
    let parts = groups.into_iter().map(|hosts| {
        let plan = plan.part(hosts).unwrap();
        analyze_part(&FLEET.dataset, &plan, &mut |_| ()).unwrap()
    });
    let merged = parts.reduce(|merged, part| merged.merge(part, "a group").unwrap());
    assert!(json(&merged.unwrap().finish().unwrap()) == FLEET.json);

    let first = analyze_part(&FLEET.dataset, &plan.part(0..1).unwrap(), &mut |_| ()).unwrap();
    let error = first.merge(FLEET.part(1..6), "by ids").unwrap_err();
    assert!(matches!(reason(error), PartError::OtherAnalysis { .. }));
}

#[test]
fn hosts_alone_have_the_findings_of_a_dataset_of_only_these_hosts() {
    let (_folder, dataset) = small();
    let (_other_folder, two) = recorded(&["a", "c"]);
    let asked = Parameters {
        measures: Findings::keys(),
        ..Parameters::default()
    };
    let plan = Plan::new(&dataset, &asked).unwrap();
    let (plan, groups) = plan.by_groups(2, |host| usize::from(host != "b"));
    assert_eq!(plan.hosts(), ["b", "a", "c"]);
    let site = plan.part(groups[1].clone()).unwrap();
    let part = analyze_site(&dataset, &site, &mut |_| ()).unwrap();
    let alone = part.clone().finish_alone().unwrap();
    assert_eq!(alone, analyze(&two, &plan.parameters, &mut |_| ()).unwrap());

    let mut part = part;
    part.retain_records(|point: &MemoryPoint| point.host_id == "c");
    part.retain_records(|_: &IdlePeriod| false);
    let fewer = part.finish_alone().unwrap();
    assert!(!fewer.memory_over_time.is_empty() && fewer.idle_periods.is_empty());
    assert!(fewer.memory_over_time.iter().all(|p| p.host_id == "c"));
    assert_eq!(fewer.cluster_over_time, alone.cluster_over_time);
}

#[test]
fn the_same_hosts_give_the_same_bytes() {
    let again = FLEET.part(1..3).to_bytes().unwrap();
    assert_eq!(again, FLEET.stored(1..3));
}

/// A part is read by the version that wrote it. If the stored form of a measure's state changes, or its meaning,
/// the version must rise, so that older parts are refused instead of being misread.
#[test]
fn an_older_part_is_read_rightly_or_refused() {
    let (_folder, dataset) = small();
    let part = of_small(&dataset, 0..3);
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("part-1");
    part.write(&written).unwrap();
    let golden = Part::read(Path::new("golden/part-1")).and_then(Part::finish);
    let is_same = golden.is_ok_and(|findings| findings == part.finish().unwrap());
    assert!(
        is_same,
        "raise PART_VERSION, and copy {} to analysis/golden/part-1",
        written.display()
    );
}

#[test]
fn a_cancelled_analysis_ends_after_the_host_at_hand() {
    let (_folder, dataset) = small();
    let mut calls = 0;
    let cancelled = analyze(&dataset, &Parameters::default(), &mut |p| {
        calls += 1;
        if p.hosts_done == 2 {
            p.cancel();
        }
    });
    assert!(matches!(cancelled, Err(AnalysisError::Cancelled)));
    assert_eq!(calls, 2);
}

#[test]
fn missing_hosts_are_named() {
    let (_folder, dataset) = small();
    let part = of_small(&dataset, 0..1);
    let part = part.merge(of_small(&dataset, 2..3), "other").unwrap();
    assert!(part.hosts().eq([0..1, 2..3]));
    let error = part.finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the merged parts: hosts 1..2 of 3 are in no part: analyse them with `gleaner analyze --hosts 1..2` \
         and merge again"
    );
}

#[test]
fn overlapping_parts_are_refused() {
    let (_folder, dataset) = small();
    let part = of_small(&dataset, 0..2);
    let error = part.merge(of_small(&dataset, 1..3), "late").unwrap_err();
    assert!(matches!(reason(error), PartError::Overlap { .. }));
    // A part within another one is a repetition.
    for (first, second) in [(0..3, 1..2), (1..2, 0..3)] {
        let part = of_small(&dataset, first).merge(of_small(&dataset, second), "late");
        assert!(part.unwrap().finish().is_ok());
    }
}

#[test]
fn parts_of_different_analyses_are_refused() {
    let (_folder, dataset) = small();
    let other = Parameters {
        load_limit: 0.5,
        ..Parameters::default()
    };
    let part = || of_small(&dataset, 0..2);
    let others = part_of(&dataset, &other, 2..3);
    let error = part().merge(others, "others").unwrap_err();
    assert!(error.to_string().starts_with("others: "), "{error}");
    assert!(matches!(reason(error), PartError::OtherAnalysis { .. }));
    let error = part().merge(FLEET.part(0..1), "fleet").unwrap_err();
    assert!(matches!(reason(error), PartError::OtherAnalysis { .. }));
}

#[test]
fn damaged_parts_are_refused() {
    let stored = FLEET.stored(0..1);
    let read = |bytes: &[u8]| reason(Part::from_bytes(bytes, "x").unwrap_err());
    assert!(matches!(read(b""), PartError::NotAPart));
    assert!(matches!(read(b"{}"), PartError::NotAPart));
    assert!(matches!(read(&stored[..30]), PartError::NotAPart));
    let mut newer = stored.clone();
    newer[28] += 1;
    assert!(matches!(read(&newer), PartError::Version { .. }));
    for length in [32, 33, stored.len() / 2, stored.len() - 1] {
        let cut = read(&stored[..length]);
        assert!(matches!(cut, PartError::Damaged { .. }), "{length}: {cut}");
    }
    for at in [40, stored.len() / 2, stored.len() - 2] {
        let mut altered = stored.clone();
        altered[at] ^= 0x10;
        let error = read(&altered);
        assert!(matches!(error, PartError::Damaged { .. }), "{at}: {error}");
    }
}

#[test]
fn a_dataset_without_samples_is_reported_by_its_parts() {
    let mut r = Recording::new();
    r.host("a", 90);
    r.host("b", 90);
    let (_folder, dataset) = r.dataset();
    let part = of_small(&dataset, 0..1);
    let part = part.merge(of_small(&dataset, 1..2), "b").unwrap();
    let error = part.finish().unwrap_err();
    assert!(matches!(error, AnalysisError::NoSamples { hosts_count: 2 }));
}
