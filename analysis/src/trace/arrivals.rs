//! Times at which a host's records reached a collector, and outages: times without arrivals although the
//! host was up.
//!
//! The agent sends once per interval. A lease over the network would not have outlived a silence of many
//! intervals: an outage is a silence longer than five minutes and than three times the usual pause. Silence
//! counts only while the host recorded samples, and only between two arrivals: before the first, the host
//! may not have been enrolled; after the last, records may still be on their way.

use crate::error::Result;
use crate::trace::frame::TIME;
use crate::trace::reader::HostReader;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ClockRow;

/// Maximum silence that is no outage, whatever the usual pause.
const SHORTEST_OUTAGE_MS: i64 = 5 * 60_000;

/// Maximum silence that is no outage, in usual pauses.
const USUAL_PAUSES: i64 = 3;

/// A time in which the host recorded samples, but no records arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    /// Time of the last arrival, or of the first sample if the host came up without a network.
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// Arrivals by the host's clock, in order; none if no collector received the host's records.
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
        // The row's time is by the collector's clock; the skew is the host's clock minus the collector's.
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

    /// Returns true if no arrivals are known.
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
        // One arrival a minute, except from 5 to 15. Five minutes of silence (18 to 23) are no outage yet.
        let arrivals = [0, 1, 2, 3, 4, 5, 15, 16, 17, 18, 23];
        assert_eq!(outages(&arrivals, 0, 100), [(5, 15)]);
        // The host is asleep from 6 to 14: it is silent, but only briefly while up.
        assert_eq!(outages(&arrivals, 0, 6), []);
        assert_eq!(outages(&arrivals, 14, 100), []);
        // The host is up again at 8: it is silent for seven minutes. The run before ends when it falls
        // asleep.
        assert_eq!(outages(&arrivals, 8, 100), [(8, 15)]);
        // A run that lies inside the silence.
        assert_eq!(outages(&arrivals, 6, 14), [(6, 14)]);
        // Before the first and after the last arrival, silence is no outage.
        assert_eq!(outages(&arrivals, -100, -1), []);
        assert_eq!(outages(&arrivals, -100, 2), []);
        assert_eq!(outages(&arrivals, 50, 100), []);
        assert_eq!(outages(&[], 0, 100), []);
        assert_eq!(outages(&[50], 0, 100), []);
        // If pauses of ten minutes are usual, half an hour is no outage yet.
        let slow = [0, 10, 20, 30, 60, 70, 80, 111];
        assert_eq!(outages(&slow, 0, 200), [(80, 111)]);
    }
}
