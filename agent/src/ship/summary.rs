//! Result of one `ship` command.

use crate::ship::mark::ShippingProgress;
use gleaner_schemas::units::Bytes;
use serde::Serialize;

/// Records sent, and the collector's progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The collector's address.
    pub collector: String,
    /// Number of records sent and acknowledged.
    pub records_count: u64,
    /// Number of rows of these records.
    pub rows_count: u64,
    /// Number of batches with these records.
    pub batches_count: u64,
    /// Length of these batches as sent.
    pub sent_bytes: u64,
    /// Number of records of damaged databases that could not be read completely.
    pub unreadable_records_count: u64,
    /// Number of records that are too large for the collector, or that it refuses for good; they stay on the
    /// host.
    pub skipped_records_count: u64,
    /// Collector's progress with the agent's database.
    pub shipping: ShippingProgress,
}

impl Summary {
    /// Renders the summary as text.
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
        if self.skipped_records_count > 0 {
            text += &format!(
                "{} records are too large for the collector or refused for good, and stay here\n",
                self.skipped_records_count
            );
        }
        text
    }
}
