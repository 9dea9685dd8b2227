//! One thread that waits for everything at once, asks [`Lender`] what is to be done about it, and does it.
//!
//! What makes memory go back comes first: the agent's word is heard before any other, and nothing here waits for
//! anybody else.

mod act;
mod agent;
mod control;
mod links;
mod owner;
mod pressure;
mod served;
mod wait;

pub(crate) use links::{Inbox, LinkEnd, Links, Told};

use crate::clock;
use crate::config::Config;
use crate::itself::{self, Memory};
use crate::log::Log;
use crate::standalone::Standalone;
use crate::wishes::{Kept, Wishes};
use act::Lent;
use agent::Agent;
use anyhow::Context;
use control::Control;
use gleaner_daemon::notify::ServiceManager;
use gleaner_paging::nbd::Load;
use gleaner_paging::store::Store;
use gleaner_policy::lending::{Cause, Event, Lender};
use gleaner_schemas::lending::{
    Announcement, GivenBack, HostQuota, Outcome, OwnerReply, QuotaReason, Refusal, Request,
    RevocationsHeld, VERSION,
};
use gleaner_schemas::units::Bytes;
use gleaner_trust::{hex, random};
use pressure::{Available, Pressure};
use served::Served;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use wait::LOOK_EVERY_MS;

/// All that the core owns.
pub(crate) struct Core {
    lender: Lender,
    store: Arc<Store>,
    agent: Agent,
    control: Control,
    pressure: Option<Pressure>,
    links: Links,
    /// Asks where memory is, and has wishes written, for a connection of the owner's control.
    looks: Sender<Look>,
    /// What commands gave back whose answers wait for that look.
    unanswered: BTreeMap<u64, Unanswered>,
    /// Becomes readable on SIGTERM and SIGINT.
    end: UnixStream,
    wishes: Wishes,
    /// [`Self::wishes`] have changed since they were last handed to be written.
    has_new_wishes: bool,
    log: Log,
    lent: Lent,
    served: Served,
    serves_pages: bool,
    /// Revocation lists in force.
    revocations: Option<RevocationsHeld>,
    /// Memory is offered whose pages nobody could read or write.
    is_useless: bool,
    host_id: String,
    incarnation: String,
    standalone: Option<Standalone>,
    announce_every_ms: i64,
    announced_ms: i64,
    looked_ms: i64,
    manager: Arc<ServiceManager>,
    /// When the service manager was last told that all is well.
    alive_ms: i64,
    /// What it was last told that goes on.
    status: String,
}

/// A command of the owner's whose answer needs what takes time: done by another thread.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) connection: u64,
    /// To be written before the answer.
    pub(crate) wishes: Option<Wishes>,
}

/// A command that waits for [`Told::Looked`].
#[derive(Debug)]
struct Unanswered {
    given_back: Option<GivenBack>,
    is_privileged: bool,
}

/// What the other threads need of the core.
pub(crate) struct Ends {
    /// One a recruiter, in their order.
    pub(crate) links: Vec<LinkEnd>,
    /// Asked where memory is; to be answered by [`Told::Looked`], once the wishes are written.
    pub(crate) looks: Receiver<Look>,
    /// File of the owner's wishes.
    pub(crate) kept: Kept,
    pub(crate) inbox: Inbox,
}

