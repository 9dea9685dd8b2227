//! Idle times of the Wayland compositor: `ext-idle-notify-v1`, or `org_kde_kwin_idle` of older compositors.
//! Both report when a seat was not touched for some time, and when it is touched again.

use super::IdleSource;
use crate::clock::Moment;
use rustix::fd::{AsFd, BorrowedFd};
use wayland_client::globals::{BindError, GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::protocol::wl_seat::WlSeat;
use wayland_client::{Connection, Dispatch, EventQueue, Proxy, QueueHandle, delegate_noop};
use wayland_protocols::ext::idle_notify::v1::client as ext;
use wayland_protocols_plasma::idle::client as kde;

use ext::ext_idle_notification_v1::{self, ExtIdleNotificationV1};
use ext::ext_idle_notifier_v1::{self, ExtIdleNotifierV1};
use kde::org_kde_kwin_idle::OrgKdeKwinIdle;
use kde::org_kde_kwin_idle_timeout::{self, OrgKdeKwinIdleTimeout};

/// Idle time after which the compositor reports a seat as idle. A shorter one would wake the reporter in each
/// pause between two keys.
const IDLE_AFTER_MS: u32 = 1000;

/// The compositor of this session.
pub(super) struct Wayland {
    connection: Connection,
    queue: EventQueue<Seats>,
    seats: Seats,
}

impl Wayland {
    /// Connects to `WAYLAND_DISPLAY`.
    pub(super) fn connect() -> Result<Connection, String> {
        Connection::connect_to_env().map_err(|e| match std::env::var("WAYLAND_DISPLAY") {
            Ok(display) => format!("WAYLAND_DISPLAY={display}: {e}"),
            Err(_) => "WAYLAND_DISPLAY is not set".to_owned(),
        })
    }

    /// Requests reports about all present and future seats.
    pub(super) fn watch(connection: Connection) -> Result<Self, String> {
        let (globals, queue) =
            registry_queue_init::<Seats>(&connection).map_err(|e| e.to_string())?;
        let handle = queue.handle();
        let notifier = (globals.bind(&handle, 1..=2, ()).map(Notifier::Ext))
            .or_else(|_: BindError| globals.bind(&handle, 1..=1, ()).map(Notifier::Kde))
            .map_err(|_: BindError| {
                "the compositor offers neither ext_idle_notifier_v1 nor org_kde_kwin_idle"
            })?;
        let mut seats = Seats {
            notifier,
            seats: Vec::new(),
        };
        for global in globals.contents().clone_list() {
            if global.interface == WlSeat::interface().name {
                seats.watch(globals.registry(), global.name, &handle);
            }
        }
        Ok(Self {
            connection,
            queue,
            seats,
        })
    }
}

impl IdleSource for Wayland {
    /// Reads the compositor's events and waits for its answer: a hung compositor must not look idle.
    fn idle_ms(&mut self) -> Result<Option<i64>, String> {
        self.queue
            .roundtrip(&mut self.seats)
            .map_err(|e| format!("the Wayland compositor: {e}"))?;
        Ok(self.seats.idle_ms(Moment::now().boottime_ms))
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.as_fd())
    }

    fn name(&self) -> &'static str {
        match &self.seats.notifier {
            Notifier::Ext(notifier) if Notifier::reports_input_only(notifier) => {
                "the Wayland compositor (ext_idle_notifier_v1, input alone)"
            }
            Notifier::Ext(_) => "the Wayland compositor (ext_idle_notifier_v1)",
            Notifier::Kde(_) => "the Wayland compositor (org_kde_kwin_idle)",
        }
    }
}

/// States of the compositor's seats.
struct Seats {
    notifier: Notifier,
    seats: Vec<Seat>,
}

struct Seat {
    name: u32,
    notification: Notification,
    /// Start of the idle period, on CLOCK_BOOTTIME; `None` while the seat is in use.
    idle_since_ms: Option<i64>,
}

