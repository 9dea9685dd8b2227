//! Intake of batches: `POST /v1/batches` and `GET /v1/mark`.

use super::App;
use super::permissions::Writer;
use super::refusal::Refusal;
use super::turns::Turn;
use crate::hosts::Facts;
use crate::journal::{Entry, Header, JournalRefusal};
use crate::now_ms;
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use gleaner_daemon::listen::Caller;
use gleaner_dataset::batch::is_id;
use gleaner_dataset::{Batch, BatchError};
use http_body_util::BodyExt;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

/// Header with the sender's clock at the beginning of the request, ms since 1970-01-01 UTC.
const SENT: &str = "gleaner-sent-ms";
/// Timeout of a batch, in addition to its transfer time at [`SLOWEST_BYTES_PER_S`].
const PATIENCE: Duration = Duration::from_secs(30);
/// Minimum speed of a host's link. Hosts with slower links must send smaller batches.
const SLOWEST_BYTES_PER_S: u64 = 8 << 10;
const KIB: usize = 1024;
/// 2000-01-01 UTC: earlier records come from a clock that was not set.
const FIRST_TIME_MS: i64 = 946_684_800_000;
/// Maximum time by which a record may be ahead of the collector's clock: a year.
const AHEAD_MS: i64 = 366 * 86_400_000;
/// Maximum difference of clocks that agree: a day.
const AGREEING_MS: u64 = 86_400_000;
/// Maximum bytes of a refused batch that are read before the connection is closed.
const DISCARDED_BYTES: usize = 64 << 20;
/// Timeout of reading the discarded bytes.
const DISCARD: Duration = Duration::from_secs(10);

/// Answer to a sender whose batch is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Acknowledgement {
    /// Highest sequence number of the batch's records.
    acknowledged_sequence: i64,
    /// Number of the batch's rows.
    rows_count: u64,
}

/// Accepts one batch.
pub(super) async fn receive(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Acknowledgement>, Refusal> {
    let received = store_batch(&app, &caller, &headers, body).await;
    match received {
        Ok(done) => {
            app.refusals.forget(&caller.name());
            Ok(Json(done))
        }
        Err(refusal) => Err(app.refuse(&caller.name(), refusal)),
    }
}

/// Permits that a batch needs before its body is read.
struct Admission<'a> {
    writer: Writer,
    length: usize,
    arrived_ms: i64,
    _turn: Turn,
    _room: SemaphorePermit<'a>,
}

fn admit<'a>(app: &'a App, caller: &Caller, headers: &HeaderMap) -> Result<Admission<'a>, Refusal> {
    let arrived_ms = now_ms();
    let writer = app.writer(caller)?;
    let length = content_length(headers)?;
    let limit = app.batch_limits().compressed_bytes;
    if length > limit {
        return Err(Refusal::too_large(format!(
            "the batch has {length} bytes, and the maximum is {limit}; send fewer records per batch"
        )));
    }
    let turn = app.turns.take(&writer, caller);
    let room = u32::try_from(length.div_ceil(KIB).max(1)).unwrap_or(u32::MAX);
    let room = app.memory.try_acquire_many(room);
    Ok(Admission {
        writer,
        length,
        arrived_ms,
        _turn: turn.ok_or_else(|| busy("another batch of this host is being accepted"))?,
        _room: room.map_err(|_| busy("all memory for batches is in use"))?,
    })
}

fn busy(what: &str) -> Refusal {
    Refusal::busy(what, Duration::from_secs(5))
}

async fn store_batch(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Acknowledgement, Refusal> {
    let admitted = match admit(app, caller, headers) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            discard(body).await;
            return Err(refusal);
        }
    };
    let Admission {
        writer,
        length,
        arrived_ms,
        ..
    } = &admitted;
    let length = *length;
    let body = read_body(body, length).await?;
    let (batch_limits, content) = (app.batch_limits(), body.clone());
    let decoding = app.decoders.acquire().await;
    let decoded = tokio::task::spawn_blocking(move || {
        let batch = Batch::decode(&content, &batch_limits)?;
        let misdated = misdated(&batch, now_ms());
        let facts = Facts::of(&batch)?;
        Ok::<_, BatchError>((facts, summary(&batch), batch.table_days, misdated))
    });
    let decoded = decoded.await;
    drop(decoding);
    let (facts, mut header, table_days, misdated) =
        decoded.map_err(|e| Refusal::internal(e.to_string()))??;
    authorize(app, writer, &header.host_id)?;
    let sent_ms = headers
        .get(SENT)
        .and_then(|v| v.to_str().ok()?.parse().ok());
    if let Some(reason) = misdated {
        return Err(match clocks_agree(sent_ms, *arrived_ms) {
            true => Refusal::for_good(reason),
            false => Refusal::malformed(reason),
        });
    }
    app.hosts.admit(&header, table_days)?;
    header.received_time_ms = now_ms();
    header.skew_ms = sent_ms.map(|sent_ms: i64| sent_ms.saturating_sub(*arrived_ms));
    let entry = Entry {
        header: header.clone(),
        body,
    };
    let written = app.journal.append(entry).await;
    written.map_err(|e| match e {
        JournalRefusal::Busy => busy("the collector's disk is busy"),
        JournalRefusal::Disk(_) => Refusal::unavailable(e.to_string(), Duration::from_secs(60)),
    })?;
    app.hosts.note_batch(&header, facts, length as u64);
    app.metrics.count_batch(header.rows_count, length as u64);
    Ok(Acknowledgement {
        acknowledged_sequence: header.last_sequence,
        rows_count: header.rows_count,
    })
}

