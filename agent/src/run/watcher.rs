//! The watcher: a thread that waits for the owner's return. It sends listeners the return, each sample, and
//! signs of life.
//!
//! The thread runs at real-time priority ([`crate::priority`]) and never waits for the sampler, a disk or a
//! bus: however late a sample is, the owner's return is announced immediately. The work of the thread is
//! short, since the nodes of the owner's devices and terminals and the reporters' files are in memory. The
//! sampler sends orders to the thread. The thread gives signs of life only while the sampler's loop is not
//! late ([`Progress`]).

use super::progress::Progress;
use crate::Error;
use crate::activity::{Activity, ActivityWatch, Look, Sign};
use crate::clock::Moment;
use crate::live::Server;
use crate::missing_values::MissingValues;
use crate::owner::Owner;
use crate::priority;
use crate::sample::Sample;
use crate::trace::store::Event;
use gleaner_schemas::live;
use gleaner_schemas::rows::{ActivityRow, SampleRow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// An order from the sampler.
enum Order {
    Look(Look, Sender<(Vec<ActivityRow>, MissingValues)>),
    Publish(Box<Sample>, f64, Sender<PublishedSample>),
    /// Sample interval, and time after which an owner counts as away, in ms.
    Configure(i64, i64),
    /// Step of the wall clock, in ms; positive: forward.
    ClockStepped(i64),
}

/// A sample as sent to listeners.
pub(super) struct PublishedSample {
    pub(super) sample: Box<Sample>,
    /// Owner's return, if the sample is the first to see it.
    pub(super) event: Option<Event>,
    /// Error that prevents the agent from waiting at terminals and reporters.
    pub(super) blind: Option<Errno>,
}

/// The sampler's handle of the watcher. When it is dropped, the thread ends and the socket is removed.
pub(super) struct Watcher {
    line: Line,
    events: Receiver<Event>,
    /// Socket with wake-up bytes, one per event; it is closed when the thread ends.
    news: UnixStream,
    thread: Option<JoinHandle<()>>,
}

/// Sending end of the sampler's orders to the thread.
#[derive(Clone)]
struct Line {
    orders: Sender<Order>,
    /// Socket for wake-up bytes, one per order.
    bell: Arc<UnixStream>,
}

impl Watcher {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::Wait`] if the thread cannot be started.
    pub(super) fn start(
        activity: ActivityWatch,
        owner: Owner,
        server: Server,
        progress: Arc<Progress>,
    ) -> Result<Self, Error> {
        Self::try_start(activity, owner, server, progress).map_err(|source| Error::Wait { source })
    }

    fn try_start(
        activity: ActivityWatch,
        owner: Owner,
        server: Server,
        progress: Arc<Progress>,
    ) -> io::Result<Self> {
        let (bell, heard) = pair()?;
        let (news, told) = pair()?;
        let (orders, obeyed) = channel();
        let (noted, events) = channel();
        let mut watch = Watch {
            activity,
            owner,
            server,
            progress,
            sign_since_look: None,
            orders: obeyed,
            bell: heard,
            events: noted,
            news: told,
        };
        let thread = std::thread::Builder::new().name("watcher".to_owned());
        let thread = thread.spawn(move || {
            priority::raise();
            watch.run();
        })?;
        Ok(Self {
            line: Line {
                orders,
                bell: Arc::new(bell),
            },
            events,
            news,
            thread: Some(thread),
        })
    }

    /// Source of the owner's activity for samples: it asks the thread.
    pub(super) fn activity(&self) -> Box<dyn Activity> {
        Box::new(self.line.clone())
    }

    /// Descriptor that is readable if there are events, or once the thread has ended.
    pub(super) fn wait_on(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Returns of the owner since the last call.
    ///
    /// # Errors
    /// [`Error::Wait`] when the thread has ended.
    pub(super) fn events(&mut self) -> Result<Vec<Event>, Error> {
        let is_open = drain_bell(&mut self.news);
        let events: Vec<Event> = self.events.try_iter().collect();
        if is_open || !events.is_empty() {
            Ok(events)
        } else {
            Err(ended())
        }
    }

    /// Sends listeners a sample and the changes of the owner's state that follow from it.
    ///
    /// # Errors
    /// [`Error::Wait`] when the thread has ended.
    pub(super) fn publish(
        &self,
        sample: Sample,
        headroom_share: f64,
    ) -> Result<PublishedSample, Error> {
        let sample = Box::new(sample);
        let order = |reply| Order::Publish(sample, headroom_share, reply);
        self.line.ask(order)
    }

    /// Sets the sample interval and the time after which an owner counts as away.
    pub(super) fn configure(&self, interval_ms: i64, return_watch_after_ms: i64) {
        self.line
            .order(Order::Configure(interval_ms, return_watch_after_ms));
    }

    /// Reports a step of the wall clock.
    pub(super) fn clock_stepped(&self, stepped_ms: i64) {
        self.line.order(Order::ClockStepped(stepped_ms));
    }
}

impl Watcher {
    /// Ends the thread and waits for it.
    pub(super) fn end(&mut self) {
        let _ = self.line.bell.shutdown(std::net::Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // afterwards the socket's file is gone
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Line {
    fn order(&self, order: Order) {
        // If the thread has ended, the caller notices that when it needs an answer.
        if self.orders.send(order).is_ok() {
            ring(&self.bell);
        }
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<T, Error> {
        let (reply, answer) = channel();
        self.order(order(reply));
        answer.recv().map_err(|_| ended())
    }
}

impl Activity for Line {
    fn look(
        &mut self,
        look: Look,
        missing_values: &mut MissingValues,
    ) -> Result<Vec<ActivityRow>, Error> {
        let (rows, noted) = self.ask(|reply| Order::Look(look, reply))?;
        missing_values.extend(noted);
        Ok(rows)
    }
}

/// State of the watching thread.
struct Watch {
    activity: ActivityWatch,
    owner: Owner,
    server: Server,
    progress: Arc<Progress>,
    /// Sign of the owner's return since the look of the present sample.
    sign_since_look: Option<Sign>,
    orders: Receiver<Order>,
    bell: UnixStream,
    events: Sender<Event>,
    news: UnixStream,
}

impl Watch {
    /// Watches until the sampler closes its end.
    fn run(&mut self) {
        while let Ok([has_orders, is_owner, is_live]) = self.wait() {
            if is_owner {
                self.check_owner(); // first of all: listeners depend on it
            }
            if is_live {
                let is_alive = self.progress.turns();
                self.server.serve(Moment::now().time_ms, is_alive);
            }
            if has_orders {
                let is_open = drain_bell(&mut self.bell);
                while let Ok(order) = self.orders.try_recv() {
                    self.execute(order);
                }
                if !is_open {
                    return;
                }
            }
        }
    }

    /// Waits; returns whether there are orders, signs of the owner, and requests of listeners.
    fn wait(&self) -> Result<[bool; 3], Errno> {
        let owner = self.activity.wait_on();
        let live = self.server.wait_on();
        let mut sources = vec![PollFd::new(&self.bell, PollFlags::IN)];
        for &source in &owner {
            sources.push(PollFd::from_borrowed_fd(source, PollFlags::IN));
        }
        for &(source, events) in &live {
            sources.push(PollFd::from_borrowed_fd(source, events));
        }
        while let Err(e) = poll(&mut sources, None) {
            if e != Errno::INTR {
                return Err(e);
            }
        }
        let has_come = |sources: &[PollFd<'_>]| sources.iter().any(|s| !s.revents().is_empty());
        let (bell, sources) = sources.split_at(1);
        let (of_owner, of_live) = sources.split_at(owner.len());
        Ok([has_come(bell), has_come(of_owner), has_come(of_live)])
    }

    fn execute(&mut self, order: Order) {
        match order {
            Order::Look(look, reply) => {
                self.sign_since_look = None;
                let mut missing_values = MissingValues::default();
                let rows = self.activity.look(look, &mut missing_values);
                if self.activity.is_armed() {
                    self.check_owner(); // a return first seen by the look is announced before the sample is complete
                }
                let _ = reply.send((rows, missing_values)); // the sampler may have ended
            }
            Order::Publish(sample, headroom_share, reply) => {
                let _ = reply.send(self.publish(sample, headroom_share));
            }
            Order::Configure(interval_ms, return_watch_after_ms) => {
                self.owner.configure(interval_ms, return_watch_after_ms);
                self.server.set_sample_interval(interval_ms);
            }
            Order::ClockStepped(stepped_ms) => self.activity.clock_stepped(stepped_ms),
        }
    }

    fn publish(&mut self, mut sample: Box<Sample>, headroom_share: f64) -> PublishedSample {
        if let Some(sign) = self.sign_since_look.take() {
            correct_for_return(&mut sample, sign);
        }
        let found = self.owner.sampled(&sample);
        let row = SampleRow {
            interval_ms: found.interval_ms,
            ..sample.row.clone()
        };
        self.server.publish_sample(live::Sample {
            time_ms: sample.moment.time_ms,
            state: found.state,
            headroom_share,
            row,
        });
        for message in found.messages {
            self.server.publish_owner(message);
        }
        let mut blind = None;
        if found.is_away {
            match self.activity.arm(Moment::now().time_ms) {
                Ok(Some(sign)) => self.returned(sign),
                Ok(None) => {}
                Err(e) => blind = Some(e),
            }
        } else {
            self.activity.disarm();
        }
        PublishedSample {
            sample,
            event: found.event,
            blind,
        }
    }

    fn check_owner(&mut self) {
        if let Some(sign) = self.activity.first_sign(Moment::now().time_ms) {
            self.returned(sign);
        }
    }

    /// Announces the owner's return and stops waiting for it.
    fn returned(&mut self, sign: Sign) {
        if let Some((message, event)) = self.owner.returned(&Moment::now(), sign) {
            self.server.publish_owner(message);
            if self.events.send(event).is_ok() {
                ring(&self.news);
            }
        }
        self.sign_since_look = Some(sign);
        self.activity.disarm();
    }
}

/// Corrects a sample that was taken before the owner returned: it then shows the owner as present, as a later
/// sample would.
fn correct_for_return(sample: &mut Sample, sign: Sign) {
    let idle_ms = &mut sample.row.owner_idle_ms;
    *idle_ms = idle_ms.map(|_| 0);
    for source in &mut sample.activity {
        if source.source == sign.source {
            source.idle_ms = source.idle_ms.map(|_| 0);
        }
    }
}

fn pair() -> io::Result<(UnixStream, UnixStream)> {
    let (one, other) = UnixStream::pair()?;
    one.set_nonblocking(true)?;
    other.set_nonblocking(true)?;
    Ok((one, other))
}

/// Wakes the other end. If its buffer is full, unread bytes wake it already.
fn ring(mut bell: &UnixStream) {
    let _ = bell.write(&[0]);
}

/// Reads all wake-up bytes. Returns false once the other end is closed.
fn drain_bell(bell: &mut UnixStream) -> bool {
    loop {
        match bell.read(&mut [0; 64]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

fn ended() -> Error {
    let source = io::Error::other("the thread that watches for the owner has ended");
    Error::Wait { source }
}
