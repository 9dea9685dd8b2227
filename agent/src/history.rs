//! What follows what: a sample is written with the gap before it, and whole where it begins anew.

use crate::Error;
use crate::changes::FileChanges;
use crate::clock::Moment;
use crate::config::{Config, Privacy};
use crate::gap;
use crate::host;
use crate::sample::Sample;
use crate::store::{Event, Record, Store};
use gleaner_schemas::rows::GapRow;

/// What is known of the samples before.
#[derive(Default)]
pub(crate) struct History {
    last: Option<Moment>,
    files: FileChanges,
    events: Vec<Event>,
}

impl History {
    /// Keeps an event for the next sample's transaction.
    pub(crate) fn note(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Writes a sample, with the gap before it and the host where it begins anew.
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
            Some(before) => gap::between(&before, &now, config.interval_ms())
                .map(|cause| gap_row(before.time_ms, &now, cause)),
            None => store.last_sample()?.map(|last| {
                let cause = gap::at_start(&last, &now, sample.row.boot_id.as_deref());
                gap_row(last.time_ms, &now, cause)
            }),
        };
        let follows = self.last.filter(|_| gap.is_none());
        let begins_anew = follows.is_none_or(|before| before.utc_day() != now.utc_day());
        sample.row.interval_ms = follows.map(|before| now.boottime_ms - before.boottime_ms);
        sample.row.files_whole = begins_anew;
        if config.privacy == Privacy::Hashed {
            for file in &mut sample.files {
                file.path = None;
            }
            for cgroup in &mut sample.cgroups {
                cgroup.path = None;
            }
        }
        let host = begins_anew.then(|| host::row(config, sample.row.physical_bytes));
        store.write(&Record {
            time_ms: now.time_ms,
            gap: gap.as_ref(),
            host: host.as_ref(),
            events: &self.events,
            sample: &sample.row,
            processes: &sample.processes,
            files: &self.files.step(sample.files, begins_anew),
            activity: &sample.activity,
            nodes: &sample.nodes,
            cgroups: &sample.cgroups,
            absences: &sample.absences.rows(),
        })?;
        self.events.clear();
        self.last = Some(now);
        Ok(())
    }
}

fn gap_row(from_time_ms: i64, now: &Moment, cause: gap::Cause) -> GapRow {
    GapRow {
        from_time_ms,
        to_time_ms: now.time_ms,
        cause: cause.as_str().to_owned(),
    }
}
