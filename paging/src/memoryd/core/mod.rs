//! One thread that waits for everything at once, asks [`Lender`] what is to be done about it, and does it.
//!
//! What makes memory go back comes first: the agent's word is heard before any other, and nothing here waits for
//! anybody else.

mod agent;
mod control;
mod links;
mod owner;
mod pressure;

pub(crate) use links::{Inbox, LinkEnd, Links, Told};

use crate::clock;
use crate::config::Config;
use crate::itself::{self, Memory};
use crate::log::Log;
use crate::standalone::Standalone;
use crate::wishes::{Kept, Wishes};
use agent::Agent;
use anyhow::Context;
use control::Control;
use gleaner_paging::store::{self, Store};
use gleaner_policy::lending::{Action, Cause, Event, Lender};
use gleaner_schemas::lending::{
    Announcement, Answer, Asked, GivenBack, HostQuota, Outcome, Request, VERSION,
};
use pressure::Pressure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// Time between looks at what is available, while memory is lent.
const LOOK_EVERY_MS: i64 = 1000;
/// In place of a link's number: the core itself asks.
const OWN: usize = usize::MAX;

/// All that the core owns.
pub(crate) struct Core {
    lender: Lender,
    store: Arc<Store>,
    agent: Agent,
    control: Control,
    pressure: Option<Pressure>,
    links: Links,
    /// Asks where memory is, for a connection of the owner's control.
    looks: Sender<u64>,
    /// What commands gave back whose answers wait for that look.
    unanswered: BTreeMap<u64, Option<GivenBack>>,
    /// Becomes readable on SIGTERM and SIGINT.
    end: UnixStream,
    kept: Kept,
    wishes: Wishes,
    log: Log,
    lent: Lent,
    host_id: String,
    incarnation: String,
    standalone: Option<Standalone>,
    announce_every_ms: i64,
    announced_ms: i64,
    looked_ms: i64,
}

/// What has been lent since nothing was.
#[derive(Debug, Default)]
struct Lent {
    since_time_ms: Option<i64>,
    peak_bytes: u64,
    clients: BTreeSet<String>,
}