enum Notifier {
    Ext(ExtIdleNotifierV1),
    Kde(OrgKdeKwinIdle),
}

enum Notification {
    Ext(ExtIdleNotificationV1),
    Kde(OrgKdeKwinIdleTimeout),
}

impl Notifier {
    /// Returns true if the notifier reports only input, as it can since version 2. Before that, a program
    /// that keeps the screen on counts as input.
    fn reports_input_only(notifier: &ExtIdleNotifierV1) -> bool {
        notifier.version() >= ext_idle_notifier_v1::REQ_GET_INPUT_IDLE_NOTIFICATION_SINCE
    }
}

impl Seats {
    fn watch(&mut self, registry: &WlRegistry, name: u32, handle: &QueueHandle<Self>) {
        let seat: WlSeat = registry.bind(name, 1, handle, ());
        let notification = match &self.notifier {
            Notifier::Ext(notifier) => {
                let request = if Notifier::reports_input_only(notifier) {
                    ExtIdleNotifierV1::get_input_idle_notification
                } else {
                    ExtIdleNotifierV1::get_idle_notification
                };
                Notification::Ext(request(notifier, IDLE_AFTER_MS, &seat, handle, name))
            }
            Notifier::Kde(notifier) => {
                Notification::Kde(notifier.get_idle_timeout(&seat, IDLE_AFTER_MS, handle, name))
            }
        };
        self.seats.push(Seat {
            name,
            notification,
            idle_since_ms: None,
        });
    }

    fn forget(&mut self, name: u32) {
        for seat in self.seats.extract_if(.., |seat| seat.name == name) {
            match seat.notification {
                Notification::Ext(notification) => notification.destroy(),
                Notification::Kde(notification) => notification.release(),
            }
        }
    }

    fn set(&mut self, name: u32, is_idle: bool) {
        let since_ms = Moment::now().boottime_ms - i64::from(IDLE_AFTER_MS);
        for seat in self.seats.iter_mut().filter(|seat| seat.name == name) {
            seat.idle_since_ms = is_idle.then_some(since_ms);
        }
    }

    /// Idle time of the most recently used seat; `None` without seats.
    fn idle_ms(&self, now_ms: i64) -> Option<i64> {
        let since_ms = (self.seats.iter())
            .map(|seat| seat.idle_since_ms.unwrap_or(now_ms))
            .max()?;
        Some(now_ms - since_ms)
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for Seats {
    fn event(
        seats: &mut Self,
        registry: &WlRegistry,
        event: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        match event {
            wl_registry::Event::Global {
                name, interface, ..
            } if interface == WlSeat::interface().name => seats.watch(registry, name, handle),
            wl_registry::Event::GlobalRemove { name } => seats.forget(name),
            _ => {}
        }
    }
}

impl Dispatch<ExtIdleNotificationV1, u32> for Seats {
    fn event(
        seats: &mut Self,
        _: &ExtIdleNotificationV1,
        event: ext_idle_notification_v1::Event,
        &name: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            ext_idle_notification_v1::Event::Idled => seats.set(name, true),
            ext_idle_notification_v1::Event::Resumed => seats.set(name, false),
            _ => {}
        }
    }
}

impl Dispatch<OrgKdeKwinIdleTimeout, u32> for Seats {
    fn event(
        seats: &mut Self,
        _: &OrgKdeKwinIdleTimeout,
        event: org_kde_kwin_idle_timeout::Event,
        &name: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            org_kde_kwin_idle_timeout::Event::Idle => seats.set(name, true),
            org_kde_kwin_idle_timeout::Event::Resumed => seats.set(name, false),
            _ => {}
        }
    }
}

delegate_noop!(Seats: ignore WlSeat);
delegate_noop!(Seats: ExtIdleNotifierV1);
delegate_noop!(Seats: OrgKdeKwinIdle);
