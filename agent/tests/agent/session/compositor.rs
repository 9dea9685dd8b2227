//! A Wayland compositor made by the test, with seats and the idle protocol; it acts only while the test
//! serves it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wayland_protocols::ext::idle_notify::v1::server as ext;
use wayland_server::backend::GlobalId;
use wayland_server::protocol::wl_seat::{self, WlSeat};
use wayland_server::{
    Client, DataInit, Dispatch, Display, DisplayHandle, GlobalDispatch, ListeningSocket, New,
    Resource,
};

use ext::ext_idle_notification_v1::{self, ExtIdleNotificationV1};
use ext::ext_idle_notifier_v1::{self, ExtIdleNotifierV1};

/// A notification that the reporter requested.
pub(super) struct Notification {
    pub(super) timeout_ms: u32,
    /// True if the notification is about input only: a program that keeps the screen on then does not count.
    pub(super) input: bool,
    pub(super) object: ExtIdleNotificationV1,
}

pub(super) struct Compositor {
    display: Display<State>,
    socket: ListeningSocket,
    state: State,
}

#[derive(Default)]
struct State(Vec<Notification>);

impl Compositor {
    /// Listens at `socket`, without seats or protocols yet.
    pub(super) fn new(socket: &Path) -> Self {
        Self {
            display: Display::new().unwrap(),
            socket: ListeningSocket::bind_absolute(socket.to_owned()).unwrap(),
            state: State::default(),
        }
    }

    pub(super) fn add_seat(&self) -> GlobalId {
        let display = self.display.handle();
        display.create_global::<State, WlSeat, ()>(7, ())
    }

    pub(super) fn add_notifier(&self, version: u32) {
        let display = self.display.handle();
        display.create_global::<State, ExtIdleNotifierV1, ()>(version, ());
    }

    pub(super) fn remove(&self, global: GlobalId) {
        self.display.handle().remove_global::<State>(global);
    }

    /// Notifications that were requested and not cancelled.
    pub(super) fn notifications(&self) -> Vec<&Notification> {
        let wanted = self.state.0.iter().filter(|n| n.object.is_alive());
        wanted.collect()
    }

    /// Serves its clients once, waiting at most 10 ms for requests.
    pub(super) fn serve(&mut self) {
        let mut sources = [
            PollFd::new(&self.socket, PollFlags::IN),
            PollFd::from_borrowed_fd(self.display.as_fd(), PollFlags::IN),
        ];
        let timeout = Timespec::try_from(Duration::from_millis(10)).unwrap();
        poll(&mut sources, Some(&timeout)).unwrap();
        while let Some(client) = self.socket.accept().unwrap() {
            let mut display = self.display.handle();
            display.insert_client(client, Arc::new(())).unwrap();
        }
        self.display.dispatch_clients(&mut self.state).unwrap();
        self.display.flush_clients().unwrap();
    }

    /// Simulates that the time of the `nth` notification has passed, and sends it.
    pub(super) fn leave_alone(&mut self, nth: usize) {
        let asked = self.notifications()[nth];
        let (object, timeout_ms) = (asked.object.clone(), asked.timeout_ms);
        let until = Instant::now() + Duration::from_millis(timeout_ms.into());
        while Instant::now() < until {
            self.serve();
        }
        object.idled();
    }

    /// Serves until there are `count` notifications that were requested and not cancelled.
    pub(super) fn serve_until_asked(&mut self, count: usize) {
        let until = Instant::now() + super::PATIENCE;
        while self.notifications().len() != count {
            assert!(Instant::now() < until, "{}", self.notifications().len());
            self.serve();
        }
    }
}

impl<I> GlobalDispatch<I, ()> for State
where
    I: Resource + 'static,
    Self: Dispatch<I, ()>,
{
    fn bind(
        _: &mut Self,
        _: &DisplayHandle,
        _: &Client,
        new: New<I>,
        (): &(),
        objects: &mut DataInit<'_, Self>,
    ) {
        objects.init(new, ());
    }
}

impl Dispatch<ExtIdleNotifierV1, ()> for State {
    fn request(
        state: &mut Self,
        _: &Client,
        _: &ExtIdleNotifierV1,
        request: ext_idle_notifier_v1::Request,
        (): &(),
        _: &DisplayHandle,
        objects: &mut DataInit<'_, Self>,
    ) {
        use ext_idle_notifier_v1::Request;
        let (id, timeout_ms, input) = match request {
            Request::GetIdleNotification { id, timeout, .. } => (id, timeout, false),
            Request::GetInputIdleNotification { id, timeout, .. } => (id, timeout, true),
            _ => return,
        };
        state.0.push(Notification {
            timeout_ms,
            input,
            object: objects.init(id, ()),
        });
    }
}

impl Dispatch<ExtIdleNotificationV1, ()> for State {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ExtIdleNotificationV1,
        _: ext_idle_notification_v1::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

impl Dispatch<WlSeat, ()> for State {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &WlSeat,
        _: wl_seat::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}
