//! Answers readers: `GET /v1/tables` and `GET /v1/tables/{table}`. These serve sealed rows, from the dataset
//! as it was when the request arrived.

use super::App;
use super::refusal::Refusal;
use super::stream::{self, Receiver, Sender, StreamBreak};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::writer::IpcWriteOptions;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Caller;
use gleaner_dataset::batch::{MEDIA_TYPE, is_id};
use gleaner_dataset::{Dataset, DatasetError, Selection, instant_ms};
use gleaner_schemas::arrow::schema;
use gleaner_schemas::column::Table;
use gleaner_schemas::rows::{DATASET_TABLES, table};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A table of the dataset.
#[derive(Debug, Serialize)]
pub(super) struct TableEntry {
    name: &'static str,
    meaning: &'static str,
    rows_count: u64,
    /// UTC days on which the table has rows.
    dates: Vec<String>,
    columns: Vec<ColumnEntry>,
}

/// A column of a table.
#[derive(Debug, Serialize)]
struct ColumnEntry {
    name: String,
    /// Name of the Arrow type.
    #[serde(rename = "type")]
    data_type: String,
    is_nullable: bool,
    unit: Option<String>,
    meaning: Option<&'static str>,
}

/// Answers `GET /v1/tables`.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Vec<TableEntry>>, Refusal> {
    let listed = async {
        app.may_read(&caller)?;
        let reading = Arc::clone(&app);
        let dataset = tokio::task::spawn_blocking(move || open(&reading)).await;
        let dataset = dataset.map_err(|e| Refusal::internal(e.to_string()))??;
        Ok(DATASET_TABLES
            .iter()
            .map(|t| entry(t, dataset.as_ref()))
            .collect())
    };
    let listed: Result<_, Refusal> = listed.await;
    listed
        .map(Json)
        .map_err(|refusal| app.refuse(&caller.name(), refusal))
}

fn entry(table: &Table, dataset: Option<&Dataset>) -> TableEntry {
    let columns = schema(table);
    let columns = columns.fields().iter().map(|field| ColumnEntry {
        name: field.name().clone(),
        data_type: field.data_type().to_string(),
        is_nullable: field.is_nullable(),
        unit: field.metadata().get("unit").cloned(),
        meaning: table
            .columns
            .iter()
            .find(|column| column.name == field.name())
            .map(|column| column.doc.trim()),
    });
    TableEntry {
        name: table.name,
        meaning: table.doc.trim(),
        rows_count: dataset.map_or(0, |d| d.rows(table)),
        dates: dataset.map_or_else(Vec::new, |d| d.dates(table)),
        columns: columns.collect(),
    }
}

/// Parameters of a request for rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)] // an ignored misspelt filter would select all hosts' rows
pub(super) struct RowsQuery {
    host: Option<String>,
    from: Option<String>,
    to: Option<String>,
    columns: Option<String>,
    #[serde(default)]
    compression: Compression,
}

/// Compression of the stream's buffers.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Compression {
    #[default]
    Zstd,
    None,
}

/// Answers `GET /v1/tables/{table}`.
pub(super) async fn rows(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    query: Result<Query<RowsQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let begun = begin(&app, &caller, &name, query).await;
    begun
        .map(|rows| ([(header::CONTENT_TYPE, MEDIA_TYPE)], Body::new(rows)).into_response())
        .map_err(|refusal| app.refuse(&caller.name(), refusal))
}

async fn begin(
    app: &Arc<App>,
    caller: &Caller,
    name: &str,
    query: Result<Query<RowsQuery>, QueryRejection>,
) -> Result<Receiver, Refusal> {
    app.may_read(caller)?;
    let table = table(name).ok_or_else(|| unknown_table(name))?;
    let Query(query) = query.map_err(|e| Refusal::malformed(e.body_text()))?;
    let reading = Reading {
        selection: selection(&query, app)?,
        app: Arc::clone(app),
        reader: caller.name(),
        table,
        compression: query.compression,
        _permit: permit(app)?,
    };
    let (sender, receiver) = stream::channel();
    let (answer, answered) = oneshot::channel();
    tokio::task::spawn_blocking(move || reading.run(sender, answer));
    let answered = answered.await;
    answered.map_err(|e| Refusal::internal(e.to_string()))??;
    Ok(receiver)
}

fn unknown_table(name: &str) -> Refusal {
    let names: Vec<&str> = DATASET_TABLES.iter().map(|table| table.name).collect();
    Refusal::not_found(format!(
        "there is no table {name:?}; there are {}",
        names.join(", ")
    ))
}

