//! Memory whose pages fault: anonymous memory, or a mapped file.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::num::NonZeroU64;
use std::path::Path;

/// Bytes of a word, the unit of reading and writing.
const WORD_BYTES: usize = size_of::<u64>();

/// Mapped memory of whole pages. Each page begins with a word that is different in every page.
pub(super) struct MappedPages {
    memory: call::PageMapping,
    page_bytes: usize,
    /// File behind the memory.
    file: Option<File>,
}

impl MappedPages {
    /// Maps and fills anonymous memory. Half of each page is random, so that it compresses to about a half.
    pub(super) fn anonymous(bytes: u64) -> anyhow::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let memory = call::PageMapping::anonymous(whole_pages(bytes, page_bytes)?);
        let mut pages = Self {
            memory: memory.context("cannot map memory")?,
            page_bytes,
            file: None,
        };
        for page in 0..pages.count() {
            for (index, word) in words(page, page_bytes).enumerate() {
                pages.write(page, index, word);
            }
        }
        Ok(pages)
    }

    /// Maps a new file in this folder, of which nothing is cached. The file has no name, and ends with this value.
    pub(super) fn of_file(folder: &Path, bytes: u64) -> anyhow::Result<Self> {
        let failed = || format!("cannot write a file in {}", folder.display());
        let page_bytes = rustix::param::page_size();
        let bytes = whole_pages(bytes, page_bytes)?;
        let file = tempfile::tempfile_in(folder).with_context(failed)?;
        let mut writer = BufWriter::new(&file);
        for page in 0..bytes / page_bytes {
            let mut content: Vec<u8> = words(page, page_bytes).flat_map(u64::to_ne_bytes).collect();
            content.resize(page_bytes, 0);
            writer.write_all(&content).with_context(failed)?;
        }
        writer.flush().with_context(failed)?;
        drop(writer);
        file.sync_all().with_context(failed)?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        let memory = call::PageMapping::of_file(&file, bytes);
        Ok(Self {
            memory: memory.context("cannot map the file")?,
            page_bytes,
            file: Some(file),
        })
    }

    /// Number of pages, at least one.
    pub(super) fn count(&self) -> usize {
        self.memory.bytes() / self.page_bytes
    }

    /// Reads the first word of a page. This is the access that may fault.
    pub(super) fn first_word(&self, page: usize) -> u64 {
        self.memory.read(page * self.page_bytes)
    }

    /// Word with which a page begins.
    pub(super) fn mark(page: usize) -> u64 {
        (page as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Prepares a page for the next access: of a file, it leaves the cache; else every second one is written, so that
    /// it has to be swapped out again.
    pub(super) fn release(&mut self, page: usize) -> anyhow::Result<()> {
        let Some(file) = &self.file else {
            if page.is_multiple_of(2) {
                self.write(page, 0, Self::mark(page));
            }
            return Ok(());
        };
        let offset = page * self.page_bytes;
        self.memory.unmap_page(offset, self.page_bytes)?;
        let length = NonZeroU64::new(self.page_bytes as u64);
        rustix::fs::fadvise(file, offset as u64, length, rustix::fs::Advice::DontNeed)?;
        Ok(())
    }

    fn write(&mut self, page: usize, index: usize, word: u64) {
        self.memory
            .write(page * self.page_bytes + index * WORD_BYTES, word);
    }
}

fn whole_pages(bytes: u64, page_bytes: usize) -> anyhow::Result<usize> {
    let pages = usize::try_from(bytes)? / page_bytes;
    if pages == 0 {
        bail!("the memory is smaller than a page of {page_bytes} bytes");
    }
    Ok(pages * page_bytes)
}

/// First half of a page's words: its mark, and pseudo-random words (xorshift).
fn words(page: usize, page_bytes: usize) -> impl Iterator<Item = u64> {
    let mut state = MappedPages::mark(page);
    let next = move || {
        let word = state;
        state = next_random(state);
        word
    };
    std::iter::repeat_with(next).take(page_bytes / WORD_BYTES / 2)
}

/// Next state of Marsaglia's xorshift generator. The state must not be 0.
pub(super) fn next_random(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

#[allow(unsafe_code)] // mapping, and access to mapped memory by address
mod call {
    use super::WORD_BYTES;
    use rustix::io;
    use rustix::mm::{self, Advice, MapFlags, ProtFlags};
    use std::ffi::c_void;
    use std::fs::File;
    use std::ptr::null_mut;

    /// Mapped memory. It has whole pages, in small ones (no huge pages).
    pub(super) struct PageMapping {
        begin: *mut c_void,
        bytes: usize,
    }

    impl PageMapping {
        pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the kernel chooses an unused address, so no other memory is changed.
            let begin =
                unsafe { mm::mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) }?;
            let mapping = Self { begin, bytes };
            match mapping.advise(0, bytes, Advice::LinuxNoHugepage) {
                // A kernel without huge pages does not know the advice.
                Ok(()) | Err(io::Errno::INVAL) => Ok(mapping),
                Err(error) => Err(error),
            }
        }

        /// Maps a file for reading, without read-ahead.
        pub(super) fn of_file(file: &File, bytes: usize) -> io::Result<Self> {
            let (access, flags) = (ProtFlags::READ, MapFlags::SHARED);
            // SAFETY: the kernel chooses an unused address, so no other memory is changed.
            let begin = unsafe { mm::mmap(null_mut(), bytes, access, flags, file, 0) }?;
            let mapping = Self { begin, bytes };
            mapping.advise(0, bytes, Advice::Random)?;
            Ok(mapping)
        }

        pub(super) fn bytes(&self) -> usize {
            self.bytes
        }

        /// Reads the word at an offset.
        pub(super) fn read(&self, offset: usize) -> u64 {
            // SAFETY: the address is inside the mapping and aligned, and any bytes are a u64.
            unsafe { self.word(offset).read_volatile() }
        }

        /// Writes the word at an offset of anonymous memory.
        pub(super) fn write(&mut self, offset: usize, word: u64) {
            // SAFETY: the address is inside the mapping and aligned; nothing else refers to the memory.
            unsafe { self.word(offset).write_volatile(word) }
        }

        /// Removes a file's page from this mapping; the next access faults.
        pub(super) fn unmap_page(&self, offset: usize, page_bytes: usize) -> io::Result<()> {
            self.advise(offset, page_bytes, Advice::LinuxDontNeed)
        }

        fn advise(&self, offset: usize, bytes: usize, advice: Advice) -> io::Result<()> {
            assert!(
                offset
                    .checked_add(bytes)
                    .is_some_and(|end| end <= self.bytes)
            );
            // SAFETY: the range is inside the mapping. Only a file's pages are discarded, whose content stays in the
            // file.
            unsafe { mm::madvise(self.begin.byte_add(offset), bytes, advice) }
        }

        fn word(&self, offset: usize) -> *mut u64 {
            let is_word = offset.is_multiple_of(WORD_BYTES) && offset < self.bytes;
            assert!(is_word, "no word of the mapping: {offset}");
            self.begin.wrapping_byte_add(offset).cast()
        }
    }

    impl Drop for PageMapping {
        fn drop(&mut self) {
            // SAFETY: nothing refers to the memory any more.
            let _ = unsafe { mm::munmap(self.begin, self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_their_marks() {
        let mut pages = MappedPages::anonymous(100_000).unwrap();
        assert_eq!(pages.count(), 100_000 / rustix::param::page_size());
        for page in 0..pages.count() {
            pages.release(page).unwrap();
            assert_eq!(pages.first_word(page), MappedPages::mark(page));
        }
        assert!(MappedPages::anonymous(100).is_err());
    }

    #[test]
    fn a_file_has_the_same_words_and_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut pages = MappedPages::of_file(folder.path(), 65_536).unwrap();
        for page in 0..pages.count() {
            assert_eq!(pages.first_word(page), MappedPages::mark(page));
            pages.release(page).unwrap();
            assert_eq!(pages.first_word(page), MappedPages::mark(page));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(MappedPages::of_file(Path::new("/missing"), 65_536).is_err());
    }
}
