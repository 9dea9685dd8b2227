//! Every policy: tables worked by hand, and random sequences of events.

use super::*;
use proptest::prelude::*;

/// Returns, for each requested page in order, true if a cache of `room` pages missed it.
pub(super) fn misses_of<E: Eviction>(room: u32, pages: &[u32]) -> Vec<bool> {
    let mut order = E::of(64);
    let mut len = 0;
    let mut misses = |page: u32| {
        if order.contains(page) {
            order.used(page);
            return false;
        }
        if len == room {
            if order.evict(usize::MAX, |_| true).is_none() {
                return true;
            }
        } else {
            len += 1;
        }
        order.enter(page);
        true
    };
    pages.iter().map(|page| misses(*page)).collect()
}

/// The result as letters: `h` for a hit, `m` for a miss.
pub(super) fn asked<E: Eviction>(room: u32, pages: &[u32]) -> String {
    let misses = misses_of::<E>(room, pages);
    let letter = |is_miss| if is_miss { 'm' } else { 'h' };
    misses.into_iter().map(letter).collect()
}

#[test]
fn each_order_on_one_table_worked_by_hand() {
    // After the requests 1, 2, 1, both places are taken when page 3 comes. Lru: 2 leaves. Fifo: 1 leaves,
    // though it was used last. FirstIn: 3 is not stored.
    let pages = [1, 2, 1, 3, 1, 2, 3, 1];
    assert_eq!(asked::<Lru>(2, &pages), "mmhmhmmm");
    assert_eq!(asked::<Fifo>(2, &pages), "mmhmmmmm");
    assert_eq!(asked::<FirstIn>(2, &pages), "mmhmhhmh");
    // A scan of more pages than fit: the study's reason for "first in".
    let scans = [1, 2, 3, 1, 2, 3, 1, 2, 3];
    assert_eq!(asked::<Lru>(2, &scans), "mmmmmmmmm");
    assert_eq!(asked::<Fifo>(2, &scans), "mmmmmmmmm");
    assert_eq!(asked::<FirstIn>(2, &scans), "mmmhhmhhm");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u32),
    Used(u32),
    Leave(u32),
    /// Evicts among the pages whose bit is set, with the given limit of `may_leave` calls.
    Evict(u32, usize),
    Grow(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u32..20).prop_map(Step::Enter),
        4 => (0u32..20).prop_map(Step::Used),
        1 => (0u32..20).prop_map(Step::Leave),
        2 => Just(Step::Evict(u32::MAX, usize::MAX)),
        1 => (any::<u32>(), 0usize..8).prop_map(|(may_leave, most)| Step::Evict(may_leave, most)),
        1 => any::<u32>().prop_map(|may_leave| Step::Evict(may_leave, usize::MAX)),
        1 => (0u32..20).prop_map(Step::Grow),
    ]
}

proptest! {
    /// Only stored pages that may leave are evicted. If there is such a page, one is evicted, unless the
    /// policy never evicts.
    #[test]
    fn what_leaves_was_in_and_may_leave(steps in prop::collection::vec(step(), 0..300)) {
        for policy in Policy::ALL {
            let mut order = Order::new(policy, 8);
            let (mut pages, mut is_in) = (8, [false; 20]);
            for step in &steps {
                match *step {
                    Step::Enter(page) => {
                        order.enter(page);
                        is_in[page as usize] |= page < pages;
                    }
                    Step::Used(page) => order.used(page),
                    Step::Leave(page) => {
                        order.leave(page);
                        is_in[page as usize] = false;
                    }
                    Step::Evict(mask, most_asked) => {
                        let may_leave = |page: u32| mask & 1 << page != 0;
                        let mut asked_count = 0;
                        let evicted = order.evict(most_asked, |page| {
                            assert!(is_in[page as usize], "{policy}");
                            asked_count += 1;
                            may_leave(page)
                        });
                        prop_assert!(asked_count <= most_asked, "{}", policy);
                        let mut pages = (0..20).filter(|page| is_in[*page as usize] && may_leave(*page));
                        let is_any = pages.next().is_some();
                        match evicted {
                            Some(page) => {
                                prop_assert!(is_in[page as usize] && may_leave(page), "{}", policy);
                                is_in[page as usize] = false;
                            }
                            None => prop_assert!(
                                !is_any || most_asked != usize::MAX || policy == Policy::FirstIn,
                                "{}", policy
                            ),
                        }
                    }
                    Step::Grow(more) => {
                        order.grow(more);
                        pages = pages.max(more);
                    }
                }
                for (page, is_in) in (0..).zip(is_in) {
                    prop_assert_eq!(order.contains(page), is_in, "{} {}", policy, page);
                }
            }
        }
    }
}

/// The documentation's table has a row for each policy.
#[test]
fn the_book_describes_every_policy() {
    let page = include_str!("../../../docs/streams.md");
    for policy in Policy::ALL {
        assert!(page.contains(&format!("\n| `{policy}` |")), "{policy}");
    }
}
