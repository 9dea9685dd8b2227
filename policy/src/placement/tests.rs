use super::*;
use proptest::prelude::*;

const SLAB: u64 = SLAB_BYTES;

/// Figures of a host: name, slabs free, slabs lent, requests per second, slabs of this client, minutes idle,
/// probability to stay, time of failure.
type Row = (
    &'static str,
    u64,
    u64,
    f64,
    u64,
    Option<i64>,
    Option<f64>,
    Option<i64>,
);

const NOW_MS: i64 = 1_000_000;

#[rustfmt::skip]
const HOSTS: [Row; 6] = [
    ("a", 10, 4, 9.0, 2, Some(60), Some(0.7), None),
    ("b", 40, 6, 3.0, 0, Some(10), Some(0.9), None),
    ("c", 20, 0, 5.0, 4, Some(90), None, None),
    ("d", 30, 2, 1.0, 1, None, Some(0.2), None),
    // Host e has no room; host f failed half a minute ago.
    ("e", 1, 0, 0.0, 0, Some(999), Some(1.0), None),
    ("f", 90, 0, 0.0, 0, Some(999), Some(1.0), Some(NOW_MS - 30_000)),
];

fn hosts() -> Vec<Candidate> {
    let host = |row: Row| Candidate {
        host_id: row.0.into(),
        unleased_bytes: row.1 * SLAB,
        lent_bytes: row.2 * SLAB,
        requests_per_s: row.3,
        client_bytes: row.4 * SLAB,
        idle_for_ms: row.5.map(|minutes| minutes * 60_000),
        stays: row.6,
        failed_ms: row.7,
    };
    HOSTS.map(host).into()
}

fn two(copies: usize) -> Request<'static> {
    Request {
        client: "c",
        bytes: 2 * SLAB,
        copies,
    }
}

/// A random source that returns `parts` in order, each in sixteenths of the range of `u64`.
fn sixteenths(parts: &[u64]) -> impl FnMut() -> u64 + use<'_> {
    let mut parts = parts.iter();
    move || parts.next().expect("no more numbers were to be asked for") << 60
}

fn names(chosen: &[usize], hosts: &[Candidate]) -> String {
    chosen.iter().map(|i| &*hosts[*i].host_id).collect()
}

#[test]
fn golden_table() {
    use Placement::*;
    let hosts = hosts();
    for (placement, numbers, expected) in [
        (FewestPages, &[][..], "cda"),
        (FewestRequests, &[], "dbc"),
        (Spread, &[], "bda"),
        // Probabilities 0.9, 0.7, and 0.5 for an unknown one.
        (LongestAvailable, &[], "bac"),
        // The numbers 8, 0 and 15 of 16 choose: of a, b, c, d the third; of a, b, d the first; of d, b the
        // last.
        (Random, &[8, 0, 15], "cab"),
        (Stick, &[8, 0, 15], "cab"),
        // Weights 10, 40, 20, 30: position 50 of 100 is c. Of 10, 40, 30 position 0 is a. Of 30, 40 position
        // 65 is b.
        (EpochWeights, &[8, 0, 15], "cab"),
    ] {
        let mut random = sixteenths(numbers);
        let mut state = State::default();
        let chosen = place(placement, &mut state, &two(3), &hosts, &mut random, NOW_MS);
        assert_eq!(names(&chosen.unwrap(), &hosts), expected, "{placement}");
    }
}

#[test]
fn without_forecasts_the_longest_idle_then_the_largest() {
    let mut hosts = hosts();
    for host in &mut hosts {
        host.stays = None;
    }
    let place = |hosts: &[Candidate]| {
        let mut random = sixteenths(&[]);
        let mut state = State::default();
        let policy = Placement::LongestAvailable;
        let chosen = place(policy, &mut state, &two(4), hosts, &mut random, NOW_MS);
        names(&chosen.unwrap(), hosts)
    };
    assert_eq!(place(&hosts), "cabd");
    for host in &mut hosts {
        host.idle_for_ms = None;
    }
    assert_eq!(place(&hosts), "bdca");
}

