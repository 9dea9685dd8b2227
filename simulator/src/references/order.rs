//! Files with the order of a program's page references, for simulations in which programs share a memory.
//!
//! A curve counts references and loses their order. The file has the exchanges of the recorder's lists (the 32 pages
//! that each thread used last) in their order: [`OrderStep::Enter`] is a reference to a page outside the lists, and the
//! order of [`OrderStep::Leave`] is the order of recency of the pages outside. The steps of some instructions form a
//! block; inside a block they are taken as evenly spread.
//!
//! ```text
//! zstd ( magic { 1 steps instructions bytes step… } 0 steps instructions )      numbers: LEB128
//! step: 2 × page, if the page enters; 2 × page + 1 and the references since it entered, if it leaves
//! ```
//!
//! Pages have numbers in the order of their first references. The end repeats the sums of all blocks, so a file that
//! was cut is recognized.

use super::error::ReferencesError;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// First bytes of the decompressed file.
const MAGIC: &[u8; 8] = b"GLNRORD1";
/// First byte of a block, and of the end.
const BLOCK: u8 = 1;
const END: u8 = 0;
/// Maximum number of steps in a block.
const BLOCK_STEPS: usize = 1 << 14;
/// Maximum number of bytes of a step: two numbers.
const STEP_BYTES: usize = 2 * NUMBER_BYTES;
/// Maximum number of bytes of a number.
const NUMBER_BYTES: usize = 10;
/// Maximum number of distinct pages: 256 GiB of pages of 4 KiB.
const MOST_PAGES: usize = 1 << 26;
/// Level of zstd, which takes a third of the time of higher levels.
const LEVEL: i32 = 3;

/// Exchange between a program's lists of pages used last and its other pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderStep {
    /// A page that is in no list is referenced, and enters one.
    Enter {
        /// Number of the page, in the order of first references.
        page: u32,
    },
    /// A page leaves the last list that contains it: of the pages in no list, it is the one used last.
    Leave {
        /// Number of the page.
        page: u32,
        /// References to the page since it entered.
        references: u64,
    },
}

/// Steps of some instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderBlock {
    /// Number of instructions.
    pub instructions: u64,
    /// Steps during these instructions, evenly spread.
    pub steps: Vec<OrderStep>,
}

/// Writer of an order file.
pub struct OrderWriter<W: Write> {
    to: zstd::Encoder<'static, W>,
    /// Steps that are not written yet.
    steps: Vec<OrderStep>,
    payload: Vec<u8>,
    /// Sums of the blocks that were written.
    steps_count: u64,
    instructions: u64,
}

impl<W: Write> OrderWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The error of `to`.
    pub fn new(to: W) -> io::Result<Self> {
        let mut to = zstd::Encoder::new(to, LEVEL)?;
        to.write_all(MAGIC)?;
        Ok(Self {
            to,
            steps: Vec::new(),
            payload: Vec::new(),
            steps_count: 0,
            instructions: 0,
        })
    }

    /// Adds a step. A page enters before it leaves, and leaves before it enters again.
    pub fn step(&mut self, step: OrderStep) {
        self.steps.push(step);
    }

    /// Writes the steps since the last call as those of this number of instructions.
    ///
    /// # Errors
    /// The error of the file.
    pub fn instructions(&mut self, instructions: u64) -> io::Result<()> {
        let steps = std::mem::take(&mut self.steps);
        if steps.is_empty() {
            return self.block(&[], instructions);
        }
        let (mut done, mut given) = (0_usize, 0_u64);
        for part in steps.chunks(BLOCK_STEPS) {
            done += part.len();
            let until = u128::from(instructions) * done as u128 / steps.len() as u128;
            let until = u64::try_from(until).unwrap_or(instructions);
            self.block(part, until - given)?;
            given = until;
        }
        self.steps = steps;
        self.steps.clear();
        Ok(())
    }

    fn block(&mut self, steps: &[OrderStep], instructions: u64) -> io::Result<()> {
        self.payload.clear();
        for step in steps {
            match *step {
                OrderStep::Enter { page } => put(&mut self.payload, u64::from(page) << 1),
                OrderStep::Leave { page, references } => {
                    put(&mut self.payload, u64::from(page) << 1 | 1);
                    put(&mut self.payload, references);
                }
            }
        }
        let mut head = vec![BLOCK];
        put(&mut head, steps.len() as u64);
        put(&mut head, instructions);
        put(&mut head, self.payload.len() as u64);
        self.to.write_all(&head)?;
        self.to.write_all(&self.payload)?;
        self.steps_count += steps.len() as u64;
        self.instructions = self.instructions.saturating_add(instructions);
        Ok(())
    }

    /// Instructions of the blocks so far.
    #[must_use]
    pub fn instructions_written(&self) -> u64 {
        self.instructions
    }

    /// Ends the file, and returns the number of steps. Steps after the last call of [`Self::instructions`] take none.
    ///
    /// # Errors
    /// The error of the file.
    pub fn finish(mut self) -> io::Result<u64> {
        if !self.steps.is_empty() {
            self.instructions(0)?;
        }
        let mut end = vec![END];
        put(&mut end, self.steps_count);
        put(&mut end, self.instructions);
        self.to.write_all(&end)?;
        self.to.finish()?.flush()?;
        Ok(self.steps_count)
    }
}

