//! Marks: the last sealed record of each host's databases.

use crate::Result;
use crate::file::arrow_file::ArrowFile;
use crate::manifest::Manifest;
use crate::rows::identity::Identities;
use std::collections::HashMap;
use std::path::Path;

/// Highest sealed record sequence, by host and then by database.
#[derive(Debug, Default)]
pub(crate) struct Marks(HashMap<String, HashMap<String, i64>>);

impl Marks {
    /// Reads the marks of the whole dataset from the index of every file.
    pub(crate) fn read(root: &Path, manifest: &Manifest) -> Result<Self> {
        let mut marks = Self::default();
        for entry in &manifest.files {
            for host in ArrowFile::open(root, entry)?.hosts() {
                let host = host?;
                for database in &host.databases {
                    marks.raise(&host.host_id, &database.database_id, database.last_sequence);
                }
            }
        }
        Ok(marks)
    }

    /// Updates the marks with rows that were just sealed.
    pub(crate) fn add(&mut self, sealed: &Identities<'_>) {
        for ((host, database), (_, last)) in sealed.sequence_ranges() {
            self.raise(host, database, last);
        }
    }

    pub(crate) fn last_sequence(&self, host_id: &str, database_id: &str) -> Option<i64> {
        self.0.get(host_id)?.get(database_id).copied()
    }

    fn raise(&mut self, host_id: &str, database_id: &str, sequence: i64) {
        let known = self.0.get_mut(host_id).and_then(|h| h.get_mut(database_id));
        if let Some(last) = known {
            *last = sequence.max(*last);
            return;
        }
        let databases = self.0.entry(host_id.to_owned()).or_default();
        databases.insert(database_id.to_owned(), sequence);
    }
}
