//! The paper's programs (section 5.3) as generators of page references. The paper gives sizes and a sentence about
//! each program; the patterns are **assumed**, and were fixed before any run. Readers are programs of our own.

use super::readers::{BLOCKS, SHARED_FILES, ZIPF_EXPONENT};
use gleaner_policy::eviction::Lru;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Most references of a run; a program that fits into its node's memory has few faults.
const MOST_REFERENCES: usize = 4_000_000;
/// Parts of OO7's database, of 34 pages each.
const OO7_PARTS: u32 = 500;
/// Views of the render program, and the runs of three pages that each view reads.
const VIEWS: u32 = 20;
const VIEW_RUNS: usize = 2_000;
/// Lists of the text index, and the lists that a query reads.
const LISTS: u32 = 5_000;
const QUERY_LISTS: usize = 40;

/// A program: the paper's, and readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// Page trace of an engineer's CAD program: a file, 200 MB.
    BoeingCad,
    /// Router of a circuit: anonymous memory, 110 MB, with writes.
    VlsiRouter,
    /// Compiling and linking: files, 120 MB, with writes.
    CompileLink,
    /// Traversals of an object database in memory: anonymous memory, 17,000 pages.
    Oo7,
    /// Drawing of a precomputed scene: a file, 178 MB.
    Render,
    /// Queries of a text index: a file, 190 MB.
    WebQuery,
    /// Reader of files that all such readers share, in shuffled epochs.
    SharedReader,
    /// Reader of files of its own, in shuffled epochs.
    PrivateReader,
    /// Reader of files that all such readers share, by Zipf's law.
    SharedZipf,
    /// Reader of files of its own, by Zipf's law.
    PrivateZipf,
}

impl Program {
    /// All programs of the paper, in the order of Figure 6.
    pub const ALL: [Self; 6] = [
        Self::BoeingCad,
        Self::VlsiRouter,
        Self::CompileLink,
        Self::Oo7,
        Self::Render,
        Self::WebQuery,
    ];

    /// Programs that read sealed files.
    pub const READERS: [Self; 4] = [
        Self::SharedReader,
        Self::PrivateReader,
        Self::SharedZipf,
        Self::PrivateZipf,
    ];

    /// Name in scenario files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BoeingCad => "boeing-cad",
            Self::VlsiRouter => "vlsi-router",
            Self::CompileLink => "compile-link",
            Self::Oo7 => "oo7",
            Self::Render => "render",
            Self::WebQuery => "web-query",
            Self::SharedReader => "shared-reader",
            Self::PrivateReader => "private-reader",
            Self::SharedZipf => "shared-zipf",
            Self::PrivateZipf => "private-zipf",
        }
    }

    /// Number of pages, each of the size of a frame.
    #[must_use]
    pub const fn pages(self) -> u32 {
        match self {
            Self::BoeingCad => 200 * 128,
            Self::VlsiRouter => 110 * 128,
            Self::CompileLink => 120 * 128,
            Self::Oo7 => 34 * OO7_PARTS,
            Self::Render => 178 * 128,
            Self::WebQuery => 190 * 128,
            Self::SharedReader | Self::PrivateReader | Self::SharedZipf | Self::PrivateZipf => {
                BLOCKS
            }
        }
    }

    /// Returns true if the pages are of files on an NFS server; otherwise they are anonymous memory, paged to the
    /// node's own disk.
    #[must_use]
    pub const fn is_file(self) -> bool {
        match self {
            Self::VlsiRouter | Self::Oo7 => false,
            Self::BoeingCad | Self::CompileLink | Self::Render | Self::WebQuery => true,
            Self::SharedReader | Self::PrivateReader | Self::SharedZipf | Self::PrivateZipf => true,
        }
    }

    /// Number of the file that the program reads on this client: shared readers have the same one.
    pub(super) const fn file_of(self, client: u32) -> u32 {
        match self {
            Self::SharedReader | Self::SharedZipf => SHARED_FILES,
            _ => client,
        }
    }
}

/// A use of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) page: u32,
    pub(super) is_write: bool,
}

/// References of a run, after a first pass over all pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct References {
    pub(super) counted: Vec<Reference>,
    /// Compute time before each counted reference.
    pub(super) think_ns: u64,
}

impl References {
    /// References that cause `faults` faults in `frames` frames of LRU, with a mean of `compute_ns` between faults.
    pub(super) fn new(
        program: Program,
        (seed, stream): (u64, u64),
        frames: u32,
        faults: u32,
        compute_ns: u64,
    ) -> Self {
        let mut generator = Generator::new(program, seed, stream);
        let mut memory = Lru::new(program.pages());
        let mut touch = |page: u32| {
            let is_miss = !memory.contains(page);
            memory.touch(page);
            let coldest = memory.coldest().next();
            if memory.len() > frames {
                memory.remove(coldest.unwrap_or(page));
            }
            is_miss
        };
        for page in 0..program.pages() {
            touch(page);
        }
        let (mut counted, mut missed, mut run) = (Vec::new(), 0_u32, Vec::new());
        while missed < faults && counted.len() < MOST_REFERENCES {
            generator.next_run(&mut run);
            for reference in run.drain(..) {
                if missed < faults {
                    missed += u32::from(touch(reference.page));
                    counted.push(reference);
                }
            }
        }
        let think_ns = compute_ns * u64::from(missed) / (counted.len() as u64).max(1);
        Self { counted, think_ns }
    }
}