/// Appends a number, seven bits in each byte.
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reader of an order file: an iterator of its blocks. After an error there are no more.
///
/// Memory use is a block, and a byte for each distinct page.
pub struct OrderReader {
    path: PathBuf,
    from: BufReader<Box<dyn Read + Send>>,
    /// Decompressed bytes that were read.
    offset: u64,
    payload: Vec<u8>,
    /// Pages so far, each with whether it is in a list.
    in_list: Vec<bool>,
    steps_count: u64,
    instructions: u64,
    is_ended: bool,
}

impl OrderReader {
    /// Opens a file.
    ///
    /// # Errors
    /// The system's error, or a file that is no order file.
    pub fn open(path: &Path) -> Result<Self, ReferencesError> {
        let file = File::open(path).map_err(ReferencesError::io("open", path))?;
        Self::read_from(file, path)
    }

    /// Reads a file's bytes; `path` is for messages.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn read_from(
        bytes: impl Read + Send + 'static,
        path: &Path,
    ) -> Result<Self, ReferencesError> {
        let decoder = zstd::Decoder::new(bytes).map_err(ReferencesError::io("read", path))?;
        let mut reader = Self {
            path: path.to_owned(),
            from: BufReader::with_capacity(1 << 17, Box::new(decoder)),
            offset: 0,
            payload: Vec::new(),
            in_list: Vec::new(),
            steps_count: 0,
            instructions: 0,
            is_ended: false,
        };
        let mut magic = [0; MAGIC.len()];
        let read = reader.from.read_exact(&mut magic);
        read.map_err(|error| reader.cut(&error))?;
        if magic != *MAGIC {
            return Err(reader.wrong("this is no order file"));
        }
        reader.offset = MAGIC.len() as u64;
        Ok(reader)
    }

    fn wrong(&self, found: impl Into<String>) -> ReferencesError {
        ReferencesError::record(&self.path, self.offset, found)
    }

    /// Next block; `None` at the end of the file.
    fn block(&mut self) -> Result<Option<OrderBlock>, ReferencesError> {
        match self.byte()? {
            BLOCK => {}
            END => return self.end().map(|()| None),
            _ => return Err(self.wrong("there is no such kind of block")),
        }
        let (steps, instructions, bytes) = (self.number()?, self.number()?, self.number()?);
        let is_block = steps <= BLOCK_STEPS as u64 && bytes <= (BLOCK_STEPS * STEP_BYTES) as u64;
        if !is_block {
            return Err(self.wrong("the block is larger than any"));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(bytes as usize, 0);
        let read = self.from.read_exact(&mut payload);
        read.map_err(|error| self.cut(&error))?;
        let decoded = self.steps(&payload, steps as usize);
        self.payload = payload;
        self.offset += bytes;
        self.steps_count += steps;
        self.instructions = self.instructions.saturating_add(instructions);
        Ok(Some(OrderBlock {
            instructions,
            steps: decoded?,
        }))
    }

    /// Decodes a block's steps. Errors are at the block's begin.
    fn steps(
        &mut self,
        mut payload: &[u8],
        count: usize,
    ) -> Result<Vec<OrderStep>, ReferencesError> {
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            let code = take(&mut payload);
            let code = code.ok_or_else(|| self.wrong("a step ends early"))?;
            let page = usize::try_from(code >> 1).unwrap_or(usize::MAX);
            let is_leave = code & 1 == 1;
            if page == self.in_list.len() && page < MOST_PAGES {
                self.in_list.push(false);
            }
            match self.in_list.get_mut(page) {
                Some(in_list) if *in_list == is_leave => *in_list = !is_leave,
                _ => return Err(self.wrong("a page enters or leaves that cannot")),
            }
            let page = page as u32; // below `MOST_PAGES`
            steps.push(match is_leave {
                false => OrderStep::Enter { page },
                true => {
                    let references = take(&mut payload);
                    let references = references.ok_or_else(|| self.wrong("a step ends early"))?;
                    OrderStep::Leave { page, references }
                }
            });
        }
        if !payload.is_empty() {
            return Err(self.wrong("the block has more bytes than steps"));
        }
        Ok(steps)
    }

    fn end(&mut self) -> Result<(), ReferencesError> {
        let sums = (self.number()?, self.number()?);
        if sums != (self.steps_count, self.instructions) {
            return Err(self.wrong("the end's sums are not those of the blocks"));
        }
        let mut more = [0];
        match self.from.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.wrong("bytes follow the end")),
            Err(error) => Err(self.cut(&error)),
        }
    }

    fn byte(&mut self) -> Result<u8, ReferencesError> {
        let mut byte = [0];
        let read = self.from.read_exact(&mut byte);
        read.map_err(|error| self.cut(&error))?;
        self.offset += 1;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64, ReferencesError> {
        let mut bytes = Vec::with_capacity(NUMBER_BYTES);
        loop {
            let byte = self.byte()?;
            bytes.push(byte);
            if byte < 0x80 || bytes.len() == NUMBER_BYTES {
                break;
            }
        }
        take(&mut bytes.as_slice()).ok_or_else(|| self.wrong("there is no such number"))
    }

    /// Makes an error about bytes that cannot be read: those of a file that was cut or damaged.
    fn cut(&self, error: &io::Error) -> ReferencesError {
        self.wrong(format!("the file is cut or damaged ({error})"))
    }
}

