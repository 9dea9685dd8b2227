//! Compares caches with a table worked by hand, and with a list that is searched from end to end.

use super::*;
use crate::Request;
use proptest::prelude::*;

fn stream(asked: &[(u64, u32)]) -> impl Iterator<Item = Result<StreamRequest, StreamError>> {
    asked.iter().map(|(object, bytes)| {
        Ok(StreamRequest {
            request: Request {
                object: *object,
                bytes: *bytes,
                ..Request::default()
            },
            ..StreamRequest::default()
        })
    })
}

fn misses(asked: &[(u64, u32)], policy: Policy, capacity: Capacity) -> (u64, u64) {
    let counts = replay(stream(asked), &[Cache { policy, capacity }]).unwrap();
    assert_eq!(counts[0].requests, asked.len() as u64);
    assert_eq!(
        counts[0].bytes,
        asked
            .iter()
            .map(|(_, bytes)| u64::from(*bytes))
            .sum::<u64>()
    );
    (counts[0].misses, counts[0].missed_bytes)
}

#[test]
fn sizes_are_those_that_objects_came_in_with() {
    // The capacity is 250 bytes. Objects 7 and 8 (100 bytes each) are stored. Later requests for 7 are hits,
    // whatever their size. Object 9 (40 bytes) also fits, object 10 (300 bytes) never fits, and object 11
    // takes no room. libCacheSim 0.3.5 counts the same: 5 misses with 540 bytes.
    let asked = [
        (7, 100),
        (8, 100),
        (7, 150),
        (9, 40),
        (7, 10),
        (9, 0),
        (10, 300),
        (11, 0),
        (11, 0),
    ];
    for policy in Policy::ALL {
        assert_eq!(
            misses(&asked, policy, Capacity::Bytes(250)),
            (5, 540),
            "{policy:?}"
        );
    }
    // The cache has room for two objects. Object 9 replaces 8 under Lru and 7 under Fifo; under FirstIn it
    // replaces none.
    assert_eq!(misses(&asked, Policy::Lru, Capacity::Objects(2)).0, 5);
    assert_eq!(misses(&asked, Policy::Fifo, Capacity::Objects(2)).0, 6);
    assert_eq!(misses(&asked, Policy::FirstIn, Capacity::Objects(2)).0, 7);
    assert_eq!(misses(&asked, Policy::Lru, Capacity::Objects(0)).0, 9);
}

#[test]
fn a_streams_error_is_the_replays() {
    let torn = StreamError::Setting {
        found: "torn".to_owned(),
        advice: String::new(),
    };
    let error = replay(stream(&[(1, 1)]).chain([Err(torn)]), &[]).unwrap_err();
    assert!(error.to_string().starts_with("torn"), "{error}");
}

/// Policies that keep their objects in a plain list. Tests of the other policies have their own slow
/// versions.
const OF_A_LIST: [Policy; 3] = [Policy::Lru, Policy::Fifo, Policy::FirstIn];

/// Counts misses and missed bytes with a list; the first object of the list is evicted next.
fn by_list(asked: &[(u64, u32)], policy: Policy, capacity: Capacity) -> (u64, u64) {
    let (by_objects, most) = match capacity {
        Capacity::Objects(most) => (true, most),
        Capacity::Bytes(most) => (false, most),
    };
    let mut list: Vec<(u64, u64)> = Vec::new();
    let (mut misses, mut missed_bytes) = (0, 0);
    for &(object, bytes) in asked {
        if let Some(place) = list.iter().position(|(other, _)| *other == object) {
            if policy == Policy::Lru {
                let used = list.remove(place);
                list.push(used);
            }
            continue;
        }
        misses += 1;
        missed_bytes += u64::from(bytes);
        let size = if by_objects { 1 } else { u64::from(bytes) };
        let held = |list: &[(u64, u64)]| list.iter().map(|(_, size)| size).sum::<u64>();
        if size > most || policy == Policy::FirstIn && held(&list) + size > most {
            continue;
        }
        while held(&list) + size > most {
            list.remove(0);
        }
        list.push((object, size));
    }
    (misses, missed_bytes)
}

proptest! {
    /// With room for all objects, a cache never evicts one: there are as many misses as objects.
    #[test]
    fn with_room_for_all_an_object_misses_once(asked in prop::collection::vec(0u64..300, 0..9000)) {
        let asked: Vec<(u64, u32)> = asked.into_iter().map(|object| (object, 7)).collect();
        let objects: std::collections::HashSet<_> = asked.iter().collect();
        for policy in Policy::ALL {
            for capacity in [Capacity::Objects(300), Capacity::Bytes(7 * 300)] {
                prop_assert_eq!(misses(&asked, policy, capacity).0, objects.len() as u64, "{}", policy);
            }
        }
    }

    #[test]
    fn every_cache_counts_what_a_list_does(
        asked in prop::collection::vec((0u64..30, 0u32..50), 0..400),
        objects in 0u64..20,
        bytes in 0u64..500,
    ) {
        let mut caches = Vec::new();
        for policy in OF_A_LIST {
            for capacity in [Capacity::Objects(objects), Capacity::Bytes(bytes)] {
                caches.push(Cache { policy, capacity });
            }
        }
        // Caches that replay the stream together count the same as each cache alone.
        let counts = replay(stream(&asked), &caches).unwrap();
        for (cache, counts) in caches.iter().zip(counts) {
            let expected = by_list(&asked, cache.policy, cache.capacity);
            prop_assert_eq!((counts.misses, counts.missed_bytes), expected, "{:?}", cache);
            prop_assert_eq!(misses(&asked, cache.policy, cache.capacity), expected);
        }
    }

    #[test]
    fn a_larger_lru_never_misses_more(asked in prop::collection::vec(0u64..60, 0..9000)) {
        let asked: Vec<(u64, u32)> = asked.into_iter().map(|object| (object, 1)).collect();
        let caches: Vec<Cache> = [1, 2, 5, 20, 60].map(|objects| Cache { policy: Policy::Lru, capacity: Capacity::Objects(objects) }).into();
        let counts = replay(stream(&asked), &caches).unwrap();
        prop_assert!(counts.windows(2).all(|pair| pair[0].misses >= pair[1].misses));
    }
}
