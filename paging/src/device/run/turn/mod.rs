//! The device's loop: waits for input from any connection, and handles all of it.

mod servers;

use super::client::Client;
use super::connect::Attempts;
use super::disk::{Disk, DiskRequest, DiskResult};
use super::server::{Connection, Reply};
use super::status::{DeviceStatus, ServerStatus};
use super::{Handle, LeaseNews, Message};
use crate::device::engine::{Action, Device, Distrust};
use crate::device::frames::PAGE;
use crate::nbd::client::Source;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// Interval between timeout checks.
const TICK: Duration = Duration::from_millis(50);
/// Interval between reports of demand.
const DEMAND: Duration = Duration::from_secs(1);
/// Maximum number of log lines per minute.
const MOST_LINES: u32 = 20;
/// Maximum number of reads from one connection before other connections are served.
const MOST_READS: usize = 4;
/// Maximum number of clients; the kernel, qemu and copying programs have a few connections each.
const MOST_CLIENTS: usize = 64;

/// A server, connected or not.
struct ServerSlot {
    source: Source,
    since: Instant,
    /// Number of the server in the device; `None` until the first connection, which shows the lease's size.
    number: Option<u8>,
    /// Name of the export when last connected; another name means that the former contents are lost.
    name: String,
    connection: Option<Connection>,
    is_sending: bool,
    attempts: Attempts,
}

pub(super) struct Turn {
    device: Device,
    disk: Option<Disk>,
    handle: Handle,
    inbox: Receiver<Message>,
    told: Sender<LeaseNews>,
    clients: BTreeMap<u64, (Client, bool)>,
    servers: BTreeMap<u32, ServerSlot>,
    next_number: u64,
    began: Instant,
    ticked: Instant,
    demanded: Option<Instant>,
    lines: (Instant, u32),
    refraction_us: i64,
    has_ended: bool,
}

/// Sender of an input.
enum Origin {
    Bell,
    Disk,
    Client(u64),
    Server(u32),
}

impl Turn {
    pub(super) fn new(
        device: Device,
        disk: Option<Disk>,
        handle: Handle,
        inbox: Receiver<Message>,
        told: Sender<LeaseNews>,
        refraction_period: Duration,
    ) -> Self {
        let now = Instant::now();
        Self {
            device,
            disk,
            handle,
            inbox,
            told,
            clients: BTreeMap::new(),
            servers: BTreeMap::new(),
            next_number: 0,
            began: now,
            ticked: now,
            demanded: None,
            lines: (now, 0),
            refraction_us: i64::try_from(refraction_period.as_micros()).unwrap_or(i64::MAX),
            has_ended: false,
        }
    }

    pub(super) fn run(mut self) {
        while !self.has_ended {
            let heard = match self.wait() {
                Ok(heard) => heard,
                Err(e) => {
                    say(&format!("poll: {e}"));
                    return;
                }
            };
            self.device.now(self.now_us());
            for (who, is_readable) in heard {
                match who {
                    Origin::Bell => self.process_messages(),
                    Origin::Disk => self.read_disk_answers(),
                    Origin::Client(number) => self.read_client(number, is_readable),
                    Origin::Server(number) => self.read_server(number, is_readable),
                }
            }
            if self.ticked.elapsed() >= TICK {
                self.ticked = Instant::now();
                self.device.tick();
                self.check_servers();
            }
            self.act();
        }
    }

