//! What shipping once came to.

use crate::ship::mark::Shipped;
use gleaner_schemas::units::Bytes;
use serde::Serialize;

/// What was sent, and how far the collector now is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The collector's address.
    pub collector: String,
    /// Records sent and acknowledged.
    pub records_count: u64,
    /// Their rows.
    pub rows_count: u64,
    /// Batches that they travelled in.
    pub batches_count: u64,
    /// Length of these batches as sent.
    pub sent_bytes: u64,
    /// Records of damaged databases that could not be read, or not in all their parts.
    pub unreadable_records_count: u64,
    /// Records larger than the collector takes, which stay on the host.
    pub passed_over_records_count: u64,
    /// How far the collector is with the agent's database.
    pub shipped: Shipped,
}

impl Summary {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} records ({} rows) in {} batches ({}) to {}\n",
            self.records_count,
            self.rows_count,
            self.batches_count,
            Bytes::from(self.sent_bytes),
            self.collector,
        );
        if self.unreadable_records_count > 0 {
            text += &format!(
                "a database is damaged: {} records could not be read, or not in all their parts\n",
                self.unreadable_records_count
            );
        }
        if self.passed_over_records_count > 0 {
            text += &format!(
                "{} records are too large for the collector or refused for good, and stay here\n",
                self.passed_over_records_count
            );
        }
        text
    }
}
