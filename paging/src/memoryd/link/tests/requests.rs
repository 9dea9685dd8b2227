//! Requests and answers: each answer finds the link of its request, and too many requests are refused.

use super::*;

#[tokio::test]
async fn requests_are_passed_on_and_answers_find_their_way() {
    let (first, first_url) = listen().await;
    let (second, second_url) = listen().await;
    let core = Core::start(&settings(&[&first_url, &second_url], HOUR));
    let (mut one, mut two) = (accept(&first).await, accept(&second).await);
    ask(&mut one, 17).await;
    assert_eq!(core.request(), (0, 17));
    ask(&mut two, 17).await;
    assert_eq!(core.request(), (1, 17));
    core.links.answer(1, answer(17));
    let Some(HostMessage::Answer(got)) = next(&mut two).await else {
        panic!("no answer")
    };
    assert_eq!((got.request_id, got.unleased_bytes), (17, 7));

    // The connection of the other request ends before its answer: the next connection has a request of the
    // same number, and must not get that answer.
    drop(one);
    let mut one = accept(&first).await;
    ask(&mut one, 17).await;
    assert_eq!(core.request(), (0, 17));
    core.links.answer(0, answer(17));
    let second_answer = Answer {
        unleased_bytes: 8,
        ..answer(17)
    };
    core.links.answer(0, second_answer);
    let Some(HostMessage::Answer(got)) = next(&mut one).await else {
        panic!("no answer")
    };
    assert_eq!(got.unleased_bytes, 8);
}

#[tokio::test]
async fn more_requests_than_may_wait_are_refused() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    let mut socket = accept(&listener).await;
    let last = REQUESTS_AT_ONCE as u64;
    for request_id in 0..=last {
        ask(&mut socket, request_id).await;
    }
    let Some(HostMessage::Answer(got)) = next(&mut socket).await else {
        panic!("no answer")
    };
    assert_eq!(got.request_id, last);
    assert!(
        matches!(&got.outcome, Outcome::Refused(refusal) if refusal.retry_in_ms.is_some()),
        "{got:?}"
    );
    for request_id in 0..last {
        assert_eq!(core.request(), (0, request_id));
        core.links.answer(0, answer(request_id));
    }
    for _ in 0..last {
        assert!(matches!(
            next(&mut socket).await,
            Some(HostMessage::Answer(_))
        ));
    }
    ask(&mut socket, 99).await;
    assert_eq!(core.request(), (0, 99));
}
