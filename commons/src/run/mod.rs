//! `gleaner-commons run`: the service, which shows the folders of its configuration and shares their blocks
//! with other hosts.

mod error;
mod leasing;
mod listen;
mod recruited;

pub use error::RunError;

use crate::catalog::Catalog;
use crate::config::{Config, SharingConfig};
use crate::directory::{Membership, MembershipSource};
use crate::mount::{
    FETCHERS, MountError, MountSettings, MountUsers, MountedFolder, PreparedMount, Remover,
    check_mount_point, prepare,
};
use crate::peer::{BlockServer, Cluster, MemberDoor, NodeServer};
use crate::privilege::{Privileges, may_mount};
use crate::source::{BlockSource, MountSources};
use crate::status::{self, ServiceMount, ServiceStatus};
use crate::store::{BlockStore, ClusterMemory, StoreSettings};
use axum::Router;
use gleaner_daemon::listen::{Signals, allow_descriptors, until_ended};
use gleaner_trust::{ClientTrust, ServerTrust};
use recruited::RecruitedService;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest wait for requests of other members at the end.
const PARTING: Duration = Duration::from_secs(2);

/// Runs the service until SIGTERM or SIGINT; then its folders are unmounted. If it has privileges to give up, it
/// mounts first, gives them up, and only then reads certificates, listens and serves its mounts.
///
/// # Errors
/// [`RunError`]
pub fn run(path: Option<&Path>) -> Result<(), RunError> {
    let config = Config::load(path)?.values;
    let privileges = Privileges::of_this_process(config.user.as_deref())?;
    let allows_others = config.allows_others.unwrap_or_else(may_mount);
    let (remover, prepared) = match privileges {
        Some(privileges) => {
            let (remover, prepared) = prepare_mounts(&config, &privileges, allows_others)?;
            privileges.give_up()?;
            (Some(remover), prepared)
        }
        None => (None, Vec::new()),
    };
    allow_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(RunError::System)?;
    let signals = {
        let _within = runtime.enter();
        Signals::take().map_err(RunError::System)?
    };
    let service = Arc::new(Service::start(config, remover.is_none(), &runtime)?);
    let listening = service.listen(&runtime)?;
    let mounted = service.mount(prepared, allows_others)?;
    let text = if listening.is_empty() {
        "serves its mounts".to_owned()
    } else {
        format!("serves its mounts, {}", listening.join(", "))
    };
    runtime.block_on(until_ended(signals, &text, || {
        eprintln!("gleaner-commons: changes of the configuration take effect after a restart");
    }));
    let removed = remover.map_or(Ok(()), Remover::end);
    let ended = end(mounted).and(removed.map_err(RunError::from));
    let _ = fs::remove_file(&service.config.socket); // it is of no more use
    service.end();
    runtime.shutdown_timeout(PARTING);
    ended
}

/// Mounts all folders, before a session serves them. They are unmounted when the remover ends.
fn prepare_mounts(
    config: &Config,
    privileges: &Privileges,
    allows_others: bool,
) -> Result<(Remover, Vec<PreparedMount>), MountError> {
    let folders: Vec<&Path> = config.mounts.iter().map(|m| m.folder.as_path()).collect();
    let mut used = vec![config.socket.as_path()];
    for mount in &config.mounts {
        used.push(&mount.catalog.path);
        used.extend(mount.source.folder());
    }
    if let Some(sharing) = &config.sharing {
        let paths = &sharing.server_paths;
        used.extend([&paths.certificate, &paths.key, &paths.authority].map(PathBuf::as_path));
        used.extend(paths.revocation_list.as_deref());
    }
    let users = MountUsers {
        owner: privileges.owner(),
        allows_others,
    };
    let mut remover = Remover::start()?;
    let prepared = prepare(&folders, &used, users, &mut remover)?;
    Ok((remover, prepared))
}

/// Unmounts all folders, also if one of them fails; returns the first fault.
fn end(mounted: Vec<MountedFolder>) -> Result<(), RunError> {
    let mut result = Ok(());
    for folder in mounted {
        let ended = folder.end().map_err(RunError::from);
        result = result.and(ended);
    }
    result
}

