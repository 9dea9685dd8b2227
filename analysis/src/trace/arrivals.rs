//! Times at which a host's records reached a collector, and times when nothing did although the host was up.
//!
//! The agent sends once an interval. A lease over the network would not have outlived a silence of many
//! intervals: one of more than five minutes, and of more than three times the usual pause, is an outage.
//! Only silence while the host recorded samples counts, and only between two arrivals: before the first,
//! the host may not have been enrolled; after the last, the rest may be on its way.

use crate::error::Result;
use crate::trace::frame::TIME;
use crate::trace::reader::HostReader;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ClockRow;

/// A silence of at most this is no outage, whatever is usual.
const SHORTEST_OUTAGE_MS: i64 = 5 * 60_000;

/// A silence of at most this many usual pauses is no outage either.
const USUAL_PAUSES: i64 = 3;

/// A time in which the host recorded samples, and none arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// Time of the last arrival, or of the first sample if the host came up without a network.
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// Arrivals by the host's clock, in order; none where no collector took the host's records in.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    time_ms: Vec<i64>,
    /// Pauses longer than this are outages.
    limit_ms: i64,
}

impl Arrivals {
    pub(crate) fn read(reader: &mut HostReader<'_>) -> Result<Self> {
        let rows = reader.read(&ClockRow::TABLE, &["skew_ms"])?;
        let arrived = rows.present(TIME)?.iter();
        let skew = rows.present("skew_ms")?.iter();
        // The row's time is the collector's, and the skew the host's clock less that.
        let by_host = arrived.zip(skew).map(|(t, skew)| t.saturating_add(*skew));
        Ok(Self::new(by_host.collect()))
    }

    pub(crate) fn new(mut time_ms: Vec<i64>) -> Self {
        time_ms.sort_unstable();
        let pauses = time_ms.windows(2).map(|w| w[1].saturating_sub(w[0]));
        let mut pauses: Vec<i64> = pauses.collect();
        pauses.sort_unstable();
        let usual_ms = pauses.get(pauses.len() / 2).copied().unwrap_or(0);
        Self {
            limit_ms: usual_ms
                .saturating_mul(USUAL_PAUSES)
                .max(SHORTEST_OUTAGE_MS),
            time_ms,
        }
    }

    /// Returns true if nothing is known of the network.
    pub(crate) fn is_empty(&self) -> bool {
        self.time_ms.is_empty()
    }

    /// Outages during a run of samples from `from_ms` to `to_ms`, in order.
    pub(crate) fn outages(&self, from_ms: i64, to_ms: i64) -> Vec<Outage> {
        let first = self.time_ms.partition_point(|&t| t <= from_ms);
        let pauses = self.time_ms[first.saturating_sub(1)..].windows(2);
        pauses
            .take_while(|pause| pause[0] < to_ms)
            .map(|pause| Outage {
                from_ms: pause[0].max(from_ms),
                to_ms: pause[1].min(to_ms),
            })
            .filter(|outage| outage.to_ms.saturating_sub(outage.from_ms) > self.limit_ms)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: i64 = 60_000;

    fn outages(arrivals: &[i64], from: i64, to: i64) -> Vec<(i64, i64)> {
        let arrivals = Arrivals::new(arrivals.iter().map(|t| t * MIN).collect());
        let found = arrivals.outages(from * MIN, to * MIN);
        let minutes = |o: &Outage| (o.from_ms / MIN, o.to_ms / MIN);
        found.iter().map(minutes).collect()
    }

    #[test]
    fn worked_by_hand() {
        // One a minute except from 5 to 15; five minutes of silence do not count yet.
        let arrivals = [0, 1, 2, 3, 4, 5, 15, 16, 17, 18, 23];
        assert_eq!(outages(&arrivals, 0, 100), [(5, 15)]);
        // Asleep from 6 to 14: silent, but not for long while up.
        assert_eq!(outages(&arrivals, 0, 6), []);
        assert_eq!(outages(&arrivals, 14, 100), []);
        // Up again at 8: silent for seven minutes; the run before ends with its sleep.
        assert_eq!(outages(&arrivals, 8, 100), [(8, 15)]);
        // Inside the silence.
        assert_eq!(outages(&arrivals, 6, 14), [(6, 14)]);
        // Before the first and after the last arrival nothing is said.
        assert_eq!(outages(&arrivals, -100, -1), []);
        assert_eq!(outages(&arrivals, -100, 2), []);
        assert_eq!(outages(&arrivals, 50, 100), []);
        assert_eq!(outages(&[], 0, 100), []);
        assert_eq!(outages(&[50], 0, 100), []);
        // If ten minutes are usual, half an hour does not count yet.
        let slow = [0, 10, 20, 30, 60, 70, 80, 111];
        assert_eq!(outages(&slow, 0, 200), [(80, 111)]);
    }
}
