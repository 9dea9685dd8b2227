//! The sequence of samples. Each sample is written with the gap before it. A sample that begins a new stretch
//! (after a gap, or on a new UTC day) is written as a whole state, the others as changes.

use crate::Error;
use crate::clock::Moment;
use crate::config::{Config, Privacy};
use crate::host;
use crate::sample::Sample;
use crate::trace::changes::Changes;
use crate::trace::gap::{self, Cause};
use crate::trace::store::{Event, Record, Store};
use gleaner_schemas::rows::{ActivityRow, FileRow, GapRow, MissingValueRow};
use std::collections::VecDeque;

/// Maximum number of events kept while nothing can be stored: enough for a day of an owner who comes and
/// goes all the time.
const MOST_EVENTS: usize = 1024;

/// State left by earlier samples, which the next sample needs.
#[derive(Default)]
pub(crate) struct History {
    /// The last sample that was stored.
    last: Option<Moment>,
    /// Cause of the next gap; set while records are lost.
    lost: Option<Cause>,
    /// True if the next sample repeats everything although no record is lost.
    is_anew: bool,
    /// Events for the next sample's transaction.
    events: VecDeque<Event>,
    files: Changes<FileRow>,
    activity: Changes<ActivityRow>,
    missing_values: Changes<MissingValueRow>,
}

impl History {
    /// Keeps an event for the next sample's transaction; if there are too many, drops the oldest.
    pub(crate) fn note(&mut self, event: Event) {
        if self.events.len() == MOST_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Notes a loss of records: the next sample follows a gap and repeats everything.
    pub(crate) fn lose(&mut self, cause: Cause) {
        self.lost = Some(cause);
    }

    /// Makes the next sample repeat everything, including the host, without a gap before it.
    pub(crate) fn repeat_all(&mut self) {
        self.is_anew = true;
    }

    /// Writes a sample with the noted events, the gap before it, and the host's row if a new stretch
    /// begins. After an error the records are lost, and the next sample follows a gap.
    ///
    /// # Errors
    /// [`Error::Database`].
    pub(crate) fn write(
        &mut self,
        config: &Config,
        store: &mut Store,
        mut sample: Sample,
    ) -> Result<(), Error> {
        let now = sample.moment;
        let gap = match self.last {
            Some(before) => self
                .lost
                .or_else(|| gap::between(&before, &now, config.sample_interval_ms()))
                .map(|cause| gap_row(before.time_ms, &now, cause)),
            None => store.last_sample()?.map(|last| {
                let cause = gap::at_start(&last, &now, sample.row.boot_id.as_deref());
                gap_row(last.time_ms, &now, cause)
            }),
        };
        let follows = self.last.filter(|_| gap.is_none());
        let begins_anew = self.is_anew
            || self.lost.is_some()
            || follows.is_none_or(|before| before.utc_day() != now.utc_day());
        sample.row.interval_ms = follows.map(|before| now.boottime_ms - before.boottime_ms);
        sample.row.is_complete_state = begins_anew;
        if config.privacy == Privacy::Hashed {
            for file in &mut sample.files {
                file.path = None;
            }
            for cgroup in &mut sample.cgroups {
                cgroup.path = None;
            }
        }
        let host = begins_anew.then(|| host::row(config, sample.row.physical_bytes));
        self.lost = Some(Cause::Unwritable); // reset below on success
        store.write(&Record {
            time_ms: now.time_ms,
            gap: gap.as_ref(),
            host: host.as_ref(),
            events: self.events.make_contiguous(),
            sample: &sample.row,
            processes: &sample.processes,
            files: &self.files.step(sample.files, begins_anew, now.time_ms),
            activity: &self
                .activity
                .step(sample.activity, begins_anew, now.time_ms),
            numa_nodes: &sample.numa_nodes,
            cgroups: &sample.cgroups,
            missing_values: &self.missing_values.step(
                sample.missing_values.rows(),
                begins_anew,
                now.time_ms,
            ),
        })?;
        self.events.clear();
        self.last = Some(now);
        self.lost = None;
        self.is_anew = false;
        Ok(())
    }
}

fn gap_row(from_time_ms: i64, now: &Moment, cause: Cause) -> GapRow {
    GapRow {
        from_time_ms,
        to_time_ms: now.time_ms,
        cause: cause.as_str().to_owned(),
    }
}
