//! Announcements: sent at once, the last of many, and the last one before the end.

use super::*;

#[tokio::test]
async fn what_the_core_says_is_told_at_once() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    core.is_up(true);
    let begin = Instant::now();
    core.links.announce(announcement(2));
    assert_eq!(quota_of(next(&mut socket).await), 2);
    assert!(begin.elapsed() < PATIENCE);
    for quota_bytes in 3..=5000 {
        core.links.announce(announcement(quota_bytes));
    }
    let mut told = Vec::new();
    while told.last() != Some(&5000) {
        told.push(quota_of(next(&mut socket).await));
    }
    assert!(
        told.is_sorted() && told.len() < 4998,
        "of many changes the last: {}",
        told.len()
    );
}

#[tokio::test]
async fn nothing_is_announced_before_the_core_has_said_anything() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    let mut socket = accept(&listener).await;
    core.is_up(true);
    ask(&mut socket, 4).await;
    let (link, request_id) = core.request();
    core.links.answer(link, answer(request_id));
    assert!(matches!(
        next(&mut socket).await,
        Some(HostMessage::Answer(_))
    ));
    core.links.announce(announcement(6));
    assert_eq!(quota_of(next(&mut socket).await), 6);
}

#[tokio::test]
async fn the_last_word_goes_out_before_the_end() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], HOUR));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    assert_eq!(quota_of(next(&mut socket).await), 1);
    let end = std::thread::spawn(move || {
        core.links.announce(announcement(0));
        core.end();
    });
    assert_eq!(quota_of(next(&mut socket).await), 0);
    while next(&mut socket).await.is_some() {}
    drop(socket);
    end.join().unwrap();

    // Neither a recruiter that reads nothing nor a missing recruiter delays the end.
    let begin = Instant::now();
    let core = Core::start(&settings(&[&url], HOUR));
    let socket = accept(&listener).await;
    core.is_up(true);
    core.end();
    drop((socket, listener));
    Core::start(&settings(&[&url], HOUR)).end();
    assert!(begin.elapsed() < PATIENCE / 2);
}
