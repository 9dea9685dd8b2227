//! Tests of a node's pages.

use super::*;
use crate::global::age::class_of;
use proptest::prelude::*;

/// A loop over two pages, one of which was read a second before the other.
#[test]
fn only_the_first_use_of_a_minute_is_seen() {
    let mut pages = Pages::with_age_period(2, 60_000);
    let [a, b] = [1, 2].map(Uid::shared);
    let page = |uid, last_use_ms| Page {
        uid,
        last_use_ms,
        ..Page::default()
    };
    assert!(pages.insert(page(a, 1_000)) && pages.insert(page(b, 2_000)));
    let uses = |pages: &Pages| [a, b].map(|uid| pages.get(uid).unwrap().last_use_ms);
    assert_eq!(pages.touch(a, 59_999), Some(Kind::Local));
    assert_eq!(uses(&pages), [1_000, 2_000], "seen when it was inserted");
    assert_eq!(pages.oldest_local().unwrap().uid, a);
    pages.touch(a, 60_000);
    pages.touch(a, 61_000);
    assert_eq!(uses(&pages), [60_000, 2_000]);
    assert_eq!(pages.oldest_local().unwrap().uid, b);
    pages.touch(b, 119_999);
    pages.touch(a, 119_999);
    assert_eq!(uses(&pages), [60_000, 119_999]);
    assert_eq!(pages.oldest_local().unwrap().uid, a);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(Kind, i64),
    Touch,
    Refresh(i64),
    Remove,
    Mark(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..60i64).prop_map(|age| Step::Insert(Kind::Global, age)),
        3 => Just(Step::Insert(Kind::Local, 0)),
        2 => Just(Step::Touch),
        1 => (0..60i64).prop_map(Step::Refresh),
        2 => Just(Step::Remove),
        1 => any::<bool>().prop_map(Step::Mark),
    ]
}

proptest! {
    #[test]
    fn the_directory_is_a_plain_list(steps in prop::collection::vec((step(), 0..14u128), 0..120)) {
        let mut pages = Pages::new(8);
        let mut list: Vec<Page> = Vec::new();
        for (now_ms, (step, uid)) in (0_i64..).zip(steps) {
            let uid = Uid::shared(uid);
            let at = list.iter().position(|page| page.uid == uid);
            match step {
                Step::Insert(kind, age) => {
                    let page = Page { uid, last_use_ms: now_ms - age, kind, chances: 0 };
                    let fits = at.is_none() && list.len() < 8;
                    prop_assert_eq!(pages.insert(page), fits);
                    list.extend(fits.then_some(page));
                }
                Step::Touch => {
                    let mut page = at.map(|at| list.remove(at));
                    prop_assert_eq!(pages.touch(uid, now_ms), page.map(|page| page.kind));
                    if let Some(page) = &mut page {
                        page.last_use_ms = now_ms;
                        if page.kind == Kind::Global {
                            page.kind = Kind::Local;
                        }
                    }
                    list.extend(page);
                }
                Step::Refresh(age) => {
                    pages.refresh(uid, now_ms - age);
                    if let Some(at) = at.filter(|at| list[*at].kind == Kind::Global) {
                        list[at].last_use_ms = list[at].last_use_ms.max(now_ms - age);
                    }
                }
                Step::Remove => {
                    prop_assert_eq!(pages.remove(uid), at.map(|at| list.remove(at)));
                }
                Step::Mark(is_duplicate) => {
                    pages.mark_duplicate(uid, is_duplicate);
                    if let Some(at) = at.filter(|at| list[*at].kind != Kind::Global) {
                        list[at].kind = if is_duplicate { Kind::Duplicate } else { Kind::Local };
                    }
                }
            }
            let local = || list.iter().filter(|page| page.kind != Kind::Global);
            let global = list.iter().filter(|page| page.kind == Kind::Global);
            prop_assert_eq!(pages.oldest_local(), local().next().copied());
            let duplicate = local().find(|page| page.kind == Kind::Duplicate);
            prop_assert_eq!(pages.oldest_duplicate(), duplicate.copied());
            let oldest = global.min_by_key(|page| (page.last_use_ms, page.uid));
            prop_assert_eq!(pages.oldest_global(), oldest.copied());
            prop_assert_eq!(pages.len() as usize, list.len());
            prop_assert_eq!(pages.iter().count(), list.len());
            // At this time, ages lie around 1 s and 1.25 s, where classes begin.
            let at_ms = 1_030;
            let mut expected = Summary { free_frames: 8 - list.len() as u32, ..Summary::default() };
            for page in &list {
                expected.classes[class_of(page.age_ms(5, at_ms))] += 1;
            }
            prop_assert_eq!(pages.summary(5, at_ms), expected);
        }
    }
}

#[test]
fn global_pages_of_months_are_in_order() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let mut pages = Pages::new(200);
    let mut list = Vec::new();
    for number in 0..200_u32 {
        // Seven days later each, more than half a year in all, and one page as old as a number can say.
        let last_use_ms = match number {
            199 => i64::MIN,
            _ => i64::from(number * 7 % 199) * DAY_MS,
        };
        let page = Page {
            uid: Uid::shared(u128::from(number)),
            last_use_ms,
            kind: Kind::Global,
            chances: 0,
        };
        assert!(pages.insert(page));
        list.push(page);
    }
    for page in list.iter_mut().step_by(9) {
        page.last_use_ms = page.last_use_ms.max(150 * DAY_MS);
        pages.refresh(page.uid, 150 * DAY_MS);
    }
    let at_ms = 200 * DAY_MS;
    let mut expected = Summary::default();
    for page in &list {
        expected.classes[class_of(page.age_ms(5, at_ms))] += 1;
    }
    assert_eq!(pages.summary(5, at_ms), expected);
    list.sort_by_key(|page| (page.last_use_ms, page.uid));
    for page in list {
        assert_eq!(pages.oldest_global(), Some(page));
        assert_eq!(pages.remove(page.uid), Some(page));
    }
    assert_eq!(pages.oldest_global(), None);
}

#[test]
fn an_entry_takes_at_most_64_bytes() {
    for frames in [1000_u32, 4096, 5000, 100_000] {
        let mut pages = Pages::new(frames);
        for n in 0..frames {
            let kind = if n % 2 == 0 {
                Kind::Global
            } else {
                Kind::Local
            };
            assert!(pages.insert(Page {
                uid: Uid::shared(u128::from(n)),
                kind,
                ..Page::default()
            }));
        }
        let bytes = pages.bytes() as f64 / f64::from(frames);
        assert!(bytes <= 64.0, "{bytes} bytes of {frames} frames");
    }
    assert_eq!(size_of::<Frame>(), 32);
}
