//! The part of Iceberg's format, version 2, that Gleaner writes: data files of one partition spec and one sort order,
//! one manifest per snapshot, no deletes of single rows. Specification: <https://iceberg.apache.org/spec/>.

pub(crate) mod avro;
pub(crate) mod list;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod schema;

/// Error of parsing or encoding metadata; the caller adds the path.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct FormatError(pub(crate) String);

impl From<apache_avro::Error> for FormatError {
    fn from(error: apache_avro::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<serde_json::Error> for FormatError {
    fn from(error: serde_json::Error) -> Self {
        Self(error.to_string())
    }
}
