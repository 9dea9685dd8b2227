//! Connections that end, fall silent, send invalid messages, or can never be made.

use super::*;
use gleaner_schemas::lending::{Refusal, RefusalKind};

#[tokio::test]
async fn what_ends_or_falls_silent_is_connected_to_anew() {
    let (listener, url) = listen().await;
    let core = Core::start(&settings(&[&url], Duration::from_millis(300)));
    core.links.announce(announcement(1));
    let mut socket = accept(&listener).await;
    core.is_up(true);
    assert_eq!(quota_of(next(&mut socket).await), 1);
    // The recruiter closes the connection.
    drop(socket);
    core.is_up(false);
    let socket = accept(&listener).await;
    core.is_up(true);
    // The recruiter is silent: it does not read, so that pings go unanswered.
    core.is_up(false);
    let mut again = accept(&listener).await;
    assert_eq!(quota_of(next(&mut again).await), 1);
    drop(socket);
    // The recruiter sends invalid JSON.
    again.send(Message::Text("{".into())).await.unwrap();
    let mut again = accept(&listener).await;
    // The link skips a message of a later version.
    let later = "{\"type\":\"fanfare\"}";
    again.send(Message::Text(later.into())).await.unwrap();
    ask(&mut again, 3).await;
    assert_eq!(core.request(), (0, 3));
    // The recruiter refuses the link.
    let refused = RecruiterMessage::Refused(Refusal {
        kind: RefusalKind::Ending,
        detail: "the recruiter ends".to_owned(),
        retry_in_ms: None,
    });
    let text = serde_json::to_string(&refused).unwrap();
    again.send(Message::Text(text.into())).await.unwrap();
    accept(&listener).await;
}

#[test]
fn what_can_never_work_is_said_at_once() {
    let refused = |settings: Settings| {
        let (links, ends) = Links::new(&settings.urls).unwrap();
        let entrance = entrance(&settings, Path::new("/nowhere"), &links);
        start(&settings, ends, &entrance).unwrap_err().to_string()
    };
    assert!(refused(settings(&["http://192.0.2.1:1"], HOUR)).contains("use https://"));
    let nameless = Settings {
        host_id: None,
        ..settings(&["http://127.0.0.1:1"], HOUR)
    };
    assert!(refused(nameless).contains("host_id"));
}
