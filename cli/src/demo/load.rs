//! A small load, so that a short trace shows memory being used and freed: one thread that fills
//! and frees memory in waves, and writes and reads a file.

use anyhow::Context;
use gleaner_agent::read::meminfo::Meminfo;
use gleaner_schemas::units::Bytes;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const MIB: usize = 1 << 20;
/// The peak of a wave is MemAvailable divided by this: large enough to be visible in a figure, and too small
/// to disturb other programs.
const TOP_SHARE: u64 = 12;
/// Limits on the peak of a wave, on any host.
const TOP_BYTES: RangeInclusive<u64> = 64 << 20..=2 << 30;
/// Number of steps up to the peak: a wave up and down takes about ten seconds.
const STEPS: usize = 16;
const STEP: Duration = Duration::from_millis(300);
/// Size of the file that the load writes and reads.
const FILE_BYTES: usize = 128 * MIB;

/// A running load.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    held_bytes: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Load {
    /// Starts the load in the background; its file is in `folder` while it runs.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let held_bytes = Arc::new(AtomicU64::new(0));
        let path = folder.join("load.tmp");
        let block_bytes = block_bytes(&fs::read("/proc/meminfo").unwrap_or_default());
        let thread = std::thread::Builder::new()
            .name("demo-load".to_owned())
            .spawn({
                let (stop, held_bytes) = (Arc::clone(&stop), Arc::clone(&held_bytes));
                move || {
                    let result = waves(&path, block_bytes, &stop, &held_bytes);
                    remove(&path).and(result)
                }
            })?;
        Ok(Self {
            stop,
            held_bytes,
            thread,
        })
    }

    /// Text for the progress bar: memory that the load holds now.
    pub(crate) fn describe(&self) -> String {
        format!(
            "the load holds {}",
            Bytes::from(self.held_bytes.load(Ordering::Relaxed))
        )
    }

    /// Stops the load and removes its file.
    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(result) => result.context("the demo's load could not use its file"),
            Err(_) => anyhow::bail!("the demo's load failed"),
        }
    }
}

/// Bytes to allocate at each step. If MemAvailable is unknown, the smallest peak is used.
fn block_bytes(meminfo: &[u8]) -> usize {
    let available_bytes = Meminfo::parse(meminfo)
        .and_then(|m| m.get("MemAvailable"))
        .unwrap_or_default();
    let top_bytes = (available_bytes / TOP_SHARE).clamp(*TOP_BYTES.start(), *TOP_BYTES.end());
    top_bytes as usize / STEPS
}

fn waves(
    path: &Path,
    block_bytes: usize,
    stop: &AtomicBool,
    held_bytes: &AtomicU64,
) -> io::Result<()> {
    let mut file = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(path)?;
    let block = vec![0x5a_u8; MIB];
    for _ in 0..FILE_BYTES / MIB {
        file.write_all(&block)?;
    }
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut growing = true;
    while !stop.load(Ordering::Relaxed) {
        if growing {
            held.push(vec![1_u8; block_bytes]);
        } else {
            held.pop();
        }
        growing = match held.len() {
            0 => true,
            STEPS.. => false,
            _ => growing,
        };
        held_bytes.store((held.len() * block_bytes) as u64, Ordering::Relaxed);
        read_again(&mut file)?;
        std::thread::sleep(STEP);
    }
    Ok(())
}

/// Reads the whole file, so that the file's pages and this process count as in use.
fn read_again(file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0_u8; MIB];
    file.rewind()?;
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