    fn now_us(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Waits until a source of input is readable, or a connection can send again.
    fn wait(&self) -> io::Result<Vec<(Origin, bool)>> {
        let disk_bell = self.disk.as_ref().map(Disk::bell);
        let mut whos = vec![Origin::Bell];
        let mut polled = vec![PollFd::new(&*self.handle.bell, PollFlags::IN)];
        if let Some(bell) = &disk_bell {
            whos.push(Origin::Disk);
            polled.push(PollFd::new(bell, PollFlags::IN));
        }
        let flags = |wants_more: bool, is_sending: bool| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, wants_more);
            flags.set(PollFlags::OUT, is_sending);
            flags
        };
        for (number, (client, is_sending)) in &self.clients {
            whos.push(Origin::Client(*number));
            polled.push(PollFd::new(client, flags(client.wants_more(), *is_sending)));
        }
        for (number, held) in &self.servers {
            if let Some(connection) = &held.connection {
                whos.push(Origin::Server(*number));
                polled.push(PollFd::new(connection, flags(true, held.is_sending)));
            }
        }
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: TICK.as_nanos() as i64,
        };
        match poll(&mut polled, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        let heard = whos.into_iter().zip(polled).filter_map(|(who, polled)| {
            let flags = polled.revents();
            let is_readable = flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR);
            (!flags.is_empty()).then_some((who, is_readable))
        });
        Ok(heard.collect())
    }

    fn process_messages(&mut self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.handle.bell, &mut count); // the count does not matter
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                // Above the limit of clients, the stream is dropped, which closes the connection.
                Message::Client(_) if self.clients.len() >= MOST_CLIENTS => {}
                Message::Client(stream) => {
                    self.next_number += 1;
                    if let Ok(client) = Client::new(self.next_number, stream) {
                        self.clients.insert(self.next_number, (client, false));
                    }
                }
                Message::Join(source) => {
                    self.next_number += 1;
                    let held = ServerSlot {
                        source,
                        since: Instant::now(),
                        number: None,
                        name: String::new(),
                        connection: None,
                        is_sending: false,
                        attempts: Attempts::default(),
                    };
                    self.servers.insert(self.next_number as u32, held);
                    self.check_servers();
                }
                Message::Leave(lease) => self.leave(&lease),
                Message::Over(lease) => {
                    if let Some(key) = self.key_of(&lease) {
                        self.drop_server(key);
                    }
                }
                Message::Connected(key, made) => self.connected(key, made),
                // The caller may not wait for the answer any more.
                Message::Ask(answer) => {
                    let _ = answer.send(self.status());
                }
                Message::End => self.has_ended = true,
            }
        }
    }

    fn read_disk_answers(&mut self) {
        let mut done = Vec::new();
        if let Some(disk) = &self.disk {
            disk.done(&mut done);
        }
        for done in done {
            match done {
                DiskResult::Read { op, bytes, is_read } => {
                    self.device.disk_read(op, bytes, is_read)
                }
                DiskResult::Written { op, is_written } => self.device.disk_wrote(op, is_written),
            }
        }
    }

    fn read_client(&mut self, number: u64, is_readable: bool) {
        let Some((client, _)) = self.clients.get_mut(&number) else {
            return;
        };
        let mut hear = || -> io::Result<()> {
            for _ in 0..MOST_READS {
                let has_come = is_readable && client.receive()?;
                client.serve(&mut self.device)?;
                if !has_come {
                    break;
                }
            }
            Ok(())
        };
        if hear().is_err() {
            self.clients.remove(&number);
        }
    }

    fn read_server(&mut self, key: u32, is_readable: bool) {
        let Some(held) = self.servers.get_mut(&key) else {
            return;
        };
        let (Some(number), Some(connection)) = (held.number, &mut held.connection) else {
            return;
        };
        let mut hear = || -> io::Result<()> {
            for _ in 0..MOST_READS {
                if !is_readable || !connection.receive()? {
                    break;
                }
                while let Some(reply) = connection.next_reply()? {
                    match reply {
                        Reply::Read(op, bytes) => self.device.server_read(number, op, bytes),
                        Reply::Wrote(op) => self.device.server_wrote(number, op),
                        Reply::Failed(op, fault) => self.device.server_failed(number, op, fault),
                    }
                }
            }
            Ok(())
        };
        if let Err(e) = hear() {
            self.disconnected(key, &e);
        }
    }

    /// Carries out the device's actions, until there are none left.
    fn act(&mut self) {
        loop {
            while let Some(action) = self.device.next_action() {
                self.do_action(action);
            }
            // The actions may have made room: continue the clients that waited for it.
            for (number, (client, _)) in &mut self.clients {
                if client.serve(&mut self.device).is_err() {
                    let number = *number;
                    self.clients.remove(&number);
                    break;
                }
            }
            let Some(action) = self.device.next_action() else {
                break;
            };
            self.do_action(action);
        }
        self.send();
    }

    fn do_action(&mut self, action: Action) {
        match action {
            // If the server is disconnected, the action can be dropped: the device knows of the
            // disconnection, or will soon.
            Action::Read { server, slot, op } => {
                if let Some(connection) = self.connection(server) {
                    connection.read(op, slot);
                }
            }
            Action::Write {
                server,
                slot,
                op,
                bytes,
            } => {
                if let Some(connection) = self.connection(server) {
                    connection.write(op, slot, &bytes);
                }
            }
            Action::DiskRead { page, op, bytes } => match &self.disk {
                Some(disk) => disk.read(DiskRequest { op, page, bytes }),
                None => self.device.disk_read(op, bytes, false),
            },
            Action::DiskWrite { page, op, bytes } => match &self.disk {
                Some(disk) => disk.write(DiskRequest { op, page, bytes }),
                None => self.device.disk_wrote(op, false),
            },
            Action::Answer(answer) => {
                if let Some((client, _)) = self.clients.get_mut(&answer.client) {
                    client.answer(&answer);
                }
                self.device.recycle(answer);
            }
            Action::Disconnect(number, why) => {
                let why = match why {
                    Distrust::Silent => io::ErrorKind::TimedOut,
                    Distrust::Unasked => io::ErrorKind::InvalidData,
                };
                if let Some((key, _)) = self.lease_slot(number) {
                    self.disconnected(key, &why.into());
                }
            }
            Action::Release(number) => self.release(number),
            Action::Note(line) => self.note(&line),
        }
    }

    /// Sends waiting bytes on every connection, as far as the sockets accept them.
    fn send(&mut self) {
        let mut gone = Vec::new();
        for (number, (client, is_sending)) in &mut self.clients {
            match client.send() {
                Ok(_) if client.has_ended() => gone.push(*number),
                Ok(is_left) => *is_sending = is_left,
                Err(_) => gone.push(*number),
            }
        }
        for number in gone {
            self.clients.remove(&number);
        }
        let mut broken = Vec::new();
        for (key, held) in &mut self.servers {
            if let Some(connection) = &mut held.connection {
                match connection.send() {
                    Ok(is_left) => held.is_sending = is_left,
                    Err(e) => broken.push((*key, e)),
                }
            }
        }
        if !broken.is_empty() {
            for (key, e) in broken {
                self.disconnected(key, &e);
            }
            self.act();
        }
    }

    fn note(&mut self, line: &str) {
        let (since, lines) = &mut self.lines;
        if since.elapsed() > Duration::from_secs(60) {
            (*since, *lines) = (Instant::now(), 0);
        }
        *lines += 1;
        match *lines {
            ..MOST_LINES => say(line),
            MOST_LINES => say(&format!("{line}; no more of that for a minute")),
            _ => {}
        }
    }

    fn status(&self) -> DeviceStatus {
        let lease = |number| {
            let held = self
                .servers
                .values()
                .find(|held| held.number == Some(number));
            held.and_then(|held| held.source.lease.as_deref())
        };
        let server =
            |state: crate::device::ServerState| ServerStatus::new(&state, lease(state.number));
        DeviceStatus {
            size_bytes: u64::from(self.device.pages()) * PAGE as u64,
            stored_bytes: u64::from(self.device.stored_pages()) * PAGE as u64,
            clients_count: self.clients.len(),
            has_disk: self.disk.is_some(),
            has_all_copies: self.device.has_all_copies(),
            unreachable_bytes: u64::from(self.device.unreachable_pages()) * PAGE as u64,
            choice: self.device.settings().choice,
            fixed_window_requests: self.device.settings().window_requests,
            counters: self.device.counters(),
            servers: self.device.servers().into_iter().map(server).collect(),
        }
    }
}

/// Logs a line. A log that cannot be written is no reason to end.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "gleaner-clerk: {line}");
}