struct Service {
    config: Config,
    catalogs: Vec<Arc<Catalog>>,
    store: Arc<BlockStore>,
    sharing: Option<Sharing>,
}

/// Exchange with other members.
struct Sharing {
    members: SharedMembers,
    server_trust: Arc<ServerTrust>,
    client_trust: Arc<ClientTrust>,
}

/// Members of the commons, and the part of this host.
enum SharedMembers {
    /// Members of a fixed list, and homes of blocks.
    Fixed(Arc<Cluster>),
    /// Members that recruiters list, and this host's node of global memory.
    Recruited(RecruitedService),
}

impl Sharing {
    fn start(
        config: &Config,
        sharing: &SharingConfig,
        runtime: &Runtime,
    ) -> Result<Self, RunError> {
        let own_id = config.host_id.as_deref().unwrap_or_default();
        let server_trust = ServerTrust::load(&sharing.server_paths)?;
        let client_trust = ClientTrust::load(&sharing.client_paths)?;
        let trust = Arc::clone(&client_trust);
        let runtime = runtime.handle();
        let members = match &sharing.members {
            MembershipSource::Fixed(_) => {
                let membership = Membership::new(&sharing.members, own_id)?;
                SharedMembers::Fixed(Cluster::start(
                    &config.name,
                    membership,
                    sharing,
                    config.hold_bytes,
                    trust,
                    runtime.clone(),
                )?)
            }
            MembershipSource::Recruiters(recruiters) => {
                let recruited =
                    RecruitedService::start(config, (sharing, recruiters), own_id, trust, runtime)?;
                SharedMembers::Recruited(recruited)
            }
        };
        Ok(Self {
            members,
            server_trust,
            client_trust,
        })
    }

    /// Memory of the other members, for the store.
    fn cluster_memory(&self) -> Arc<dyn ClusterMemory> {
        match &self.members {
            SharedMembers::Fixed(cluster) => Arc::<Cluster>::clone(cluster),
            SharedMembers::Recruited(recruited) => recruited.cluster_memory(),
        }
    }

    /// Routes for the other members, and the callers that are served.
    fn routes(&self, commons: &str, store: &Arc<BlockStore>) -> (Router, Arc<MemberDoor>) {
        match &self.members {
            SharedMembers::Fixed(cluster) => {
                let (cluster, store) = (Arc::clone(cluster), Arc::clone(store));
                let server = Arc::new(BlockServer::new(commons, cluster, store));
                (server.router(), server.door())
            }
            SharedMembers::Recruited(recruited) => {
                let server = Arc::new(NodeServer::new(commons, recruited.exchange()));
                (server.router(), server.door())
            }
        }
    }
}

impl Service {
    /// `mounts_later`: the folders are not mounted yet. A prepared mount answers nobody, this service neither.
    fn start(config: Config, mounts_later: bool, runtime: &Runtime) -> Result<Self, RunError> {
        let (mut catalogs, mut sources) = (Vec::new(), Vec::new());
        for mount in &config.mounts {
            let address = &mount.catalog;
            let catalog = Arc::new(Catalog::open(&address.path, address.pinned)?);
            if mounts_later {
                check_mount_point(&mount.folder)?;
            }
            let timeout = config.source_timeout;
            let source = BlockSource::open(&mount.source, Arc::clone(&catalog), timeout)?;
            catalogs.push(catalog);
            sources.push(source);
        }
        let sharing = config.sharing.as_ref();
        let sharing = sharing.map(|sharing| Sharing::start(&config, sharing, runtime));
        let sharing = sharing.transpose()?;
        let cluster = sharing.as_ref().map(Sharing::cluster_memory);
        let settings = StoreSettings {
            local_bytes: config.local_bytes,
            fetchers: FETCHERS,
            timeout: config.source_timeout,
        };
        let store = BlockStore::start(Box::new(MountSources(sources)), cluster, settings);
        Ok(Self {
            store: Arc::new(store.map_err(RunError::System)?),
            config,
            catalogs,
            sharing,
        })
    }