impl Core {
    /// Everything that can fail, before anything is lent.
    ///
    /// # Errors
    /// When a socket cannot be opened.
    pub(crate) fn new(
        config: &Config,
        store: Arc<Store>,
        generation: u64,
        end: UnixStream,
        standalone: Option<Standalone>,
        load: Arc<Load>,
        manager: Arc<ServiceManager>,
    ) -> anyhow::Result<(Self, Ends)> {
        let (links, link_ends) = Links::new(&config.recruiters.urls)?;
        let (looks, looked_for) = channel();
        let socket = &config.socket;
        let control =
            Control::open(socket).with_context(|| format!("listen at {}", socket.display()))?;
        let pressure = match Pressure::watch() {
            Ok(pressure) => Some(pressure),
            Err(e) => {
                eprintln!(
                    "gleaner-memoryd: no word of memory pressure from the kernel ({e}): MemAvailable alone counts"
                );
                None
            }
        };
        let kept = Kept::new(&config.state);
        let wishes = kept.read().unwrap_or_else(|(wishes, why)| {
            eprintln!("gleaner-memoryd: {why}");
            wishes
        });
        let ends = Ends {
            links: link_ends,
            looks: looked_for,
            kept,
            inbox: links.inbox(),
        };
        let core = Self {
            lender: Lender::new(config.settings.clone(), generation),
            agent: Agent::new(&config.agent, standalone.is_some()),
            control,
            pressure,
            links,
            looks,
            unanswered: BTreeMap::new(),
            end,
            wishes,
            has_new_wishes: false,
            log: Log::open(&config.state),
            lent: Lent::default(),
            served: Served::new(load, clock::boot_ms()),
            serves_pages: config.serving.listen.is_some(),
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

    /// Lends until told to end; all memory is back then.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
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
                for event in self.agent.hear(now_ms) {
                    self.step(event, woke);
                }
            }
            if found.end {
                self.step(Event::Returned(Cause::Ending), woke);
                self.announce(now_ms);
                self.manager.stopping("all memory is back");
                return Ok(());
            }
            if found.pressure && Available::read().is_none_or(Available::is_short) {
                self.step(Event::Pressure, woke);
            }
            for connection in found.owners {
                self.control.flush(connection);
                for asked in self.control.hear(connection) {
                    self.owner(asked, woke);
                }
            }
            if found.newcomer {
                self.control.accept();
            }
            if found.told {
                for told in self.links.hear() {
                    self.hear(told, woke);
                }
            }
            self.tick(woke);
        }
    }

    /// What the owner wanted before the last end.
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
            if let Some(found) = Available::read() {
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

    /// What guests' pages take up: slabs, unless they are not filled with huge pages.
    fn resident_bytes(&self) -> u64 {
        let held_bytes = self.store.held_bytes();
        itself::anonymous_bytes().map_or(held_bytes, |bytes| bytes.min(held_bytes))
    }

    fn hear(&mut self, told: Told, woke: Instant) {
        match told {
            Told::Request { link, request } => self.ask(link, request, woke),
            Told::Linked { link, is_up } => {
                if let Some(is_linked) = self.links.set_up(link, is_up) {
                    self.step(Event::Linked(is_linked), woke);
                }
            }
            Told::Revocations { held, lease_ids } => {
                self.revocations = held;
                if !lease_ids.is_empty() {
                    self.step(Event::CertificateRevoked(lease_ids), woke);
                }
            }
            Told::Looked { connection, memory } => self.answer_owner(connection, memory),
            Told::Configured { settings, done } => {
                self.step(Event::Settings(*settings), woke);
                let _ = done.send(self.doing()); // who asked may have gone
            }
        }
    }

    /// When the service manager is to be told that all is well.
    fn alive_due_ms(&self) -> Option<i64> {
        let every = self.manager.alive_every()?;
        let every_ms = i64::try_from(every.as_millis()).unwrap_or(i64::MAX);
        Some(self.alive_ms.saturating_add(every_ms))
    }

    /// What it does, in a few words.
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
            QuotaReason::Paused => "the owner has paused it",
            QuotaReason::Pressure => "memory runs short",
            QuotaReason::Unknown => "nothing is heard of the agent, or of the owner",
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
                // Without random bytes there are no ids that nobody can guess.
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
            requests_per_s: self.served.per_s(now_ms),
            leases: self.lender.leases(now_ms),
            takes_revocations: true,
        });
        let status = self.doing();
        if status != self.status {
            self.manager.status(&status);
            self.status = status;
        }
    }

    /// Where memory is, as the kernel tells it, goes to the owner who asked.
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

/// 128 bits that nobody can guess.
fn fresh_id() -> gleaner_trust::Result<String> {
    Ok(hex::encode(&random::bytes::<16>()?))
}
