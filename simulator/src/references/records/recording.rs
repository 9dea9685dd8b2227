//! Analysis of a recording: all threads of all processes of a program.

use super::super::counts::MissCounts;
use super::super::error::ReferencesError;
use super::super::profile::Profile;
use super::super::recency::MOST_PAGES;
use super::files::threads;
use super::left::LeftReferences;
use super::lists::Lists;
use super::merge::{Refusal, in_order};
use super::record::{Kind, Record};
use super::{Control, WINDOW_INSTRUCTIONS};
use crate::streams::Objects;
use std::path::Path;

/// Bits of a page's number in a process.
pub(super) const PAGE_BITS: u32 = 36;
/// Records between two calls of the progress function.
const STEP_RECORDS: u64 = 1 << 20;

/// An analysed recording.
#[derive(Debug)]
pub struct Recording {
    /// Counters of the recorder.
    pub control: Control,
    /// Faults and write-backs by memory size.
    pub counts: MissCounts,
    /// Working sets and first touches.
    pub profile: Profile,
    /// Number of threads with records.
    pub threads: u64,
    /// Number of records.
    pub records: u64,
}

impl Recording {
    /// Analyses the recording in a folder. Times are in CPU time of a native run, which took `native_cpu_ns`:
    /// instructions are assumed to take equal times. `progress` is called with the records read and their number.
    ///
    /// Memory use is about 60 bytes per distinct page, and 64 KiB per thread.
    ///
    /// # Errors
    /// Files that cannot be read, or that the recorder did not write so: by path and byte.
    pub fn analyse(
        folder: &Path,
        native_cpu_ns: u64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Self, ReferencesError> {
        let control = Control::read(folder)?;
        let (mut threads, records) = threads(folder)?;
        let mut analysis = Analysis::new(threads.len(), native_cpu_ns, control.instructions);
        let mut done = 0_u64;
        in_order(&mut threads, |thread, process, record| {
            done += 1;
            if done.is_multiple_of(STEP_RECORDS) {
                progress(done, records);
            }
            analysis.take(thread, process, record)
        })?;
        let Analysis { lists, profile, .. } = analysis;
        let in_lists = lists.pages;
        Ok(Self {
            control,
            counts: lists.stack.finish_below(in_lists),
            profile,
            threads: threads.len() as u64,
            records,
        })
    }
}

/// State of an analysis.
struct Analysis {
    objects: Objects,
    lists: Lists,
    profile: Profile,
    windows: u64,
    window_ns: f64,
    at_ns: u64,
    left: LeftReferences,
}

impl Analysis {
    fn new(threads: usize, native_cpu_ns: u64, instructions: u64) -> Self {
        let windows = (instructions as f64 / WINDOW_INSTRUCTIONS as f64).max(1.0);
        Self {
            objects: Objects::default(),
            lists: Lists::default(),
            profile: Profile::default(),
            windows: 0,
            window_ns: native_cpu_ns as f64 / windows,
            at_ns: 0,
            left: LeftReferences::of_threads(threads),
        }
    }

    #[inline]
    fn take(&mut self, thread: usize, process: u32, record: &Record) -> Result<(), Refusal> {
        let enters = || u64::from(process) << PAGE_BITS | record.enters;
        match record.kind {
            Kind::Exchange => {
                let page = self.number(enters())?;
                self.lists.reuse(page);
                self.leave(thread, process, record)?;
                self.enter(page);
            }
            Kind::Enter => {
                let page = self.number(enters())?;
                self.lists.reuse(page);
                self.enter(page);
            }
            Kind::Leave => self.leave(thread, process, record)?,
            Kind::Touch => {
                let page = self.number(enters())?;
                self.profile.reference(page, self.at_ns);
            }
            Kind::Windows => {
                self.windows = self.windows.saturating_add(record.enters);
                self.at_ns = (self.windows as f64 * self.window_ns) as u64;
            }
            Kind::More => self.left.more(thread, record),
            Kind::Free => self.free(process, record),
        }
        Ok(())
    }

    /// Frees the pages of a process that were referenced before.
    fn free(&mut self, process: u32, record: &Record) {
        let of_process = u64::from(process) << PAGE_BITS;
        let end = record
            .enters
            .saturating_add(record.leaves)
            .min(1 << PAGE_BITS);
        let pages = of_process | record.enters..of_process.saturating_add(end);
        if record.leaves <= u64::from(self.objects.len()) {
            for page in pages {
                if let Some(number) = self.objects.get(page) {
                    self.lists.free(number);
                }
            }
        } else {
            for (page, number) in self.objects.iter() {
                if pages.contains(&page) {
                    self.lists.free(number);
                }
            }
        }
    }

    fn enter(&mut self, page: u32) {
        self.lists.put(page);
        self.profile.reference(page, self.at_ns);
    }

    #[inline]
    fn leave(&mut self, thread: usize, process: u32, record: &Record) -> Result<(), Refusal> {
        let page = self.number(u64::from(process) << PAGE_BITS | record.leaves)?;
        if !self.lists.leave(page, record.is_written) {
            return Err(Refusal::Impossible(
                "a page leaves the list without having entered it",
            ));
        }
        let references = self.left.of(thread, record)?;
        self.profile.first_touches.add(page, references);
        Ok(())
    }

    /// Number of a page, in the order of first touches.
    #[inline]
    fn number(&mut self, page: u64) -> Result<u32, Refusal> {
        let number = self
            .objects
            .number(page)
            .filter(|number| *number < MOST_PAGES);
        number.ok_or(Refusal::Error(ReferencesError::TooManyPages {
            most: MOST_PAGES,
        }))
    }
}