/// Takes a number off the front; `None` if it ends early or exceeds 64 bits.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if *byte < 0x80 {
            return Some(number);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}

impl Iterator for OrderReader {
    type Item = Result<OrderBlock, ReferencesError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_ended {
            return None;
        }
        let block = self.block();
        self.is_ended = !matches!(block, Ok(Some(_)));
        block.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Steps of these pages: a page that is in no list enters, another one leaves.
    fn steps(pages: &[(u32, u64)]) -> Vec<OrderStep> {
        let (mut in_list, mut numbers) = (Vec::new(), std::collections::HashMap::new());
        let of = |(page, references): &(u32, u64)| {
            let next = numbers.len() as u32;
            let page = *numbers.entry(*page).or_insert(next);
            if in_list.len() as u32 == next && next == page {
                in_list.push(false);
            }
            let in_list = &mut in_list[page as usize];
            *in_list = !*in_list;
            match *in_list {
                true => OrderStep::Enter { page },
                false => OrderStep::Leave {
                    page,
                    references: *references,
                },
            }
        };
        pages.iter().map(of).collect()
    }

    fn written(blocks: &[(Vec<OrderStep>, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = OrderWriter::new(&mut bytes).unwrap();
        for (steps, instructions) in blocks {
            steps.iter().for_each(|step| writer.step(*step));
            writer.instructions(*instructions).unwrap();
        }
        writer.finish().unwrap();
        bytes
    }

    fn read(bytes: Vec<u8>) -> Result<Vec<OrderBlock>, ReferencesError> {
        OrderReader::read_from(io::Cursor::new(bytes), Path::new("a.order"))?.collect()
    }

    proptest! {
        #[test]
        fn steps_are_read_as_they_were_written(
            pages in prop::collection::vec((0u32..40, any::<u64>()), 0..300), at in any::<prop::sample::Index>(),
            instructions: [u32; 2],
        ) {
            let all = steps(&pages);
            let (first, second) = all.split_at(at.index(all.len() + 1));
            let [of_first, of_second] = instructions.map(u64::from);
            let blocks = read(written(&[(first.to_vec(), of_first), (second.to_vec(), of_second)])).unwrap();
            let found: Vec<OrderStep> = blocks.iter().flat_map(|block| block.steps.clone()).collect();
            prop_assert_eq!(found, all);
            let found: u64 = blocks.iter().map(|block| block.instructions).sum();
            prop_assert_eq!(found, of_first + of_second);
        }

        #[test]
        fn cut_and_flipped_files_are_refused_or_read(
            pages in prop::collection::vec((0u32..40, any::<u64>()), 1..100), at in any::<prop::sample::Index>(),
            bit in 0u8..8, is_cut: bool,
        ) {
            let mut bytes = written(&[(steps(&pages), 1 << 20)]);
            let at = at.index(bytes.len());
            if is_cut {
                bytes.truncate(at);
                prop_assert!(read(bytes).unwrap_err().to_string().starts_with("a.order byte "));
            } else {
                bytes[at] ^= 1 << bit;
                if let Err(error) = read(bytes) {
                    prop_assert!(error.to_string().starts_with("a.order byte "), "{}", error);
                }
            }
        }
    }

    #[test]
    fn many_steps_are_several_blocks_and_share_the_instructions() {
        let pages: Vec<(u32, u64)> = (0..50_000).map(|page| (page, 1)).collect();
        let blocks = read(written(&[(steps(&pages), 1 << 20), (Vec::new(), 7)])).unwrap();
        assert_eq!(blocks.len(), 5);
        assert_eq!(
            blocks[4],
            OrderBlock {
                instructions: 7,
                steps: Vec::new()
            }
        );
        let sum: u64 = blocks.iter().map(|block| block.instructions).sum();
        assert_eq!(sum, (1 << 20) + 7);
        let expected = (1_u64 << 20) * BLOCK_STEPS as u64 / 50_000;
        assert_eq!(blocks[0].instructions, expected);
    }

    #[test]
    fn impossible_files_are_refused() {
        let refused = |plain: &[u8]| {
            let bytes = zstd::encode_all(plain, LEVEL).unwrap();
            read(bytes).unwrap_err().to_string()
        };
        let of = |rest: &[u8]| refused(&[&MAGIC[..], rest].concat());
        assert!(refused(b"some text").contains("byte 0: this is no order file"));
        assert!(of(&[7]).contains("byte 9: there is no such kind of block"));
        // A page leaves without having entered; page 1 comes before page 0; a page enters twice.
        for (steps, count) in [(&[1_u8, 1][..], 1), (&[2][..], 1), (&[0, 0][..], 2)] {
            let block = [&[BLOCK, count, 5, steps.len() as u8][..], steps].concat();
            assert!(
                of(&block).contains("a page enters or leaves that cannot"),
                "{steps:?}"
            );
        }
        assert!(of(&[BLOCK, 1, 5, 2, 0, 0]).contains("more bytes than steps"));
        assert!(of(&[BLOCK, 1, 5, 1, 0x80]).contains("a step ends early"));
        assert!(of(&[BLOCK, 0xff, 0xff, 0xff, 0x7f, 5, 1]).contains("larger than any"));
        assert!(of(&[END, 1, 0]).contains("the end's sums"));
        assert!(of(&[END, 0, 0, 0]).contains("bytes follow the end"));
        assert!(of(&[BLOCK, 1]).contains("the file is cut or damaged"));
        let missing = OrderReader::open(Path::new("/missing/a.order"));
        let missing = missing.err().unwrap().to_string();
        assert_eq!(missing, "cannot open /missing/a.order");
    }
}
