//! Places of every page of the device: a flat table of 32 bytes per page.

use super::seal::TagBytes;

/// A place of a page: a slot of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// Absence of a place.
    pub(super) const NONE: Self = Self(u32::MAX);
    /// Maximum number of servers: of the 256 values of a byte, one means that there is no server.
    pub(super) const SERVERS: usize = 255;
    /// Maximum number of slots of one server: 64 GiB.
    pub(super) const SLOTS: u32 = 1 << 24;

    pub(super) fn new(server: u8, slot: u32) -> Self {
        Self(u32::from(server) << 24 | slot & (Self::SLOTS - 1))
    }

    /// Returns server and slot; `None` for [`Self::NONE`].
    pub(super) fn at(self) -> Option<(u8, u32)> {
        let is_some = self != Self::NONE;
        is_some.then_some(((self.0 >> 24) as u8, self.0 & (Self::SLOTS - 1)))
    }
}

/// Maximum number of copies at servers.
pub(super) const COPIES: usize = 2;

/// Entry of one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Version of the stored contents, from 1; 0 means that the page is empty and reads as zeroes. The
    /// highest bit is set if the page is also on disk.
    version: u64,
    pub(super) tag: TagBytes,
    pub(super) places: [Place; COPIES],
}

const ON_DISK: u64 = 1 << 63;

impl Entry {
    /// A page that was never written, or was discarded.
    pub(super) const ZERO: Self = Self {
        version: 0,
        tag: [0; 16],
        places: [Place::NONE; COPIES],
    };

    pub(super) fn new(version: u64, tag: TagBytes, places: [Place; COPIES], on_disk: bool) -> Self {
        let mut entry = Self {
            version,
            tag,
            places,
        };
        entry.set_on_disk(on_disk);
        entry
    }

    pub(super) fn version(&self) -> u64 {
        self.version & !ON_DISK
    }

    pub(super) fn is_zero(&self) -> bool {
        self.version() == 0
    }

    pub(super) fn is_on_disk(&self) -> bool {
        self.version & ON_DISK != 0
    }

    pub(super) fn set_on_disk(&mut self, on_disk: bool) {
        self.version = self.version() | if on_disk { ON_DISK } else { 0 };
    }

    /// Returns true if a server has the page.
    pub(super) fn has_place(&self) -> bool {
        self.places != [Place::NONE; COPIES]
    }
}

/// Entries of all pages.
pub(super) struct Table(Vec<Entry>);

impl Table {
    pub(super) fn new(pages: u32) -> Self {
        Self(vec![Entry::ZERO; pages as usize])
    }

    pub(super) fn pages(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the entry of a page. Pages beyond the end cannot occur: requests are checked on arrival.
    pub(super) fn get(&self, page: u32) -> Entry {
        self.0.get(page as usize).copied().unwrap_or(Entry::ZERO)
    }

    pub(super) fn set(&mut self, page: u32, entry: Entry) {
        if let Some(there) = self.0.get_mut(page as usize) {
            *there = entry;
        }
    }
}
