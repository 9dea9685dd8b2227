//! Compares recordings of a model of the recorder with exact stack distances, and reads damaged ones.

use super::super::counts::MissCounts;
use super::super::distances::StackDistances;
use super::files::HEAD_BYTES;
use super::record::{Kind, Record};
use super::*;
use crate::references::{OrderReader, OrderStep, ReferencesError};
use crate::streams::Objects;
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// The recorder's list of one thread, the page used last at the end, and the records that it has made.
#[derive(Default)]
struct Model {
    list: Vec<(u64, bool, u64)>,
    records: Vec<Record>,
}

impl Model {
    fn record(&mut self, sequence: &mut u64, kind: Kind, enters: u64, left: (u64, bool, u64)) {
        let (leaves, is_written, references) = left;
        if references >> 16 > 0 {
            self.record(sequence, Kind::More, references >> 16, (leaves, false, 0));
        }
        self.records.push(Record {
            sequence: *sequence,
            kind,
            enters,
            leaves,
            is_written,
            references: references & 0xffff,
        });
        *sequence += 1;
    }

    fn reference(&mut self, sequence: &mut u64, page: u64, is_write: bool, times: u64) {
        let there = self.list.iter().position(|(other, ..)| *other == page);
        match there.map(|at| self.list.remove(at)) {
            Some((_, was_written, before)) => {
                self.list
                    .push((page, was_written || is_write, before + times));
            }
            None => {
                if self.list.len() < LIST_PAGES as usize {
                    self.record(sequence, Kind::Enter, page, (0, false, 0));
                } else {
                    let left = self.list.remove(0);
                    self.record(sequence, Kind::Exchange, page, left);
                }
                self.list.push((page, is_write, times));
            }
        }
    }

    /// Frees pages; those in the list leave it before.
    fn free(&mut self, sequence: &mut u64, pages: std::ops::Range<u64>) {
        let (freed, kept): (Vec<_>, Vec<_>) = self
            .list
            .iter()
            .partition(|(page, ..)| pages.contains(page));
        self.list = kept;
        for left in freed {
            self.record(sequence, Kind::Leave, 0, left);
        }
        let count = pages.end - pages.start;
        self.record(sequence, Kind::Free, pages.start, (count, false, 0));
    }

    fn finish(&mut self, sequence: &mut u64) {
        for left in std::mem::take(&mut self.list) {
            self.record(sequence, Kind::Leave, 0, left);
        }
    }
}

fn file(process: u32, thread: u32, records: &[Record]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(process.to_le_bytes());
    bytes.extend(thread.to_le_bytes());
    bytes.extend((records.len() as u64).to_le_bytes());
    bytes.resize(HEAD_BYTES, 0);
    bytes.extend(records.iter().flat_map(Record::bytes));
    bytes
}

fn control(instructions: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for number in [0, 1, 1, 1, 0, instructions, 0, 0, 0, 0, 0, 0_u64] {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

fn analysed(files: &[Vec<u8>]) -> Result<Recording, ReferencesError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("control"),
        control(4 * WINDOW_INSTRUCTIONS),
    )
    .unwrap();
    for (number, bytes) in files.iter().enumerate() {
        fs::write(folder.path().join(format!("{number:012x}")), bytes).unwrap();
    }
    Recording::analyse(folder.path(), 40_000_000, |_, _| ())
}

fn exact(asked: &[(u64, bool)]) -> MissCounts {
    let (mut objects, mut stack) = (Objects::default(), StackDistances::default());
    for (page, is_write) in asked {
        stack.reference(objects.number(*page).unwrap(), *is_write);
    }
    stack.finish()
}

fn recorded(asked: &[(u64, bool)]) -> Vec<Record> {
    let (mut model, mut sequence) = (Model::default(), 0);
    for (page, is_write) in asked {
        model.reference(&mut sequence, *page, *is_write, 1);
    }
    model.finish(&mut sequence);
    model.records
}

