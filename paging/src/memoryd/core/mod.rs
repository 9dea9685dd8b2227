//! The single thread that waits for all inputs together, passes them to [`Lender`], and carries out its
//! actions.
//!
//! Giving memory back comes first: the agent's messages are read before all others, and no call here blocks.

mod act;
mod agent;
mod control;
mod links;
mod owner;
mod pressure;
mod served_requests;
mod wait;

pub(crate) use links::{CoreMessage, Inbox, LinkEnd, Links};

use crate::clock;
use crate::config::Config;
use crate::itself::{self, Memory};
use crate::log::Log;
use crate::standalone::StandaloneLease;
use crate::wishes::{OwnerWishes, WishesFile};
use act::LentSpan;
use agent::Agent;
use anyhow::Context;
use control::Control;
use gleaner_daemon::notify::ServiceManager;
use gleaner_paging::nbd::Load;
use gleaner_paging::store::Store;
use gleaner_policy::lending::{Cause, Event, Lender};
use gleaner_schemas::lending::{
    Announcement, HostQuota, Outcome, OwnerReply, QuotaReason, ReclaimRecord, Refusal, Request,
    RevocationCount, VERSION,
};
use gleaner_schemas::units::Bytes;
use gleaner_trust::{hex, random};
use pressure::{MeminfoFigures, Pressure};
use served_requests::ServedRequests;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use wait::LOOK_EVERY_MS;

/// State of the core.
pub(crate) struct Core {
    lender: Lender,
    store: Arc<Store>,
    agent: Agent,
    control: Control,
    pressure: Option<Pressure>,
    links: Links,
    /// Sends another thread the owner's commands for which it measures memory and writes wishes.
    looks: Sender<SlowCommand>,
    /// Commands that wait for the measurement of memory before they are answered.
    unanswered: BTreeMap<u64, PendingCommand>,
    /// Becomes readable on SIGTERM and SIGINT.
    end: UnixStream,
    wishes: OwnerWishes,
    /// True if [`Self::wishes`] have changed since they were last sent to be written.
    has_new_wishes: bool,
    log: Log,
    lent: LentSpan,
    served: ServedRequests,
    serves_pages: bool,
    /// Revocation lists in force.
    revocations: Option<RevocationCount>,
    /// True if memory is offered whose pages no client could read or write.
    is_useless: bool,
    host_id: String,
    incarnation: String,
    standalone: Option<StandaloneLease>,
    announce_every_ms: i64,
    announced_ms: i64,
    looked_ms: i64,
    manager: Arc<ServiceManager>,
    /// Time of the last keep-alive to the service manager.
    alive_ms: i64,
    /// Status text sent last to the service manager.
    status: String,
}

/// A command of the owner whose answer takes time: another thread prepares it.
#[derive(Debug)]
pub(crate) struct SlowCommand {
    pub(crate) connection: u64,
    /// Wishes to be written before the answer.
    pub(crate) wishes: Option<OwnerWishes>,
}

/// A command that waits for [`CoreMessage::Looked`].
#[derive(Debug)]
struct PendingCommand {
    reclaimed: Option<ReclaimRecord>,
    is_privileged: bool,
}

/// Ends of the core's channels that other threads use.
pub(crate) struct CoreEnds {
    /// Ends of the links, in the order of the recruiters.
    pub(crate) links: Vec<LinkEnd>,
    /// Commands for which wishes are written and memory is measured; the answer is [`CoreMessage::Looked`].
    pub(crate) looks: Receiver<SlowCommand>,
    /// File of the owner's wishes.
    pub(crate) kept: WishesFile,
    pub(crate) inbox: Inbox,
}