/// Generator of a program's references.
struct Generator {
    program: Program,
    dice: ChaCha8Rng,
    weights: Option<Zipf>,
    /// Order of the pages in each part (OO7), or of the runs of a pass.
    order: Vec<u32>,
    /// Next place in `order`.
    at: usize,
    /// Passes over all data that have ended (compile and link), or views (render).
    passes: u32,
}

impl Generator {
    fn new(program: Program, seed: u64, stream: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(stream);
        let weights = match program {
            Program::BoeingCad => Some(Zipf::new(program.pages() / 16, 0.6)),
            Program::VlsiRouter => Some(Zipf::new(program.pages() / 64, 0.6)),
            Program::WebQuery => Some(Zipf::new(LISTS, 0.8)),
            Program::SharedZipf | Program::PrivateZipf => Some(Zipf::new(BLOCKS, ZIPF_EXPONENT)),
            Program::CompileLink
            | Program::Oo7
            | Program::Render
            | Program::SharedReader
            | Program::PrivateReader => None,
        };
        let mut generator = Self {
            program,
            dice,
            weights,
            order: Vec::new(),
            at: 0,
            passes: 0,
        };
        generator.order = match program {
            Program::Oo7 => generator.oo7_orders(),
            Program::CompileLink => generator.shuffled(program.pages() / 16),
            Program::Render => generator.first_view(),
            Program::SharedReader | Program::PrivateReader => generator.shuffled(BLOCKS),
            Program::BoeingCad
            | Program::VlsiRouter
            | Program::WebQuery
            | Program::SharedZipf
            | Program::PrivateZipf => Vec::new(),
        };
        generator
    }

    /// Appends the next references, at least one.
    fn next_run(&mut self, run: &mut Vec<Reference>) {
        match self.program {
            Program::BoeingCad => {
                let part = self.draw();
                let quarter = self.below(4);
                self.append(run, part * 16 + quarter * 4, 4, 0);
            }
            Program::VlsiRouter => {
                let region = self.draw();
                let pair = self.below(32);
                self.append(run, region * 64 + pair * 2, 2, 30);
            }
            Program::CompileLink => {
                let begin = self.next_in_order() * 16;
                let write_percent = if self.passes.is_multiple_of(3) { 40 } else { 0 };
                self.append(run, begin, 16, write_percent);
                if self.at == self.order.len() {
                    self.passes += 1;
                    self.at = 0;
                    self.order = self.shuffled(self.program.pages() / 16);
                }
            }
            Program::Oo7 => {
                let part = self.below(OO7_PARTS) as usize;
                let pages = self.order.iter().skip(part * 34).take(34);
                run.extend(pages.map(|page| Reference {
                    page: *page,
                    is_write: false,
                }));
            }
            Program::Render => {
                let begin = self.next_in_order() * 3;
                self.append(run, begin, 3, 0);
                if self.at == self.order.len() {
                    self.passes += 1;
                    self.at = 0;
                    self.next_view();
                }
            }
            Program::WebQuery => {
                for _ in 0..QUERY_LISTS {
                    let list = u64::from(self.draw());
                    let room = u64::from(self.program.pages() - 6);
                    let begin = list * room / u64::from(LISTS);
                    self.append(run, begin as u32, 6, 0);
                }
            }
            Program::SharedReader | Program::PrivateReader => {
                let block = self.next_in_order();
                self.append(run, block, 1, 0);
                if self.at == self.order.len() {
                    self.at = 0;
                    self.order = self.shuffled(BLOCKS);
                }
            }
            Program::SharedZipf | Program::PrivateZipf => {
                let block = self.draw();
                self.append(run, block, 1, 0);
            }
        }
    }

    /// Appends consecutive pages, of which a share is written.
    fn append(&mut self, run: &mut Vec<Reference>, begin: u32, count: u32, write_percent: u32) {
        for page in begin..begin + count {
            let is_write = write_percent > 0 && self.below(100) < write_percent;
            run.push(Reference { page, is_write });
        }
    }

    fn next_in_order(&mut self) -> u32 {
        let next = self.order.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        next
    }

