//! All regions of a program.

use crate::address;
use crate::keeper::Keeper;
use crate::lock;
use crate::pool::{Pool, State, ms};
use crate::{PAGE_BYTES, Region, RegionError, Settings};
use gleaner_paging::borrow::{self, Recruiters, UnreachableHosts};
use gleaner_policy::refraction::Refraction;
use gleaner_trust::{hex, random};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout of a request to a recruiter; longer than a recruiter itself waits for hosts.
const PATIENCE_WITH_RECRUITERS: Duration = Duration::from_secs(10);

/// Counters since the regions were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Pages that came from remote memory.
    pub from_memory_pages: u64,
    /// Pages that came from files.
    pub from_file_pages: u64,
    /// Pages that came back altered.
    pub wrong_pages: u64,
    /// Number of leases and named servers that failed.
    pub failed_nodes: u64,
    /// Number of requests for memory.
    pub asked_count: u64,
}

/// All regions of a program, and the memory that they share.
pub struct Regions {
    inner: Arc<Pool>,
}

impl Regions {
    /// # Errors
    /// The settings are invalid, or the system provides no thread or randomness.
    pub fn new(settings: Settings) -> Result<Self, RegionError> {
        let servers = settings.servers.iter().map(|url| address::parse(url));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        if settings.recruiters.is_empty() && servers.is_empty() {
            let what = "neither a recruiter nor a server is named".to_owned();
            return Err(RegionError::Settings { what });
        }
        let recruiters = match &settings.recruiters[..] {
            [] => None,
            urls => Some(Recruiters::new(borrow::Settings {
                urls: urls.to_vec(),
                trust: settings.trust.clone(),
                client: settings.client.clone(),
                patience: PATIENCE_WITH_RECRUITERS,
            })?),
        };
        let refraction_ms = ms(settings.refraction);
        let randomness = |e| RegionError::System(io::Error::other(e));
        let inner = Arc::new(Pool {
            key: random::bytes().map_err(randomness)?,
            session: hex::encode(&random::bytes::<8>().map_err(randomness)?),
            from_memory_pages: AtomicU64::new(0),
            from_file_pages: AtomicU64::new(0),
            wrong_pages: AtomicU64::new(0),
            recruiters,
            servers,
            state: Mutex::new(State {
                nodes: Vec::new(),
                refraction: Refraction::new(refraction_ms),
                unreachable: UnreachableHosts::new(refraction_ms),
                failed_nodes: 0,
                asked_count: 0,
                last_failure: None,
            }),
            settings,
            asking: Mutex::new(()),
            keeper: Mutex::new(None),
            began: Instant::now(),
        });
        if inner.recruiters.is_some() {
            let every = inner.settings.renew_every;
            let of = Arc::downgrade(&inner);
            let round = move || {
                of.upgrade().is_some_and(|pool| {
                    pool.keep();
                    true
                })
            };
            let keeper = Keeper::start(round, every);
            *lock(&inner.keeper) = Some(keeper.map_err(RegionError::System)?);
        }
        Ok(Self { inner })
    }

    /// Opens a region for `bytes` bytes of a file, from `offset` on. The region uses the file by its
    /// descriptor. While the region is open, no other program may access the file.
    ///
    /// # Errors
    /// [`RegionError::NoMemory`], immediately during the refraction period; [`RegionError::Unfit`].
    pub fn open(&self, bytes: u64, file: File, offset: u64) -> Result<Region, RegionError> {
        Region::check(bytes, &file, offset)?;
        let room_bytes = bytes.next_multiple_of(PAGE_BYTES);
        let (node, at) = self.inner.room(room_bytes)?;
        Ok(Region::new(&self.inner, (node, at), bytes, file, offset))
    }

    /// Stops renewing leases. Each lease is returned when its last region is closed, or immediately if none
    /// is open.
    pub fn end(self) {
        self.stop_renewing();
    }

    /// Stops the keeper and waits for the end of its round. Afterwards the keeper holds no reference to
    /// regions that are dropped next.
    pub(crate) fn stop_renewing(&self) {
        let keeper = lock(&self.inner.keeper).take();
        drop(keeper);
    }

    /// Message about the last failed node, with the reason.
    #[must_use]
    pub fn last_failure(&self) -> Option<String> {
        lock(&self.inner.state).last_failure.clone()
    }

    /// Counters since the regions were made.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let state = lock(&self.inner.state);
        Figures {
            from_memory_pages: self.inner.from_memory_pages.load(Ordering::Relaxed),
            from_file_pages: self.inner.from_file_pages.load(Ordering::Relaxed),
            wrong_pages: self.inner.wrong_pages.load(Ordering::Relaxed),
            failed_nodes: state.failed_nodes,
            asked_count: state.asked_count,
        }
    }
}
