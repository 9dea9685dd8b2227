//! Writes the order of a recording's page references.

use super::super::error::ReferencesError;
use super::super::order::{OrderStep, OrderWriter};
use super::super::recency::MOST_PAGES;
use super::files::threads;
use super::left::LeftReferences;
use super::merge::{Refusal, in_order};
use super::record::{Kind, Record};
use super::recording::PAGE_BITS;
use super::{Control, WINDOW_INSTRUCTIONS};
use crate::streams::Objects;
use std::io::{self, Write};
use std::path::Path;

/// Writes the order of the page references in a recording, and returns the number of steps. `folder` has the recording;
/// `path` is that of the file behind `to`, for messages.
///
/// All processes and threads of the recording are one program. A page that is in the lists of several threads enters
/// with the first and leaves with the last.
///
/// # Errors
/// Files of the recording as for [`super::Recording::analyse`]; the error of `to`.
pub fn write_order(folder: &Path, to: impl Write, path: &Path) -> Result<u64, ReferencesError> {
    let control = Control::read(folder)?;
    let (mut threads, _) = threads(folder)?;
    let mut order = Order {
        writer: OrderWriter::new(to).map_err(ReferencesError::io("write", path))?,
        path,
        objects: Objects::default(),
        listed: Vec::new(),
        left: LeftReferences::of_threads(threads.len()),
    };
    in_order(&mut threads, |thread, process, record| {
        order.take(thread, process, record)
    })?;
    order
        .finish(control.instructions)
        .map_err(ReferencesError::io("write", path))
}

/// Lists that contain a page, and references to it since it entered the first of them.
#[derive(Clone, Copy, Debug, Default)]
struct ListMembership {
    lists: u16,
    references: u64,
}

/// State of the writing.
struct Order<'a, W: Write> {
    writer: OrderWriter<W>,
    path: &'a Path,
    objects: Objects,
    listed: Vec<ListMembership>,
    left: LeftReferences,
}

impl<W: Write> Order<'_, W> {
    fn take(&mut self, thread: usize, process: u32, record: &Record) -> Result<(), Refusal> {
        match record.kind {
            Kind::Exchange => {
                self.enter(process, record)?;
                self.leave(thread, process, record)?;
            }
            Kind::Enter => self.enter(process, record)?,
            Kind::Leave => self.leave(thread, process, record)?,
            // An order has no freed pages.
            Kind::Touch | Kind::Free => {}
            Kind::Windows => {
                let instructions = record.enters.saturating_mul(WINDOW_INSTRUCTIONS);
                let written = self.writer.instructions(instructions);
                written.map_err(|source| {
                    Refusal::Error(ReferencesError::io("write", self.path)(source))
                })?;
            }
            Kind::More => self.left.more(thread, record),
        }
        Ok(())
    }

    fn enter(&mut self, process: u32, record: &Record) -> Result<(), Refusal> {
        let page = self.number(u64::from(process) << PAGE_BITS | record.enters)?;
        let at = page as usize;
        if self.listed.len() <= at {
            self.listed.resize(at + 1, ListMembership::default());
        }
        let listed = &mut self.listed[at];
        if listed.lists == 0 {
            self.writer.step(OrderStep::Enter { page });
        }
        listed.lists = listed.lists.saturating_add(1);
        Ok(())
    }

    fn leave(&mut self, thread: usize, process: u32, record: &Record) -> Result<(), Refusal> {
        let page = self.number(u64::from(process) << PAGE_BITS | record.leaves)?;
        let references = self.left.of(thread, record)?;
        let listed = self.listed.get_mut(page as usize);
        let Some(listed) = listed.filter(|listed| listed.lists > 0) else {
            return Err(Refusal::Impossible(
                "a page leaves the list without having entered it",
            ));
        };
        listed.lists -= 1;
        listed.references = listed.references.saturating_add(references);
        if listed.lists == 0 {
            let references = std::mem::take(&mut listed.references);
            self.writer.step(OrderStep::Leave { page, references });
        }
        Ok(())
    }

    /// Number of a page, in the order of first references.
    fn number(&mut self, page: u64) -> Result<u32, Refusal> {
        let number = self.objects.number(page);
        let number = number.filter(|number| *number < MOST_PAGES);
        number.ok_or(Refusal::Error(ReferencesError::TooManyPages {
            most: MOST_PAGES,
        }))
    }

    /// Ends the file. The recorder counted `instructions`; those after the last full window belong to the last steps.
    fn finish(mut self, instructions: u64) -> io::Result<u64> {
        let written = self.writer.instructions_written();
        self.writer
            .instructions(instructions.saturating_sub(written))?;
        self.writer.finish()
    }
}