impl Core {
    /// Opens everything that can fail, before any memory is lent.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub(crate) fn new(
        config: &Config,
        store: Arc<Store>,
        generation: u64,
        end: UnixStream,
        standalone: Option<StandaloneLease>,
        load: Arc<Load>,
        manager: Arc<ServiceManager>,
    ) -> anyhow::Result<(Self, CoreEnds)> {
        let (links, link_ends) = Links::new(&config.recruiters.urls)?;
        let (looks, looked_for) = channel();
        let socket = &config.socket;
        let control =
            Control::open(socket).with_context(|| format!("listen at {}", socket.display()))?;
        let pressure = match Pressure::watch() {
            Ok(pressure) => Some(pressure),
            Err(e) => {
                eprintln!(
                    "gleaner-memoryd: the kernel does not report memory pressure ({e}): MemAvailable alone counts"
                );
                None
            }
        };
        let kept = WishesFile::new(&config.state_folder);
        let wishes = kept.read().unwrap_or_else(|(wishes, why)| {
            eprintln!("gleaner-memoryd: {why}");
            wishes
        });
        let ends = CoreEnds {
            links: link_ends,
            looks: looked_for,
            kept,
            inbox: links.inbox(),
        };
        let core = Self {
            lender: Lender::new(config.settings.clone(), generation),
            agent: Agent::new(&config.agent_socket, standalone.is_some()),
            control,
            pressure,
            links,
            looks,
            unanswered: BTreeMap::new(),
            end,
            wishes,
            has_new_wishes: false,
            log: Log::open(&config.state_folder),
            lent: LentSpan::default(),
            served: ServedRequests::new(load, clock::boot_ms()),
            serves_pages: config.serving.listen.is_some() || config.serving.pages_socket.is_some(),
            revocations: None,
            is_useless: config.serving.note().is_some(),
            host_id: config.recruiters.host_id.clone().unwrap_or_default(),
            incarnation: format!("{generation:016x}"),
            standalone,
            announce_every_ms: config.announce_every_ms,
            announced_ms: i64::MIN,
            looked_ms: i64::MIN,
            store,
            manager,
            alive_ms: i64::MIN,
            status: String::new(),
        };
        Ok((core, ends))
    }

    /// Lends until SIGTERM or SIGINT; returns after all memory is given back.
    ///
    /// # Errors
    /// The kernel fails to wait for inputs.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.restore_wishes();
        let status = self.doing();
        self.manager.ready(&status);
        loop {
            let now_ms = clock::boot_ms();
            let found = self.wait(now_ms)?;
            let woke = Instant::now();
            let now_ms = clock::boot_ms();
            if found.agent {
                for event in self.agent.read_messages(now_ms) {
                    self.step(event, woke);
                }
            }
            if found.end {
                self.step(Event::Returned(Cause::Ending), woke);
                self.announce(now_ms);
                self.manager.stopping("all memory is back");
                return Ok(());
            }
            if found.pressure && MeminfoFigures::read().is_none_or(MeminfoFigures::is_short) {
                self.step(Event::Pressure, woke);
            }
            for connection in found.owners {
                self.control.flush(connection);
                for asked in self.control.read_commands(connection) {
                    self.owner(asked, woke);
                }
            }
            if found.newcomer {
                self.control.accept();
            }
            if found.told {
                for told in self.links.take_messages() {
                    self.handle_message(told, woke);
                }
            }
            self.tick(woke);
        }
    }

    /// Restores the owner's wishes of the last run.
    fn restore_wishes(&mut self) {
        let woke = Instant::now();
        if let Some(pause) = self.wishes.pause {
            let until_ms = pause.until_time_ms.map(clock::on_boot_clock);
            self.step(Event::Pause { until_ms }, woke);
        }
        if let Some(cap) = self.wishes.cap {
            self.step(Event::Cap(Some(cap.bytes)), woke);
        }
    }

    fn tick(&mut self, woke: Instant) {
        let now_ms = clock::boot_ms();
        if self.alive_due_ms().is_some_and(|due| due <= now_ms) {
            self.manager.alive();
            self.alive_ms = now_ms;
        }
        for event in self.agent.tick(now_ms) {
            self.step(event, woke);
        }
        if self.lender.next_tick_ms().is_some_and(|due| due <= now_ms) {
            self.step(Event::Tick, woke);
        }
        if self.lent.since_time_ms.is_some()
            && now_ms >= self.looked_ms.saturating_add(LOOK_EVERY_MS)
        {
            self.looked_ms = now_ms;
            if let Some(found) = MeminfoFigures::read() {
                let mem_available_bytes = found.available_bytes;
                let resident_bytes = self.resident_bytes();
                self.step(
                    Event::Available {
                        mem_available_bytes,
                        resident_bytes,
                    },
                    woke,
                );
            }
        }
        if now_ms >= self.announced_ms.saturating_add(self.announce_every_ms) {
            self.announce(now_ms);
            let written = self.log.tick(clock::wall_ms());
            said(written);
        }
    }

    /// Returns an estimate of guests' resident bytes: the size of their slabs, or the anonymous memory of the
    /// process if that is less. It is less if slabs without huge pages were written only in part.
    fn resident_bytes(&self) -> u64 {
        let held_bytes = self.store.held_bytes();
        itself::anonymous_bytes().map_or(held_bytes, |bytes| bytes.min(held_bytes))
    }

    fn handle_message(&mut self, told: CoreMessage, woke: Instant) {
        match told {
            CoreMessage::Request { link, request } => self.ask(link, request, woke),
            CoreMessage::Linked { link, is_up } => {
                if let Some(is_linked) = self.links.set_up(link, is_up) {
                    self.step(Event::Linked(is_linked), woke);
                }
            }
            CoreMessage::Revocations { held, lease_ids } => {
                self.revocations = held;
                if !lease_ids.is_empty() {
                    self.step(Event::CertificateRevoked(lease_ids), woke);
                }
            }
            CoreMessage::Looked { connection, memory } => self.answer_owner(connection, memory),
            CoreMessage::Configured { settings, done } => {
                self.step(Event::Settings(*settings), woke);
                let _ = done.send(self.doing()); // the caller may have gone
            }
        }
    }

    /// Time of the next keep-alive to the service manager.
    fn alive_due_ms(&self) -> Option<i64> {
        let every = self.manager.sign_of_life_interval()?;
        let every_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        Some(self.alive_ms.saturating_add(every_ms))
    }

    /// Present activity, as a short text.
    fn doing(&self) -> String {
        if self.is_useless {
            return "lends nothing: no address serves pages (`listen`)".to_owned();
        }
        let quota = self.quota();
        let lent = Bytes::from(quota.lent_bytes);
        if quota.lent_bytes > 0 {
            return format!("lends {lent} of {}", Bytes::from(quota.quota_bytes));
        }
        let why = match quota.reason {
            QuotaReason::Idle | QuotaReason::Spare => {
                return format!("lends nothing of {}", Bytes::from(quota.quota_bytes));
            }
            QuotaReason::Waiting => "not idle for long enough",
            QuotaReason::InUse => "the owner is there",
            QuotaReason::Loaded => "the load is too high",
            QuotaReason::Paused => "the owner has paused lending",
            QuotaReason::Pressure => "memory runs short",
            QuotaReason::Unknown => "the state of the agent or of the owner is unknown",
        };
        format!("lends nothing: {why}")
    }

    fn ask(&mut self, link: usize, request: Request, woke: Instant) {
        let request_id = request.request_id;
        match fresh_id() {
            Ok(fresh_id) => {
                self.step(
                    Event::Request {
                        link,
                        request,
                        fresh_id,
                    },
                    woke,
                );
            }
            Err(e) => {
                // Without random bytes, no id can be made that nobody can guess.
                eprintln!("gleaner-memoryd: no random bytes: {e}");
                let refusal = Refusal {
                    detail: format!("the host has no random bytes: {e}"),
                    retry_in_ms: Some(1000),
                    ..Refusal::default()
                };
                self.reply(link, request_id, Outcome::Refused(refusal));
            }
        }
    }

    fn quota(&self) -> HostQuota {
        HostQuota {
            host_id: self.host_id.clone(),
            ..self.lender.quota(clock::boot_ms())
        }
    }

    fn announce(&mut self, now_ms: i64) {
        self.announced_ms = now_ms;
        self.links.announce(Announcement {
            version: VERSION,
            memoryd_version: env!("CARGO_PKG_VERSION").to_owned(),
            incarnation: self.incarnation.clone(),
            quota: self.quota(),
            address: None,
            pages_socket: None,
            requests_per_s: self.served.per_s(now_ms),
            leases: self.lender.leases(now_ms),
            accepts_revocation_lists: true,
        });
        let status = self.doing();
        if status != self.status {
            self.manager.status(&status);
            self.status = status;
        }
    }

    /// Answers an owner's command, now that memory is measured.
    fn answer_owner(&mut self, connection: u64, memory: Memory) {
        if let Some(asked) = self.unanswered.remove(&connection) {
            let lending = self.lending(memory, asked);
            let reply = OwnerReply::Lending(Box::new(lending));
            self.control.reply(connection, &reply);
        }
    }
}

fn said(written: std::io::Result<()>) {
    if let Err(e) = written {
        eprintln!("gleaner-memoryd: the lending log cannot be written: {e}");
    }
}

/// Returns an id of 128 bits that nobody can guess.
fn fresh_id() -> gleaner_trust::Result<String> {
    Ok(hex::encode(&random::bytes::<16>()?))
}