    /// The numbers below `count` in random order.
    fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        self.shuffle(&mut all);
        all
    }

    fn shuffle(&mut self, numbers: &mut [u32]) {
        for end in (1..numbers.len()).rev() {
            let other = self.below(end as u32 + 1) as usize;
            numbers.swap(end, other);
        }
    }

    /// Pages of each part of OO7's database, in an order that is shuffled once.
    fn oo7_orders(&mut self) -> Vec<u32> {
        let mut all = Vec::new();
        for part in 0..OO7_PARTS {
            let mut pages: Vec<u32> = (part * 34..part * 34 + 34).collect();
            self.shuffle(&mut pages);
            all.extend(pages);
        }
        all
    }

    /// Runs of three pages of the first view.
    fn first_view(&mut self) -> Vec<u32> {
        let mut runs = self.shuffled(self.program.pages() / 3);
        runs.truncate(VIEW_RUNS);
        runs
    }

    /// The next view keeps 60 % of the runs of the view before; the others are drawn anew.
    fn next_view(&mut self) {
        if self.passes.is_multiple_of(VIEWS) {
            self.order = self.first_view();
            return;
        }
        let mut view = std::mem::take(&mut self.order);
        self.shuffle(&mut view);
        view.truncate(VIEW_RUNS * 6 / 10);
        let all_runs = self.program.pages() / 3;
        while view.len() < VIEW_RUNS {
            view.push(self.below(all_runs));
        }
        self.shuffle(&mut view);
        self.order = view;
    }

    /// A part, region or list, drawn by Zipf's law.
    fn draw(&mut self) -> u32 {
        let random = self.dice.next_u32();
        self.weights.as_ref().map_or(0, |zipf| zipf.draw(random))
    }

    fn below(&mut self, count: u32) -> u32 {
        ((u64::from(self.dice.next_u32()) * u64::from(count)) >> 32) as u32
    }
}

/// Zipf's law: number i, from 0, has the weight (i + 1)^−exponent.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=count).map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        });
        Self(weights.collect())
    }

    fn draw(&self, random: u32) -> u32 {
        let sum = self.0.last().copied().unwrap_or(0.0);
        let at = f64::from(random) / 4_294_967_296.0 * sum;
        self.0.partition_point(|end| *end <= at) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_stays_in_its_pages_and_misses_as_often_as_wanted() {
        for program in Program::ALL {
            let references = References::new(program, (7, 0), 5_120, 3_000, 2_760_000);
            let again = References::new(program, (7, 0), 5_120, 3_000, 2_760_000);
            assert_eq!(references, again, "{program:?}");
            let other = References::new(program, (8, 0), 5_120, 3_000, 2_760_000);
            assert_ne!(references, other, "{program:?}");
            let counted = &references.counted;
            assert!(
                counted.iter().all(|r| r.page < program.pages()),
                "{program:?}"
            );
            let compute_ns = references.think_ns * counted.len() as u64;
            let expected_ns = 3_000 * 2_760_000;
            assert!(
                expected_ns - compute_ns < counted.len() as u64,
                "{program:?}"
            );
            let has_writes = counted.iter().any(|r| r.is_write);
            let may_write = [Program::VlsiRouter, Program::CompileLink].contains(&program);
            assert_eq!(has_writes, may_write, "{program:?}");
        }
    }

    #[test]
    fn oo7_reads_parts_as_a_whole() {
        let references = References::new(Program::Oo7, (1, 0), 5_120, 1_000, 0);
        for part in references.counted.chunks_exact(34) {
            let mut pages: Vec<u32> = part.iter().map(|r| r.page).collect();
            pages.sort_unstable();
            let begin = pages[0] / 34 * 34;
            assert!(pages.into_iter().eq(begin..begin + 34));
        }
    }

    #[test]
    fn readers_read_every_block_of_an_epoch_once() {
        for program in [Program::SharedReader, Program::PrivateReader] {
            let references = References::new(program, (1, 0), 1, 2 * BLOCKS, 0);
            assert_eq!(references.counted.len(), 2 * BLOCKS as usize);
            let mut orders = Vec::new();
            for epoch in references.counted.chunks(BLOCKS as usize) {
                let order: Vec<u32> = epoch.iter().map(|r| r.page).collect();
                let mut blocks = order.clone();
                blocks.sort_unstable();
                assert!(blocks.into_iter().eq(0..BLOCKS), "{program:?}");
                orders.push(order);
            }
            assert_ne!(orders[0], orders[1], "{program:?}");
        }
        let hot = References::new(Program::SharedZipf, (1, 0), 4_096, 2_000, 0);
        let first = hot.counted.iter().filter(|r| r.page < BLOCKS / 10);
        assert!(
            first.count() * 2 > hot.counted.len(),
            "a tenth has more than half of the reads"
        );
        assert!(hot.counted.iter().all(|r| r.page < BLOCKS && !r.is_write));
    }

    #[test]
    fn shared_readers_read_the_same_files() {
        for program in Program::ALL.into_iter().chain(Program::READERS) {
            let is_shared = [Program::SharedReader, Program::SharedZipf].contains(&program);
            assert_eq!(
                program.file_of(1) == program.file_of(2),
                is_shared,
                "{program:?}"
            );
        }
    }

    #[test]
    fn zipf_draws_by_weight() {
        let zipf = Zipf::new(2, 1.0);
        assert_eq!([zipf.draw(0), zipf.draw(u32::MAX)], [0, 1]);
        let third = u32::MAX / 3;
        assert_eq!([zipf.draw(2 * third - 9), zipf.draw(2 * third + 9)], [0, 1]);
    }
}
