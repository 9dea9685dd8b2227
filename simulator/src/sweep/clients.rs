//! Tables `[[clients]]` of a scenario file: recorded streams that run instead of programs.

use super::SweepError;
use crate::event::SECOND;
use crate::streams::read::{BlockBytes, Columns, Format, FormatName};
use crate::streams::{StoredObjects, StreamError};
use serde::Deserialize;
use std::fs::File;
use std::path::PathBuf;

/// A recorded stream, or one client of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTable {
    /// Name of the client; with several clients, each one's number is appended. Default: the file's name.
    pub name: Option<String>,
    /// Path of the stream's file.
    pub stream: PathBuf,
    /// Format of the stream; absent: by the file's name.
    pub format: Option<FormatName>,
    /// Columns of CSV, as in `gleaner export --stream-params`; absent: those that Gleaner writes.
    pub params: Option<String>,
    /// Size of a volume's blocks; default: 4096.
    pub block_bytes: Option<u32>,
    /// Layout of the stream's objects; default: that of the format.
    pub store: Option<Store>,
    /// Only the client with this number (SPC: the ASU; CSV: the column's value); default: all clients of the
    /// stream.
    pub client: Option<u32>,
    /// Host that the client works on, by id or name; with several clients, a list with one host for each, in
    /// the order of their numbers. Default: none.
    #[serde(default, deserialize_with = "one_or_several")]
    pub host: Vec<String>,
    /// Time of the stream's first request, in s since the simulation's begin.
    #[serde(default)]
    pub begin_s: f64,
}

/// Layout of a stream's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Store {
    /// Blocks of a volume, by number.
    Volume,
    /// Named objects, each of its own size.
    Objects,
}

/// A `[[clients]]` table whose contents have been checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Name of the clients. If `is_numbered`, the client's number is appended even for a single client.
    pub(super) name: String,
    pub(super) is_numbered: bool,
    pub(super) stream: PathBuf,
    pub(super) format: Format,
    pub(super) stored: StoredObjects,
    pub(super) client: Option<u32>,
    pub(super) hosts: Vec<String>,
    pub(super) begin_ns: u64,
}

impl ClientTable {
    /// Checks this table and returns its recording; no file is opened.
    pub(super) fn recording(&self, length_ns: u64) -> Result<Recording, SweepError> {
        let (of_file, said) = FormatName::of_file(&self.stream);
        let Some(format) = self.format.or(said) else {
            return Err(wrong(
                "stream",
                self.stream.display(),
                "its name does not say what is in it: write `format`, one of oracleGeneral, csv, spc, blocks, lackey",
            ));
        };
        let is_of_blocks = matches!(
            format,
            FormatName::Spc | FormatName::Blocks | FormatName::Lackey
        );
        let store = self.store.unwrap_or(match is_of_blocks {
            true => Store::Volume,
            false => Store::Objects,
        });
        let block = self.block(is_of_blocks || store == Store::Volume)?;
        Ok(Recording {
            name: self.name.clone().unwrap_or(of_file),
            is_numbered: self.name.is_none() && self.client.is_some(),
            stream: self.stream.clone(),
            format: self.format_of(format, block)?,
            stored: match store {
                Store::Volume => StoredObjects::AsVolume(block),
                Store::Objects => StoredObjects::AsObjects,
            },
            client: self.client,
            hosts: self.host.clone(),
            begin_ns: self.begin_ns(length_ns)?,
        })
    }

    fn block(&self, has_blocks: bool) -> Result<BlockBytes, SweepError> {
        let Some(bytes) = self.block_bytes else {
            return Ok(BlockBytes::default());
        };
        if !has_blocks {
            let reason =
                "objects that are named have no blocks: leave it out, or write store = \"volume\"";
            return Err(wrong("block_bytes", bytes, reason));
        }
        let reason = "a power of two from 512 on";
        BlockBytes::new(bytes).ok_or_else(|| wrong("block_bytes", bytes, reason))
    }

    fn format_of(&self, name: FormatName, block: BlockBytes) -> Result<Format, SweepError> {
        let columns = match (&self.params, name) {
            (None, _) => Columns::ours(),
            (Some(text), FormatName::Csv) => {
                Columns::of(text).map_err(|e| wrong("params", text, e))?
            }
            (Some(text), _) => {
                let reason = "it says which column of a csv is what, and the stream is none";
                return Err(wrong("params", text, reason));
            }
        };
        Ok(match name {
            FormatName::OracleGeneral => Format::OracleGeneral,
            FormatName::Csv => Format::Csv(columns),
            FormatName::Spc => Format::Spc(block),
            FormatName::Blocks => Format::BlockCsv(block),
            FormatName::Lackey => Format::Lackey(block),
        })
    }

    fn begin_ns(&self, length_ns: u64) -> Result<u64, SweepError> {
        let begin_ns = self.begin_s * SECOND as f64;
        if (0.0..length_ns as f64).contains(&begin_ns) {
            return Ok(begin_ns as u64);
        }
        let reason = "0 or more, and before the simulation's end (`days`)";
        Err(wrong("begin_s", self.begin_s, reason))
    }
}

impl Recording {
    /// Hash (BLAKE3), in hexadecimal, of the stream's content and of the table's other settings.
    pub(super) fn hash(&self) -> Result<String, SweepError> {
        let failed = |action| {
            let path = self.stream.clone();
            move |source| StreamError::Io {
                action,
                path,
                source,
            }
        };
        let mut hash = blake3::Hasher::new();
        // `Debug` shows every setting. The path may differ from one machine to the next.
        let settings = Self {
            stream: PathBuf::new(),
            ..self.clone()
        };
        hash.update(format!("{settings:?}").as_bytes());
        let content = File::open(&self.stream).map_err(failed("open"))?;
        hash.update_reader(content).map_err(failed("read"))?;
        Ok(hash.finalize().to_string())
    }
}

/// Makes an error about a key of a `[[clients]]` table, with the key's value and the reason.
pub(super) fn wrong(key: &'static str, value: impl ToString, reason: impl ToString) -> SweepError {
    SweepError::Client {
        key,
        value: value.to_string(),
        reason: reason.to_string(),
    }
}

/// Parses a string, or a list of strings.
fn one_or_several<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a host's id or name, or a list of them")]
    enum Hosts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Hosts::deserialize(from)? {
        Hosts::One(host) => vec![host],
        Hosts::Several(hosts) => hosts,
    })
}