proptest! {
    #[test]
    fn a_recording_is_exact_above_the_list(
        asked in prop::collection::vec((0u64..120, any::<bool>()), 0..3000), cut in 1usize..500,
    ) {
        let records = recorded(&asked);
        // In several files, as of a long run.
        let files: Vec<Vec<u8>> = records.chunks(cut).map(|part| file(0, 0, part)).collect();
        let recording = analysed(&files).unwrap();
        let sizes: Vec<u64> = (LIST_PAGES..130).collect();
        prop_assert_eq!(recording.counts.at(&sizes), exact(&asked).at(&sizes));
        let pages: std::collections::HashSet<u64> = asked.iter().map(|(page, _)| *page).collect();
        prop_assert_eq!(recording.profile.footprint_pages(), pages.len() as u64);
        let all = recording.profile.first_touches.to_first(&[pages.len() as u64]);
        prop_assert_eq!(all, [asked.len() as u64]);
    }

    /// Parts of a program that free pages in between: few or, as at a process's end, all that there can be.
    #[test]
    fn freed_pages_are_exact_above_the_list(
        parts in prop::collection::vec((prop::collection::vec((0u64..90, any::<bool>()), 0..300), 0u64..90, 0u64..60), 0..8),
        ends: bool,
    ) {
        let (mut model, mut sequence) = (Model::default(), 0);
        let (mut objects, mut stack) = (Objects::default(), StackDistances::default());
        let whole = (Vec::new(), 0, 1 << 36);
        for (asked, first, count) in parts.into_iter().chain(ends.then_some(whole)) {
            for (page, is_write) in asked {
                model.reference(&mut sequence, page, is_write, 1);
                stack.reference(objects.number(page).unwrap(), is_write);
            }
            model.free(&mut sequence, first..(first + count).min((1 << 36) - 1));
            for page in first..first + count.min(200) {
                stack.free(objects.number(page).unwrap(), 0);
            }
        }
        model.finish(&mut sequence);
        let recording = analysed(&[file(0, 0, &model.records)]).unwrap();
        let sizes: Vec<u64> = (LIST_PAGES..100).collect();
        prop_assert_eq!(recording.counts.at(&sizes), stack.finish().at(&sizes));
    }

    /// Threads that run one after the other, each ending before the next begins.
    #[test]
    fn threads_are_merged_by_sequence(
        phases in prop::collection::vec(prop::collection::vec((0u64..90, any::<bool>()), 0..400), 0..8),
    ) {
        let (mut models, mut sequence) = ([Model::default(), Model::default()], 0);
        for (at, phase) in phases.iter().enumerate() {
            let model = &mut models[at % 2];
            for (page, is_write) in phase {
                model.reference(&mut sequence, *page, *is_write, 1);
            }
            model.finish(&mut sequence);
        }
        let files = models.iter().zip(0..).map(|(model, thread)| file(0, thread, &model.records));
        let recording = analysed(&files.collect::<Vec<Vec<u8>>>()).unwrap();
        let sizes: Vec<u64> = (LIST_PAGES..100).collect();
        prop_assert_eq!(recording.counts.at(&sizes), exact(&phases.concat()).at(&sizes));
    }

    /// Pages of different processes are different pages.
    #[test]
    fn processes_share_the_memory(asked in prop::collection::vec((0u64..90, any::<bool>()), 0..400)) {
        let (mut models, mut sequence) = ([Model::default(), Model::default()], 0);
        let mut both = Vec::new();
        for (process, model) in models.iter_mut().enumerate() {
            for (page, is_write) in &asked {
                model.reference(&mut sequence, *page, *is_write, 1);
                both.push((*page + 1000 * process as u64, *is_write));
            }
            model.finish(&mut sequence);
        }
        let files = models.iter().zip(0..).map(|(model, process)| file(process, 0, &model.records));
        let recording = analysed(&files.collect::<Vec<Vec<u8>>>()).unwrap();
        let sizes: Vec<u64> = (LIST_PAGES..200).collect();
        prop_assert_eq!(recording.counts.at(&sizes), exact(&both).at(&sizes));
    }

    /// Steps are those of the records, with pages numbered by their first references, and the recorder's instructions.
    #[test]
    fn an_order_file_has_the_exchanges_of_the_lists(
        asked in prop::collection::vec((0u64..90, any::<bool>()), 0..600), instructions in 0u64..1 << 40,
    ) {
        let records = recorded(&asked);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("control"), control(instructions)).unwrap();
        fs::write(folder.path().join("000000000000"), file(0, 0, &records)).unwrap();
        let path = folder.path().join("a.order");
        let mut order = Vec::new();
        let count = write_order(folder.path(), &mut order, &path).unwrap();
        let blocks = OrderReader::read_from(std::io::Cursor::new(order), &path).unwrap();
        let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
        let found: Vec<OrderStep> = blocks.iter().flat_map(|block| block.steps.clone()).collect();
        let mut objects = Objects::default();
        let mut expected = Vec::new();
        for record in &records {
            if record.kind != Kind::Leave {
                expected.push(OrderStep::Enter { page: objects.number(record.enters).unwrap() });
            }
            if record.kind != Kind::Enter {
                let page = objects.number(record.leaves).unwrap();
                expected.push(OrderStep::Leave { page, references: record.references });
            }
        }
        prop_assert_eq!(count, expected.len() as u64);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(blocks.iter().map(|block| block.instructions).sum::<u64>(), instructions);
    }

    #[test]
    fn damaged_recordings_are_refused_or_read(
        asked in prop::collection::vec((0u64..80, any::<bool>()), 1..200), at in any::<prop::sample::Index>(), bit in 0u8..8,
        is_cut: bool,
    ) {
        let mut bytes = file(0, 0, &recorded(&asked));
        let at = at.index(bytes.len());
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << bit;
        }
        if let Err(error) = analysed(&[bytes]) {
            prop_assert!(error.to_string().contains(" byte "), "{}", error);
        }
    }
}

