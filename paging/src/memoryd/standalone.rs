//! A lease without a recruiter, for measurements. The rules and the pages are those of other leases. The
//! lease is requested whenever the agent sends a sample.

use gleaner_paging::store::Pages;
use gleaner_policy::lending::Settings;
use gleaner_schemas::lending::{Mode, SLAB_BYTES};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Term of the lease, longer than any measurement.
const TERM_MS: i64 = 365 * 86_400_000;

/// The lease to request.
#[derive(Debug)]
pub(crate) struct StandaloneLease {
    bytes: u64,
    /// Sender to the thread that writes all pages; `None`: the pages are not written.
    filler: Option<Sender<Pages>>,
}

impl StandaloneLease {
    /// # Errors
    /// No thread can be started.
    pub(crate) fn new(bytes: u64, is_filled: bool) -> std::io::Result<Self> {
        let filler = if is_filled {
            Some(filler(bytes)?)
        } else {
            None
        };
        Ok(Self { bytes, filler })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the settings so that only physical memory and the owner limit the lease.
    pub(crate) fn adapt(settings: &mut Settings) {
        settings.limits.mode = Mode::Paper;
        settings.limits.headroom_share = 0.0;
        settings.rise_after_ms = 0;
        settings.max_term_ms = TERM_MS;
    }

    pub(crate) fn granted(&self, pages: Option<Pages>) {
        if let (Some(filler), Some(pages)) = (&self.filler, pages) {
            let _ = filler.send(pages); // the thread ends with the daemon
        }
    }
}

/// Starts a thread that writes every page of each lease, as a client would, until the lease has ended.
fn filler(bytes: u64) -> std::io::Result<Sender<Pages>> {
    let (sender, granted) = channel::<Pages>();
    let fill = move || {
        let contents = vec![0x5a_u8; SLAB_BYTES as usize];
        while let Ok(pages) = granted.recv() {
            // A lease consists of whole slabs, and each is written in one call.
            let gone = |slab: u64| pages.write(slab * SLAB_BYTES, &contents).is_err();
            let _ = (0..bytes.div_ceil(SLAB_BYTES)).any(gone);
        }
    };
    thread::Builder::new().name("fill".to_owned()).spawn(fill)?;
    Ok(sender)
}