#[test]
fn what_was_good_stays_good_while_it_has_room() {
    let mut hosts = hosts();
    let mut state = State::default();
    let mut stick = |hosts: &[Candidate], numbers: &[u64]| {
        let mut random = sixteenths(numbers);
        let chosen = place(
            Placement::Stick,
            &mut state,
            &two(2),
            hosts,
            &mut random,
            NOW_MS,
        );
        names(&chosen.unwrap(), hosts)
    };
    assert_eq!(stick(&hosts, &[8, 0]), "ca");
    assert_eq!(stick(&hosts, &[]), "ca");
    hosts[2].failed_ms = Some(NOW_MS - 1);
    // The number 0 chooses the first of b and d.
    assert_eq!(stick(&hosts, &[0]), "ab");
    hosts[2].failed_ms = None;
    assert_eq!(stick(&hosts, &[]), "ab");
}

#[test]
fn weights_are_used_up_within_an_epoch() {
    let mut hosts = hosts();
    hosts.truncate(2);
    let mut state = State::default();
    let ask = |slabs: u64| Request {
        client: "c",
        bytes: slabs * SLAB,
        copies: 1,
    };
    let mut at = |hosts: &[Candidate], slabs, part, now_ms| {
        let part = [part];
        let mut random = sixteenths(&part);
        let chosen = place(
            Placement::EpochWeights,
            &mut state,
            &ask(slabs),
            hosts,
            &mut random,
            now_ms,
        );
        names(&chosen.unwrap(), hosts)
    };
    // Weights 10 and 40: a has the first 3.2 sixteenths.
    assert_eq!(at(&hosts, 10, 3, 0), "a");
    // All of a's weight is used up, whatever free memory a announces.
    assert_eq!(at(&hosts, 10, 0, 1), "b");
    assert_eq!(at(&hosts, 10, 0, EPOCH_MS - 1), "b");
    assert_eq!(at(&hosts, 10, 0, EPOCH_MS), "a");
    // Weights 0 and 40: two requests later no host has any, and a new epoch begins.
    assert_eq!(at(&hosts, 40, 0, EPOCH_MS), "b");
    assert_eq!(at(&hosts, 10, 0, EPOCH_MS), "a");
    // A host that appears in the middle of an epoch has no weight until the next one.
    hosts[1].host_id = "new".into();
    assert_eq!(at(&hosts, 1, 15, EPOCH_MS + 1), "new"); // a's weight was used up again
}

#[test]
fn a_shortage_says_when_to_ask_again() {
    let hosts = hosts();
    let mut random = sixteenths(&[]);
    let mut state = State::default();
    let mut ask = |request: Request<'_>| {
        place(
            Placement::Random,
            &mut state,
            &request,
            &hosts,
            &mut random,
            NOW_MS,
        )
    };
    let shortage = Shortage {
        hosts_with_room: 4,
        hosts_that_failed: 1,
        largest_unleased_bytes: 40 * SLAB,
        retry_in_ms: Some(30_000),
    };
    assert_eq!(ask(two(5)), Err(shortage));
    assert_eq!(
        shortage.to_string(),
        "4 hosts have so much free, at most 80.0 MiB on one; 1 more failed lately, and are asked again in 30 s at the earliest"
    );
    let all = Request {
        bytes: u64::MAX,
        ..two(1)
    };
    let none = ask(all).unwrap_err();
    assert_eq!((none.hosts_with_room, none.retry_in_ms), (0, None));
}

#[test]
fn a_host_told_of_twice_is_what_it_was_first() {
    let mut twice = hosts();
    twice.truncate(1);
    let mut again = twice[0].clone();
    again.unleased_bytes = 0;
    twice.push(again);
    for placement in Placement::ALL {
        let chosen = place(
            placement,
            &mut State::default(),
            &two(1),
            &twice,
            &mut || 7,
            NOW_MS,
        );
        assert_eq!(chosen, Ok(vec![0]), "{placement}");
    }
}

