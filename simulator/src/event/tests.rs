use super::*;
use proptest::prelude::*;

#[test]
fn ties_go_by_the_order_of_insertion() {
    let mut queue = Queue::default();
    for (at, name) in [(5, "c"), (3, "a"), (5, "d"), (3, "b")] {
        queue.put(at, name);
    }
    let all: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(all, [(3, "a"), (3, "b"), (5, "c"), (5, "d")]);
    assert_eq!(queue.now_ns(), 5);
}

#[test]
fn nothing_happens_in_the_past_nor_before_it_is_asked_for() {
    let mut queue = Queue::default();
    queue.put(10, "first");
    assert_eq!(queue.pop_until(9), None);
    assert_eq!(queue.pop_until(10), Some((10, "first")));
    assert_eq!(queue.put(4, "late").at_ns(), 10);
    assert_eq!(queue.next_ns(), Some(10));
}

#[test]
fn what_is_taken_back_does_not_happen() {
    let mut queue = Queue::default();
    let ticket = queue.put(1, 'x');
    queue.put(1, 'y');
    assert_eq!(
        [queue.cancel(ticket), queue.cancel(ticket)],
        [Some('x'), None]
    );
    assert_eq!(queue.pop(), Some((1, 'y')));
    assert!(queue.is_empty());
}

#[test]
fn a_ticket_of_an_event_that_is_over_cancels_no_later_event() {
    let mut queue = Queue::default();
    let first = queue.put(1, "first");
    queue.pop();
    let second = queue.put(2, "second");
    let third = queue.put(3, "third");
    assert_eq!(queue.peek_several().next(), Some(&"second"));
    assert_eq!(queue.cancel(first), None);
    assert_eq!(queue.cancel(third), Some("third"));
    queue.put(1, "fourth");
    assert_eq!(queue.cancel(third), None);
    assert_eq!(queue.pop(), Some((1, "fourth")));
    assert_eq!(queue.cancel(second), Some("second"));
    assert_eq!((queue.len(), queue.pop()), (0, None));
}

#[test]
fn events_that_are_cancelled_and_put_again_take_no_more_room() {
    let mut queue = Queue::default();
    queue.put(5, 0);
    for number in 1..10_000 {
        let ticket = queue.put(1_000 + number, number);
        assert_eq!(queue.cancel(ticket), Some(number));
    }
    assert_eq!(queue.len(), 1);
    assert!(queue.tickets.len() < 100 && queue.places.len() < 100);
    assert_eq!(queue.pop(), Some((5, 0)));
}

proptest! {
    /// The queue returns events in the order of a stably sorted list without the cancelled events.
    #[test]
    fn it_is_a_stable_sort(events in prop::collection::vec((0u64..20, any::<bool>()), 0..100)) {
        let mut queue = Queue::default();
        let tickets: Vec<_> = (events.iter().enumerate())
            .map(|(i, (at, _))| queue.put(*at, i))
            .collect();
        for (ticket, (_, is_taken_back)) in tickets.iter().zip(&events) {
            if *is_taken_back {
                queue.cancel(*ticket);
            }
        }
        let mut expected: Vec<_> = (events.iter().enumerate())
            .filter(|(_, (_, is_taken_back))| !is_taken_back)
            .map(|(i, (at, _))| (*at, i))
            .collect();
        expected.sort_by_key(|(at, _)| *at);
        prop_assert_eq!(queue.len(), expected.len());
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        prop_assert_eq!(popped, expected);
    }
}
