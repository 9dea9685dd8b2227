//! Sends quotas and their changes as server-sent events (WHATWG HTML, 9.2).

use super::problem::Problem;
use super::{App, quotas};
use crate::registry::Changes;
use axum::extract::{Extension, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use gleaner_daemon::listen::Caller;
use gleaner_schemas::lending::Quotas;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;

/// Interval of keep-alive messages. They show each end that the other end is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

impl App {
    /// Sends changes of quotas to watching readers.
    pub(crate) fn tell(&self, changes: &Changes, now_ms: i64) {
        self.feed.tell(|| quotas::changed(changes, now_ms));
    }
}

/// Current quotas of all hosts, followed by each change.
///
/// The first event, `quotas`, has all hosts; each event `changed` has the hosts that changed since the last event, up to four times
/// a second. A host that disappears is sent once more, with a quota of 0 and the reason `unknown`. A caller that reads too slowly is
/// disconnected, and gets all hosts again when it reconnects.
#[utoipa::path(
    get,
    path = "/v1/quotas/watch",
    tag = "quotas",
    responses(
        (status = 200, description = "Events whose data are `Quotas`", body = Quotas, content_type = "text/event-stream"),
        (status = 400, description = "Malformed request", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "No certificate, or one that has expired or is revoked", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The certificate does not allow this request", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn watch(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    app.may_read(&caller)?;
    // Subscribes before making the full list, so that no change in between is missed.
    let receiver = app.feed.subscribe();
    let whole = quotas::all(&app).await?;
    let watching = WatchState {
        app,
        caller,
        receiver,
        whole: Some(whole),
    };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(stream::unfold(watching, next)).keep_alive(keep_alive))
}

struct WatchState {
    app: Arc<App>,
    caller: Caller,
    receiver: Receiver<Arc<str>>,
    whole: Option<String>,
}

async fn next(mut watching: WatchState) -> Option<(Result<Event, Infallible>, WatchState)> {
    if let Some(whole) = watching.whole.take() {
        return Some((Ok(Event::default().event("quotas").data(whole)), watching));
    }
    // On an error the stream ends: the reader is too far behind, or the recruiter ends.
    let changed = watching.receiver.recv().await.ok()?;
    // The caller's certificate may have been revoked since the last event.
    watching.app.may_read(&watching.caller).ok()?;
    let event = Event::default().event("changed").data(&*changed);
    Some((Ok(event), watching))
}