/// What the other threads need of the core.
pub(crate) struct Ends {
    /// One a recruiter, in their order.
    pub(crate) links: Vec<LinkEnd>,
    /// Asked where memory is; to be answered by [`Told::Looked`].
    pub(crate) looks: Receiver<u64>,
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
            kept,
            wishes,
            log: Log::open(&config.state),
            lent: Lent::default(),
            host_id: config.recruiters.host_id.clone().unwrap_or_default(),
            incarnation: format!("{generation:016x}"),
            standalone,
            announce_every_ms: config.announce_every_ms,
            announced_ms: i64::MIN,
            looked_ms: i64::MIN,
            store,
        };
        Ok((core, ends))
    }

    /// Lends until told to end; all memory is back then.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.restore_wishes();
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
                return Ok(());
            }
            if found.pressure {
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

    /// Waits for whatever comes first.
    fn wait(&self, now_ms: i64) -> anyhow::Result<Found> {
        let due_ms = self.due_ms(now_ms).saturating_sub(now_ms).max(0);
        let timeout = Timespec {
            tv_sec: due_ms / 1000,
            tv_nsec: due_ms % 1000 * 1_000_000,
        };
        let wake = self.links.wait_on();
        let mut fds = vec![
            PollFd::new(&self.end, PollFlags::IN),
            PollFd::new(&wake, PollFlags::IN),
            PollFd::new(self.control.listener(), PollFlags::IN),
        ];
        let agent = self.agent.stream().map(|stream| {
            fds.push(PollFd::new(stream, PollFlags::IN));
            fds.len() - 1
        });
        let pressure = self.pressure.as_ref().map(|pressure| {
            fds.push(PollFd::from_borrowed_fd(pressure.as_fd(), PollFlags::PRI));
            fds.len() - 1
        });
        let first_owner = fds.len();
        let mut owners = Vec::new();
        for (connection, stream, has_waiting) in self.control.streams() {
            let mut flags = PollFlags::IN;
            flags.set(PollFlags::OUT, has_waiting);
            fds.push(PollFd::new(stream, flags));
            owners.push(connection);
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Found::default()),
            Err(e) => return Err(e).context("wait for events"),
        }
        let has = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let is_owner = |(at, connection): (usize, u64)| has(first_owner + at).then_some(connection);
        Ok(Found {
            end: has(0),
            told: has(1),
            newcomer: has(2),
            agent: agent.is_some_and(has),
            pressure: pressure.is_some_and(has),
            owners: owners
                .into_iter()
                .enumerate()
                .filter_map(is_owner)
                .collect(),
        })
    }

    /// When something is to be done even though nothing happens.
    fn due_ms(&self, now_ms: i64) -> i64 {
        let look_ms = self
            .lent
            .since_time_ms
            .map(|_| self.looked_ms.saturating_add(LOOK_EVERY_MS));
        let all = [
            Some(self.agent.due_ms()),
            Some(self.announced_ms.saturating_add(self.announce_every_ms)),
            self.lender.next_tick_ms(),
            look_ms,
        ];
        all.into_iter().flatten().min().unwrap_or(now_ms)
    }

    fn tick(&mut self, woke: Instant) {
        let now_ms = clock::boot_ms();
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
            if let Some(mem_available_bytes) = mem_available_bytes() {
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
            Told::Looked { connection, memory } => self.answer_owner(connection, memory),
        }
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
                let refusal = gleaner_schemas::lending::Refusal {
                    detail: format!("the host has no random bytes: {e}"),
                    retry_in_ms: Some(1000),
                    ..Default::default()
                };
                self.reply(link, request_id, Outcome::Refused(refusal));
            }
        }
    }

    /// Takes an event in and does what is to be done; what that gave back to the kernel.
    ///
    /// `woke` is when it became known.
    fn step(&mut self, event: Event, woke: Instant) -> Option<GivenBack> {
        let mut events = VecDeque::from([event]);
        let (mut is_news, mut given_back) = (false, None);
        while let Some(event) = events.pop_front() {
            let is_chance = matches!(
                event,
                Event::Sample { .. } | Event::Idle { .. } | Event::Resume
            );
            for action in self.lender.step(&event, clock::boot_ms()) {
                match action {
                    Action::RevokeAll(cause) => {
                        let given = after(woke, || self.store.revoke_all());
                        given_back = Some(self.record(cause, given, false));
                    }
                    Action::Revoke { lease_id, cause } => {
                        let given = after(woke, || self.store.revoke(&lease_id));
                        given_back = Some(self.record(cause, given, false));
                    }
                    Action::Shrink { bytes, cause } => {
                        let mut of_leases = Vec::new();
                        let given = after(woke, || {
                            let (lost, given) = self.store.shrink(bytes);
                            of_leases = lost;
                            given
                        });
                        given_back = Some(self.record(cause, given, true));
                        events.push_back(Event::Shrunk(of_leases));
                    }
                    Action::Open { lease_id, bytes } => self.store.open(&lease_id, bytes),
                    Action::Answer {
                        link,
                        request_id,
                        outcome,
                    } => self.reply(link, request_id, outcome),
                    Action::Announce => is_news = true,
                }
            }
            if is_chance {
                events.extend(self.standalone_request());
            }
        }
        if is_news {
            self.announce(clock::boot_ms());
        }
        given_back
    }

    /// Notes what was given back, and what is lent now.
    fn record(&mut self, cause: Cause, given: store::GivenBack, is_step: bool) -> GivenBack {
        let left_lent_bytes = self.quota().lent_bytes;
        let time_ms = clock::wall_ms();
        let line = GivenBack {
            time_ms,
            lent_since_time_ms: self.lent.since_time_ms.unwrap_or(time_ms),
            peak_lent_bytes: self.lent.peak_bytes,
            cause: name(cause).to_owned(),
            bytes: given.bytes,
            left_lent_bytes,
            first_us: given.first_us,
            all_us: given.all_us,
            steps_count: 1,
            clients: self.lent.clients.iter().cloned().collect(),
        };
        let written = if is_step {
            self.log.add_step(line.clone())
        } else {
            self.log.add(line.clone())
        };
        said(written);
        if left_lent_bytes == 0 {
            self.lent = Lent::default();
        }
        line
    }

    fn reply(&mut self, link: usize, request_id: u64, outcome: Outcome) {
        if let Outcome::Granted { lease } = &outcome {
            let lent_bytes = self.quota().lent_bytes;
            self.lent.since_time_ms.get_or_insert_with(clock::wall_ms);
            self.lent.peak_bytes = self.lent.peak_bytes.max(lent_bytes);
            self.lent.clients.insert(lease.client.clone());
            if let (OWN, Some(standalone)) = (link, &self.standalone) {
                let pages = self.store.pages(&lease.lease_id, lease.generation);
                standalone.granted(pages.ok());
            }
        }
        let answer = Answer {
            request_id,
            outcome,
            free_bytes: self.quota().free_bytes,
            requests_per_s: self.links.requests_per_s(),
        };
        self.links.answer(link, answer);
    }

    fn standalone_request(&self) -> Option<Event> {
        let standalone = self.standalone.as_ref()?;
        let is_lent = self.lent.since_time_ms.is_some();
        if is_lent || self.quota().free_bytes < standalone.bytes() {
            return None;
        }
        let request = Request {
            request_id: 0,
            asked: Asked::Grant {
                client: "standalone".to_owned(),
                key: "standalone".to_owned(),
                bytes: standalone.bytes(),
                term_ms: i64::MAX / 4,
            },
        };
        let fresh_id = fresh_id().ok()?;
        Some(Event::Request {
            link: OWN,
            request,
            fresh_id,
        })
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
            requests_per_s: self.links.requests_per_s(),
            leases: self.lender.leases(now_ms),
        });
    }

    /// Where memory is, as the kernel tells it, goes to the owner who asked.
    fn answer_owner(&mut self, connection: u64, memory: Memory) {
        if let Some(given_back) = self.unanswered.remove(&connection) {
            let lending = self.lending(memory, given_back);
            let reply = gleaner_schemas::lending::OwnerReply::Lending(Box::new(lending));
            self.control.reply(connection, &reply);
        }
    }
}