#[test]
fn many_references_and_windows_are_counted() {
    let (mut model, mut sequence) = (Model::default(), 0);
    model.reference(&mut sequence, 7, false, 200_000);
    for _ in 0..2 {
        model.record(&mut sequence, Kind::Windows, 1, (0, false, 0));
        model.record(&mut sequence, Kind::Touch, 7, (0, false, 0));
    }
    model.finish(&mut sequence);
    let recording = analysed(&[file(0, 0, &model.records)]).unwrap();
    assert_eq!(recording.profile.first_touches.to_first(&[1]), [200_000]);
    // Four windows of instructions took 40 ms.
    let (windows, _) = recording.profile.finish();
    assert_eq!(windows[0].sizes, [(0.0, 1), (10.0, 1), (20.0, 1)]);
}

#[test]
fn what_no_recorder_writes_is_refused_by_byte() {
    let record = |kind, sequence| Record {
        sequence,
        kind,
        enters: 1,
        leaves: 2,
        is_written: false,
        references: 1,
    };
    let refused = |bytes: Vec<u8>| analysed(&[bytes]).unwrap_err().to_string();
    let leaves = refused(file(
        0,
        0,
        &[record(Kind::Enter, 0), record(Kind::Leave, 1)],
    ));
    assert!(
        leaves.contains("000000000000 byte 80: a page leaves the list without"),
        "{leaves}"
    );
    let back = refused(file(
        0,
        0,
        &[record(Kind::Enter, 5), record(Kind::Touch, 5)],
    ));
    assert!(back.contains("byte 80: the record is older"), "{back}");
    let mut claims = file(0, 0, &[record(Kind::Enter, 0)]);
    claims[16..24].copy_from_slice(&1_000_000_000_u64.to_le_bytes());
    let claims = refused(claims);
    assert!(
        claims.contains("byte 16: 1000000000 records are announced, and the file has room for 1"),
        "{claims}"
    );
    assert!(refused(b"text".to_vec()).contains("byte 0: "));
    let error = Control::read(Path::new("/missing"))
        .unwrap_err()
        .to_string();
    assert_eq!(error, "cannot read /missing/control");
}

/// Another process, and another thread's list, keep their pages.
#[test]
fn a_thread_frees_the_pages_of_its_process_that_are_in_no_list() {
    let (mut models, mut sequence) = ([(); 3].map(|()| Model::default()), 0);
    let pages = LIST_PAGES * 2;
    let read = |model: &mut Model, sequence: &mut u64| {
        for page in 0..pages {
            model.reference(sequence, page, false, 1);
        }
    };
    for model in &mut models {
        read(model, &mut sequence);
    }
    models[0].free(&mut sequence, 0..pages);
    for model in &mut models {
        read(model, &mut sequence);
        model.finish(&mut sequence);
    }
    let files = models.iter().zip([(0, 0), (0, 1), (1, 0)]);
    let files = files.map(|(model, (process, thread))| file(process, thread, &model.records));
    let recording = analysed(&files.collect::<Vec<Vec<u8>>>()).unwrap();
    let faults = recording.counts.at(&[LIST_PAGES, 1000]);
    // The second thread reads what the first one has read, and the other process reads its own pages anew. Of the freed
    // pages, those in the second thread's list are reused.
    assert_eq!(faults[0].reuse, (pages + LIST_PAGES + pages + pages) as f64);
    assert_eq!(faults[1].reuse, 0.0);
}

#[test]
fn a_recording_says_why_it_is_cut() {
    let whole = Control {
        processes: 2,
        ended: 2,
        ..Control::default()
    };
    assert_eq!(whole.cut(), None);
    let cut = |control: Control| control.cut().unwrap();
    assert!(cut(Control { ended: 1, ..whole }).starts_with("1 of 2 processes were killed"));
    assert!(
        cut(Control {
            ended: 1,
            replaced: 1,
            ..whole
        })
        .contains("execve")
    );
    assert!(
        cut(Control {
            lost: 1,
            error: 28,
            ..whole
        })
        .contains("No space left")
    );
}
