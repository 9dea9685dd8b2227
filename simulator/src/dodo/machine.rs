//! Disks and network of the client: stations that serve requests in order of arrival.

use super::dice::{SeekTimes, stream, time_below};
use super::scenario::{Disks, Network};
use crate::event::SECOND;
use rand_chacha::ChaCha8Rng;

/// A station that serves one request after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Station {
    free_ns: u64,
}

impl Station {
    /// Accepts work that arrives at `at_ns`, which is not before the last arrival. Returns the time at which
    /// the work is done.
    pub(super) const fn serve(&mut self, at_ns: u64, work_ns: u64) -> u64 {
        let begin_ns = if self.free_ns > at_ns {
            self.free_ns
        } else {
            at_ns
        };
        self.free_ns = begin_ns + work_ns;
        self.free_ns
    }
}

/// Time to transfer `bytes`.
pub(super) const fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    if bytes_per_s == 0 {
        return u64::MAX / 4;
    }
    // A request has far fewer than 2³⁴ bytes.
    bytes.saturating_mul(SECOND) / bytes_per_s
}

/// State of one disk.
#[derive(Clone, Debug)]
struct Disk {
    arm: Station,
    /// End of each recent sequential stream, as a byte offset into all data; a new stream replaces the
    /// oldest.
    ends: Vec<u64>,
    oldest: usize,
}

/// All disks of the client, the string that connects them, and the network.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    seeks: SeekTimes,
    rotation_ns: u64,
    media_bytes_per_s: u64,
    string_bytes_per_s: u64,
    disks: Vec<Disk>,
    string: Station,
    network: Station,
    network_bytes_per_s: Option<u64>,
    latency_ns: u64,
    dice: ChaCha8Rng,
}

impl Machine {
    pub(super) fn new(disks: &Disks, network: &Network, seed: u64) -> Self {
        let disk = Disk {
            arm: Station::default(),
            ends: vec![u64::MAX; disks.sequential_streams as usize],
            oldest: 0,
        };
        Self {
            seeks: SeekTimes::new(disks.seek_mean_ns, disks.seek_max_ns),
            rotation_ns: disks.rotation_ns,
            media_bytes_per_s: disks.media_bytes_per_s,
            string_bytes_per_s: disks.string_bytes_per_s,
            disks: vec![disk; disks.count.max(1) as usize],
            string: Station::default(),
            network: Station::default(),
            network_bytes_per_s: network.bytes_per_s,
            latency_ns: network.latency_ns,
            dice: stream(seed, 0),
        }
    }

    /// Adds a disk's work on `bytes` of the file numbered `file`, at offset `from_byte` of all data. Returns
    /// the time at which the string begins its transfer, chosen so that disk and string end together.
    pub(super) fn disk(&mut self, at_ns: u64, file: u32, from_byte: u64, bytes: u64) -> u64 {
        let count = self.disks.len();
        let disk = &mut self.disks[file as usize % count];
        let mut work_ns = transfer_ns(bytes, self.media_bytes_per_s);
        match disk.ends.iter_mut().find(|end| **end == from_byte) {
            Some(end) => *end += bytes,
            None => {
                work_ns += self.seeks.draw(&mut self.dice);
                work_ns += time_below(self.rotation_ns, &mut self.dice);
                if let Some(end) = disk.ends.get_mut(disk.oldest) {
                    *end = from_byte + bytes;
                    disk.oldest = (disk.oldest + 1) % disk.ends.len();
                }
            }
        }
        let done_ns = disk.arm.serve(at_ns, work_ns);
        let on_string_ns = transfer_ns(bytes, self.string_bytes_per_s);
        done_ns.saturating_sub(on_string_ns).max(at_ns)
    }

    /// Transfers `bytes` over the string, and returns the time at which the transfer ends.
    pub(super) fn string(&mut self, at_ns: u64, bytes: u64) -> u64 {
        let work_ns = transfer_ns(bytes, self.string_bytes_per_s);
        self.string.serve(at_ns, work_ns)
    }

    /// Sends `bytes` over the network at `at_ns`, and returns the time of arrival.
    pub(super) fn send(&mut self, at_ns: u64, bytes: u64) -> u64 {
        let work_ns = match self.network_bytes_per_s {
            Some(bytes_per_s) => transfer_ns(bytes, bytes_per_s),
            None => 0,
        };
        self.network.serve(at_ns, work_ns) + self.latency_ns
    }

    /// Latency of a request and its answer, without data.
    pub(super) const fn round_trip_ns(&self) -> u64 {
        2 * self.latency_ns
    }

    /// Latency of one message.
    pub(super) const fn latency_ns(&self) -> u64 {
        self.latency_ns
    }
}