#[test]
fn names_are_read_back() {
    for placement in Placement::ALL {
        assert_eq!(placement.to_string().parse(), Ok(placement));
    }
    let error = "best".parse::<Placement>().unwrap_err().to_string();
    assert!(error.contains("\"best\"") && error.contains("epoch-weights"));
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let host = (0..12u8, 0..6u64, 0..4u64, prop::option::of(0..3i64));
    let rest = (
        prop::option::of(-0.5..1.5f64),
        prop::option::of(-90_000..10_000i64),
    );
    (host, rest).prop_map(|((id, free, lent, idle), (stays, failed))| Candidate {
        host_id: id.to_string().into(),
        unleased_bytes: free * SLAB + lent,
        lent_bytes: lent * SLAB,
        requests_per_s: lent as f64,
        client_bytes: lent * SLAB,
        idle_for_ms: idle,
        stays,
        failed_ms: failed,
    })
}

proptest! {
    #[test]
    fn no_policy_breaks_the_rules(
        hosts in prop::collection::vec(candidate(), 0..12),
        placement in prop::sample::select(Placement::ALL.to_vec()),
        asks in prop::collection::vec((0..6 * SLAB, 0..4usize, 0..20_000i64), 1..6),
        seed in any::<u64>(),
    ) {
        let run = || {
            let (mut state, mut number, mut now_ms) = (State::default(), seed, 0);
            let mut random = || {
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                number
            };
            let mut all = Vec::new();
            for (bytes, copies, later_ms) in &asks {
                now_ms += later_ms;
                let request = Request { client: "c", bytes: *bytes, copies: *copies };
                all.push((now_ms, request, place(placement, &mut state, &request, &hosts, &mut random, now_ms)));
            }
            all
        };
        for (now_ms, request, chosen) in run() {
            let may = |c: &Candidate| c.unleased_bytes / SLAB >= request.bytes.max(1).div_ceil(SLAB)
                && c.failed_ms.is_none_or(|failed| now_ms - failed >= REFRACTION_MS);
            match chosen {
                Ok(chosen) => {
                    prop_assert_eq!(chosen.len(), request.copies);
                    let ids: BTreeSet<_> = chosen.iter().map(|i| &hosts[*i].host_id).collect();
                    prop_assert_eq!(ids.len(), chosen.len());
                    prop_assert!(chosen.iter().all(|i| may(&hosts[*i])));
                }
                // Of candidates with the same id, the first counts.
                Err(shortage) => {
                    let mut seen = BTreeSet::new();
                    let first = hosts.iter().filter(|h| seen.insert(&h.host_id));
                    let count = first.filter(|h| may(h)).count();
                    prop_assert_eq!(count, shortage.hosts_with_room);
                    prop_assert!(count < request.copies);
                }
            }
        }
        prop_assert_eq!(run(), run());
    }
}

/// `Random` chooses each host equally often; `EpochWeights` chooses hosts in proportion to their bytes. In 4000
/// draws, each host's number of draws is within four standard deviations of the expected number.
#[test]
fn draws_are_as_likely_as_promised() {
    let mut hosts = hosts();
    hosts.truncate(4);
    let mut number = 1_u64;
    let mut random = || {
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    for (placement, shares) in [
        (Placement::Random, [0.25; 4]),
        (Placement::EpochWeights, [0.1, 0.4, 0.2, 0.3]),
    ] {
        let mut counts = [0.0; 4];
        for _ in 0..4000 {
            let mut state = State::default();
            let chosen = place(placement, &mut state, &two(1), &hosts, &mut random, 0);
            counts[chosen.unwrap()[0]] += 1.0;
        }
        for (count, share) in counts.into_iter().zip(shares) {
            let expected: f64 = 4000.0 * share;
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!(
                (count - expected).abs() < 4.0 * deviation,
                "{placement} {count} {expected}"
            );
        }
    }
}