fn permit(app: &App) -> Result<OwnedSemaphorePermit, Refusal> {
    let busy = |_| {
        let reason = "the maximum number of concurrent readers is reached";
        Refusal::busy(reason, Duration::from_secs(10))
    };
    Arc::clone(&app.readers).try_acquire_owned().map_err(busy)
}

fn selection(query: &RowsQuery, app: &App) -> Result<Selection, Refusal> {
    let list = |text: &String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let instant = |key: &str, text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let unknown = || {
            Refusal::malformed(format!(
                "{key}={text} is no time: a date (UTC), RFC 3339 (2026-11-21T08:00:00Z; + is written %2B), or ms since 1970-01-01 UTC"
            ))
        };
        instant_ms(text).map(Some).ok_or_else(unknown)
    };
    let hosts = query.host.as_ref().map(list);
    let hosts = hosts.map(|hosts| hosts.iter().map(|host| host_id(host, app)).collect());
    Ok(Selection {
        hosts: hosts.transpose()?,
        from_ms: instant("from", &query.from)?,
        until_ms: instant("to", &query.to)?,
        columns: query.columns.as_ref().map(list),
    })
}

/// Resolves a host's id or name to its id.
fn host_id(host: &str, app: &App) -> Result<String, Refusal> {
    if is_id(host) {
        return Ok(host.to_owned());
    }
    match &app.hosts.named(host)[..] {
        [id] => Ok(id.clone()),
        [] => Err(Refusal::not_found(format!(
            "no host is called {host:?}; /v1/status lists hosts and their ids"
        ))),
        several => Err(Refusal::malformed(format!(
            "several hosts are called {host:?}; ask by id: {}",
            several.join(", ")
        ))),
    }
}

/// Opens the present dataset; `None` if nothing was sealed yet.
fn open(app: &App) -> Result<Option<Dataset>, DatasetError> {
    match Dataset::open(&app.dataset) {
        Ok(dataset) => Ok(Some(dataset)),
        Err(DatasetError::NotADataset { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// State of serving one reader.
struct Reading {
    app: Arc<App>,
    reader: String,
    table: Table,
    selection: Selection,
    compression: Compression,
    _permit: OwnedSemaphorePermit,
}

impl Reading {
    /// Reads and sends rows. A failure before the first row becomes the `answer`; a later failure breaks the
    /// stream off.
    fn run(self, sender: Sender, answer: oneshot::Sender<Result<(), Refusal>>) {
        let mut answer = Some(answer);
        if let Err(refusal) = self.serve(sender, &mut answer)
            && let Some(answer) = answer
        {
            let _ = answer.send(Err(refusal)); // the reader may have gone
        }
    }

    fn serve(
        &self,
        sender: Sender,
        answer: &mut Option<oneshot::Sender<Result<(), Refusal>>>,
    ) -> Result<(), Refusal> {
        let dataset = open(&self.app)?;
        let selected = dataset.as_ref();
        let selected = selected.map(|d| d.select(&self.table, &self.selection));
        let mut batches = selected.transpose()?.into_iter().flatten().peekable();
        let schema = self.selection.schema(&self.table)?;
        let options = self.compression.options();
        let options = options.map_err(|e| Refusal::internal(e.to_string()))?;
        if let Some(Err(error)) = batches.next_if(Result::is_err) {
            return Err(error.into());
        }
        let is_there = answer.take().is_some_and(|a| a.send(Ok(())).is_ok());
        if is_there {
            match sender.send(&schema, options, batches) {
                Ok(()) => self.app.refusals.forget(&self.reader),
                Err(StreamBreak::Gone) => {}
                Err(StreamBreak::Unreadable(error)) => self.report(&error.to_string()),
                Err(StreamBreak::Unwritable(error)) => self.report(&error.to_string()),
            }
        }
        Ok(())
    }

    /// Logs a failure that the reader does not learn, since its stream broke off.
    fn report(&self, error: &str) {
        self.app.metrics.rejected("other");
        self.app.log_refusal(&self.reader, error);
    }
}

impl Compression {
    fn options(self) -> Result<IpcWriteOptions, ArrowError> {
        let codec = match self {
            Self::Zstd => Some(CompressionType::ZSTD),
            Self::None => None,
        };
        IpcWriteOptions::default().try_with_compression(codec)
    }
}
