//! The X server's idle time: its screen saver extension has the time since the last input, and an alarm on
//! the same counter reports the next input.

use super::IdleSource;
use rustix::fd::{AsFd, BorrowedFd};
use x11rb::CURRENT_TIME;
use x11rb::connection::{Connection, RequestConnection};
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::randr::{self, ConnectionExt as _};
use x11rb::protocol::screensaver::ConnectionExt as _;
use x11rb::protocol::sync::{ConnectionExt as _, CreateAlarmAux, Int64, TESTTYPE, VALUETYPE};
use x11rb::protocol::xproto::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

/// Idle time after which an input counts as a return.
const IDLE_AFTER_MS: u32 = 1000;

/// The X server of this session.
pub(super) struct X11 {
    connection: RustConnection,
    root: u32,
}

impl X11 {
    /// Connects to `DISPLAY`.
    pub(super) fn open() -> Result<Self, String> {
        let (connection, number) =
            x11rb::connect(None).map_err(|e| format!("no X display: {e}"))?;
        let root = connection.setup().roots[number].root; // the number was checked when connecting
        let mut server = Self { connection, root };
        if server.is_xwayland().map_err(|e| e.to_string())? {
            return Err(format!("DISPLAY is XWayland's, and {}", super::XWAYLAND));
        }
        server.idle_ms()?;
        // An error is ignored: a server without alarms is still asked at intervals.
        let _ = server.request_return_event();
        Ok(server)
    }

    /// Returns true for XWayland, recognised by its extension since xorgproto 2022.2, or by the output names
    /// of older versions.
    fn is_xwayland(&self) -> Result<bool, ReplyError> {
        let server = &self.connection;
        if server.query_extension(b"XWAYLAND")?.reply()?.present {
            return Ok(true);
        }
        let has_outputs = server.extension_information(randr::X11_EXTENSION_NAME)?;
        if has_outputs.is_none() {
            return Ok(false);
        }
        let screen = server.randr_get_screen_resources_current(self.root)?;
        for output in screen.reply()?.outputs {
            let info = server
                .randr_get_output_info(output, CURRENT_TIME)?
                .reply()?;
            if info.name.starts_with(b"XWAYLAND") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Requests an event when the server is touched after [`IDLE_AFTER_MS`] (X Synchronization Extension,
    /// counter IDLETIME).
    fn request_return_event(&self) -> Result<(), ReplyOrIdError> {
        let server = &self.connection;
        server.sync_initialize(3, 1)?.reply()?;
        let counters = server.sync_list_system_counters()?.reply()?.counters;
        let Some(idle_time) = counters.iter().find(|c| c.name == b"IDLETIME") else {
            return Ok(());
        };
        let count = |lo| Int64 { hi: 0, lo };
        let alarm = CreateAlarmAux::new()
            .counter(idle_time.counter)
            .value_type(VALUETYPE::ABSOLUTE)
            .value(count(IDLE_AFTER_MS))
            .test_type(TESTTYPE::NEGATIVE_TRANSITION)
            .delta(count(0)) // the alarm stays set after it went off
            .events(1);
        server
            .sync_create_alarm(server.generate_id()?, &alarm)?
            .check()?;
        Ok(())
    }

    /// Reads received events; returns true if there were any.
    fn take_events(&self) -> Result<bool, ConnectionError> {
        let mut came = false;
        while self.connection.poll_for_event()?.is_some() {
            came = true;
        }
        Ok(came)
    }
}

impl IdleSource for X11 {
    fn idle_ms(&mut self) -> Result<Option<i64>, String> {
        loop {
            let info = self.connection.screensaver_query_info(self.root);
            let info = info.map_err(|e| format!("the X server's screen saver extension: {e}"))?;
            let info = info.reply().map_err(|e| format!("the X server: {e}"))?;
            // An event received with an answer does not make the socket readable again: check again.
            if !self
                .take_events()
                .map_err(|e| format!("the X server: {e}"))?
            {
                return Ok(Some(i64::from(info.ms_since_user_input)));
            }
        }
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        Some(self.connection.stream().as_fd())
    }

    fn name(&self) -> &'static str {
        "the X server"
    }
}