    /// Serves status, metrics and other members in the background. Returns what it listens on.
    fn listen(self: &Arc<Self>, runtime: &Runtime) -> Result<Vec<String>, RunError> {
        let socket = &self.config.socket;
        let failed = |source| RunError::Socket {
            path: socket.clone(),
            source,
        };
        if let Some(folder) = socket.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let service = Arc::clone(self);
        status::listen(socket, move || service.status()).map_err(failed)?;
        let mut listening = Vec::new();
        if let (Some(sharing), Some(settings)) = (&self.sharing, &self.config.sharing) {
            let routes = sharing.routes(&self.config.name, &self.store);
            let trust = Arc::clone(&sharing.server_trust);
            let members = listen::members(routes, trust, settings);
            listening.push(runtime.block_on(members)?);
            runtime.spawn(listen::follow_client_files(Arc::clone(
                &sharing.client_trust,
            )));
        }
        if let Some(address) = self.config.local_listen {
            let service = Arc::clone(self);
            let local = listen::local(address, move || service.status());
            listening.push(runtime.block_on(local)?);
        }
        for line in &listening {
            eprintln!("gleaner-commons: {line}");
        }
        Ok(listening)
    }

    /// Serves the prepared mounts, or mounts all folders; if one fails, the others are unmounted.
    fn mount(
        &self,
        prepared: Vec<PreparedMount>,
        allows_others: bool,
    ) -> Result<Vec<MountedFolder>, RunError> {
        let mut prepared = prepared.into_iter();
        let mut mounted = Vec::new();
        for (number, (mount, catalog)) in self.config.mounts.iter().zip(&self.catalogs).enumerate()
        {
            let settings = MountSettings {
                point: &mount.folder,
                kernel_cache: self.config.kernel_cache,
                allows_others,
            };
            let (catalog, store) = (Arc::clone(catalog), Arc::clone(&self.store));
            let point = mount.folder.display().to_string();
            let ended = move || eprintln!("gleaner-commons: {point} is unmounted");
            let started = match prepared.next() {
                Some(made) => {
                    MountedFolder::start_prepared(number, made, &settings, catalog, store, ended)
                }
                None => MountedFolder::start(number, &settings, catalog, store, ended),
            };
            match started {
                Ok(folder) => {
                    println!("mounted {}", folder.point().display());
                    mounted.push(folder);
                }
                Err(error) => {
                    let _ = end(mounted); // the first fault is reported
                    return Err(error.into());
                }
            }
        }
        Ok(mounted)
    }

    fn status(&self) -> ServiceStatus {
        let mounts = self.config.mounts.iter().zip(&self.catalogs);
        let mounts = mounts.map(|(mount, catalog)| ServiceMount {
            mount_point: mount.folder.display().to_string(),
            catalog_path: catalog.path().display().to_string(),
            catalog: catalog.name(),
            source: mount.source.to_string(),
            files_count: catalog.totals().files,
            files_bytes: catalog.totals().bytes,
        });
        let members = self.sharing.as_ref().map(|sharing| &sharing.members);
        let (cluster, global, peers) = match members {
            None => (None, None, Vec::new()),
            Some(SharedMembers::Fixed(cluster)) => {
                (Some(cluster.counters()), None, cluster.peers())
            }
            Some(SharedMembers::Recruited(recruited)) => {
                let (cluster, global) = recruited.status();
                (Some(cluster), Some(global), recruited.exchange().peers())
            }
        };
        ServiceStatus {
            commons: self.config.name.clone(),
            host_id: self.config.host_id.clone(),
            policy: self.config.policy.name().to_owned(),
            mounts: mounts.collect(),
            counters: self.store.counters(),
            cluster,
            global,
            peers,
        }
    }

    /// Returns the leases of this host's memory.
    fn end(&self) {
        let members = self.sharing.as_ref().map(|sharing| &sharing.members);
        if let Some(SharedMembers::Recruited(recruited)) = members {
            recruited.end();
        }
    }
}