/// What a wait has found.
#[derive(Debug, Default)]
struct Found {
    agent: bool,
    end: bool,
    pressure: bool,
    newcomer: bool,
    told: bool,
    owners: Vec<u64>,
}

/// Times count from when the reason became known.
fn after(woke: Instant, give_back: impl FnOnce() -> store::GivenBack) -> store::GivenBack {
    let late_us = u64::try_from(woke.elapsed().as_micros()).unwrap_or(u64::MAX);
    let given = give_back();
    store::GivenBack {
        bytes: given.bytes,
        first_us: given.first_us.saturating_add(late_us),
        all_us: given.all_us.saturating_add(late_us),
    }
}

fn said(written: std::io::Result<()>) {
    if let Err(e) = written {
        eprintln!("gleaner-memoryd: the lending log cannot be written: {e}");
    }
}

/// 128 bits that nobody can guess.
fn fresh_id() -> std::io::Result<String> {
    let bytes: [u8; 16] = crate::random()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn mem_available_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(gleaner_schemas::units::kib_to_bytes(kib))
}

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::Owner => "owner",
        Cause::Load => "load",
        Cause::Unseen => "unseen",
        Cause::AgentLost => "agent_lost",
        Cause::Paused => "paused",
        Cause::Quota => "quota",
        Cause::Pressure => "pressure",
        Cause::Expired => "expired",
        Cause::Released => "released",
        Cause::Ending => "ending",
    }
}
