//! Parts of a service whose members a recruiter lists.

use super::RunError;
use super::leasing::Leasing;
use crate::config::{Config, SharingConfig, SharingPolicy};
use crate::global::{GlobalMemory, Posts};
use crate::hold::{HoldCounters, HoldSettings, LeaseKeeper, LeasePool};
use crate::link::{LinkSettings, RecruiterLinks};
use crate::peer::{ClusterCounters, Exchange};
use crate::status::GlobalStatus;
use crate::store::ClusterMemory;
use gleaner_paging::borrow::{self, Recruiters};
use gleaner_policy::global::node_of_host;
use gleaner_trust::{Address, ClientTrust, hex, random};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;

/// Timeout of a recruiter's answer about leases.
const PATIENCE: Duration = Duration::from_secs(6);

/// This host's node of global memory, with its links and leases.
pub(super) struct RecruitedService {
    exchange: Arc<Exchange>,
    links: Arc<RecruiterLinks>,
    pool: Arc<LeasePool>,
    leasing: Leasing,
}

impl RecruitedService {
    /// Starts links, leases and the exchange with the members.
    pub(super) fn start(
        config: &Config,
        (sharing, recruiters): (&SharingConfig, &[Address]),
        own_id: &str,
        trust: Arc<ClientTrust>,
        runtime: &Handle,
    ) -> Result<Self, RunError> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since_1970.map_or(0, |since| since.as_secs());
        let generation = u32::try_from(seconds).unwrap_or(u32::MAX);
        let pool = LeasePool::start().map_err(RunError::System)?;
        let settings = config.global;
        let homes = match config.policy {
            SharingPolicy::Hash => settings.homes,
            SharingPolicy::None | SharingPolicy::NChance | SharingPolicy::Gms => 0,
        };
        let (posts, queues) = Posts::new();
        let memory = Arc::new(GlobalMemory::new(
            (node_of_host(own_id), generation),
            settings,
            config.local_bytes,
            Arc::clone(&pool),
            posts,
        ));
        let exchange = Exchange::start(
            (&config.name, own_id),
            sharing,
            homes,
            (Arc::clone(&memory), queues),
            Arc::clone(&trust),
            runtime.clone(),
        )?;
        let lessors = Recruiters::new(borrow::Settings {
            urls: recruiters.iter().map(Address::to_string).collect(),
            trust: Some(Arc::clone(&trust)),
            client: None,
            patience: PATIENCE,
        })?;
        let hold = HoldSettings {
            host_id: own_id.to_owned(),
            most_bytes: config.hold_bytes,
            session: format!("commons-{}", hex::encode(&random::bytes::<8>()?)),
        };
        let keeper = LeaseKeeper::new(lessors, hold, Arc::clone(&pool));
        let leasing = Leasing::start(keeper, memory).map_err(RunError::System)?;
        let specific = Some(sharing.listen).filter(|listen| !listen.ip().is_unspecified());
        let listened = specific.map(|listen| listen.to_string());
        let identity = LinkSettings {
            commons: config.name.clone(),
            host_id: own_id.to_owned(),
            address: sharing.address.clone().or(listened),
            port: sharing.listen.port(),
        };
        let links =
            RecruiterLinks::start(recruiters, identity, Arc::clone(&exchange), trust, runtime);
        Ok(Self {
            exchange,
            links,
            pool,
            leasing,
        })
    }

    /// Exchange with the other members.
    pub(super) fn exchange(&self) -> Arc<Exchange> {
        Arc::clone(&self.exchange)
    }

    /// Memory of the other members, for the store.
    pub(super) fn cluster_memory(&self) -> Arc<dyn ClusterMemory> {
        Arc::<Exchange>::clone(&self.exchange)
    }

    /// Figures of blocks that were sent or are held, and the state of links, epoch and leases.
    pub(super) fn status(&self) -> (ClusterCounters, GlobalStatus) {
        let memory = self.exchange.memory();
        let (counts, puts, pool) = (
            memory.counts(),
            self.exchange.counters(),
            self.pool.counters(),
        );
        let cluster = ClusterCounters {
            puts_count: puts.puts_count,
            puts_without_room_count: puts.puts_without_room_count,
            puts_dropped_count: puts.puts_dropped_count + counts.dropped_puts,
            directory_entries_count: counts.directory_entries,
            directory_refused_count: counts.refused_entries,
            hold: HoldCounters {
                hold_size_bytes: pool.leased_bytes,
                hold_used_bytes: counts.leased_bytes,
                hold_frames_count: counts.leased_frames,
                stored_blocks_count: counts.stored_blocks,
                ..HoldCounters::default()
            },
        };
        let global = GlobalStatus {
            links: self.links.statuses(),
            epoch: memory.epoch(),
            pool,
            quota_bytes: memory.quota_bytes(),
            global_blocks_count: counts.global_frames,
            lost_blocks_count: counts.lost_blocks,
        };
        (cluster, global)
    }

    /// Returns the leases of this host's memory.
    pub(super) fn end(&self) {
        self.leasing.end();
    }
}