/// Reason to refuse a batch whose host's clock was never set, or is more than a year ahead. Its records would
/// be in a part of the dataset that nobody reads.
fn misdated(batch: &Batch, now_ms: i64) -> Option<String> {
    if batch.first_time_ms < FIRST_TIME_MS {
        Some("it has records from before 2000: set that host's clock".to_owned())
    } else if batch.last_time_ms > now_ms.saturating_add(AHEAD_MS) {
        Some("it has records of more than a year ahead of the collector's clock: set that host's clock, or this one's".to_owned())
    } else {
        None
    }
}

/// Returns true if the sender's clock now agrees with the collector's. If the clocks differ, either may be
/// wrong. A collector that was started with a wrong clock must not cause the loss of records.
fn clocks_agree(sent_ms: Option<i64>, arrived_ms: i64) -> bool {
    sent_ms.is_some_and(|sent_ms| sent_ms.abs_diff(arrived_ms) < AGREEING_MS)
}

fn summary(batch: &Batch) -> Header {
    Header {
        host_id: batch.host_id.clone(),
        database_id: batch.database_id.clone(),
        first_sequence: batch.first_sequence,
        last_sequence: batch.last_sequence,
        rows_count: batch.rows_count(),
        received_time_ms: 0,
        skew_ms: None,
    }
}

pub(super) fn content_length(headers: &HeaderMap) -> Result<usize, Refusal> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|v| v.to_str().ok()?.parse().ok());
    length.ok_or_else(Refusal::no_length)
}

/// Reads and discards a part of a refused body. Otherwise a sender that is still writing when the connection
/// closes would not receive the reason.
pub(super) async fn discard(mut body: Body) {
    let read = async {
        let mut rest_bytes = DISCARDED_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match rest_bytes.checked_sub(bytes) {
                Some(rest) => rest_bytes = rest,
                None => break,
            }
        }
    };
    let _ = timeout(DISCARD, read).await; // if it is too slow, the connection closes
}

async fn read_body(mut body: Body, length: usize) -> Result<Bytes, Refusal> {
    let patience = PATIENCE + Duration::from_secs(length as u64 / SLOWEST_BYTES_PER_S);
    let read = async {
        // The buffer grows with the received bytes, so a false content length allocates no memory.
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| Refusal::malformed(e.to_string()))?;
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes.freeze())
    };
    timeout(patience, read).await.unwrap_or_else(|_| {
        Err(Refusal::too_slow(format!(
            "the batch did not arrive within {} s; send fewer records per batch",
            patience.as_secs()
        )))
    })
}

/// Checks that the writer may write rows of this host.
fn authorize(app: &App, writer: &Writer, host_id: &str) -> Result<(), Refusal> {
    let is_theirs = match writer {
        Writer::Local => true,
        Writer::Host(id) => id == host_id,
        Writer::Named(name) => app.hosts.bind(name, host_id),
    };
    if is_theirs {
        return Ok(());
    }
    let reason = format!("these are rows of host {host_id}, and this certificate is another's");
    app.hosts.rejected(host_id, now_ms(), "forbidden", &reason);
    Err(Refusal::forbidden(reason))
}

/// Query of a host about one of its databases, or of a peer about a host's.
#[derive(Debug, Deserialize)]
pub(super) struct MarkQuery {
    host: String,
    database: String,
    /// True for the records of this collector only, without those of its peers.
    #[serde(default)]
    own: bool,
}

/// Sequence number of the last durable record of a database.
#[derive(Debug, Serialize)]
pub(super) struct Mark {
    acknowledged_sequence: Option<i64>,
}

/// Answers with the sequence number of the last record of a host's database that is durable here or at a peer. A host
/// that has moved from a peer thus sends no record again.
pub(super) async fn mark(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<MarkQuery>,
) -> Result<Json<Mark>, Refusal> {
    let own = own_mark(&app, &caller, &query).map_err(|r| app.refuse(&caller.name(), r))?;
    let of_peers = match query.own || app.peers().is_empty() {
        true => None,
        false => peers_mark(&app, query).await?,
    };
    Ok(Json(Mark {
        acknowledged_sequence: own.max(of_peers),
    }))
}

fn own_mark(app: &App, caller: &Caller, query: &MarkQuery) -> Result<Option<i64>, Refusal> {
    if !is_id(&query.host) || !is_id(&query.database) {
        return Err(Refusal::malformed(
            "host and database are 32 hexadecimal digits each",
        ));
    }
    // Readers, among them peers, find the same numbers in the status.
    if app.may_read(caller).is_err() {
        authorize(app, &app.writer(caller)?, &query.host)?;
    }
    Ok(app.hosts.mark(&query.host, &query.database))
}

async fn peers_mark(app: &Arc<App>, query: MarkQuery) -> Result<Option<i64>, Refusal> {
    let _question = app.peer_questions.acquire().await;
    let asked = Arc::clone(app);
    let ask = move || asked.peers().mark(&query.host, &query.database);
    let mark = tokio::task::spawn_blocking(ask).await;
    mark.map_err(|e| Refusal::internal(e.to_string()))
}
