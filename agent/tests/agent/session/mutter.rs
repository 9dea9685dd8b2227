//! Tests with an idle monitor like GNOME's on a session bus.

use super::compositor::Compositor;
use super::{Word, outcome, reporter, start, wait_for_word, wait_for_word_while};
use crate::activity::now_ms;
use crate::logind::bus;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex};

const HOUR_MS: u64 = 3_600_000;

#[derive(Default)]
struct Desktop {
    /// Idle time to answer; `None`: no answer.
    idle_ms: Option<u64>,
    /// Connections that asked, and the total number of their calls.
    asked: BTreeSet<String>,
    asked_count: usize,
}

struct IdleMonitor(Arc<Mutex<Desktop>>);

#[zbus::interface(name = "org.gnome.Mutter.IdleMonitor")]
impl IdleMonitor {
    async fn get_idletime(&self, #[zbus(header)] header: zbus::message::Header<'_>) -> u64 {
        let idle_ms = {
            let mut desktop = self.0.lock().unwrap();
            desktop.asked.insert(header.sender().unwrap().to_string());
            desktop.asked_count += 1;
            desktop.idle_ms
        };
        match idle_ms {
            Some(idle_ms) => idle_ms,
            None => pending().await,
        }
    }
}

/// Plays GNOME on the bus at `address`.
fn gnome(address: &str, desktop: &Arc<Mutex<Desktop>>) -> zbus::Connection {
    let monitor = IdleMonitor(Arc::clone(desktop));
    zbus::block_on(async {
        zbus::connection::Builder::address(address)
            .serve_at("/org/gnome/Mutter/IdleMonitor/Core", monitor)
            .name("org.gnome.Mutter.IdleMonitor")
            .build()
            .await
    })
    .unwrap()
}

fn idle_for(idle_ms: u64) -> Arc<Mutex<Desktop>> {
    Arc::new(Mutex::new(Desktop {
        idle_ms: Some(idle_ms),
        ..Desktop::default()
    }))
}

#[test]
fn gnome_is_asked_before_an_x_server() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_server, display) = super::x11::xvfb();
    let elsewhere = tempfile::tempdir().unwrap();
    let (_other_bus, other_address) = bus(&elsewhere.path().join("bus"));
    // On a bus without GNOME, the reporter uses the X server.
    let with_x = start(
        reporter(folder, "50ms")
            .env("DISPLAY", &display)
            .env("DBUS_SESSION_BUS_ADDRESS", &other_address),
    );
    let word = wait_for_word(folder, |_| true);
    assert!(word.said_ms - word.active_ms < HOUR_MS as i64, "{word:?}");
    drop(with_x);
    std::fs::remove_file(folder.join("gleaner-session")).unwrap();

    // The bus is at its default path; the environment has no address.
    let (daemon, address) = bus(&folder.join("bus"));
    let desktop = idle_for(HOUR_MS);
    let service = gnome(&address, &desktop);
    let start = || start(reporter(folder, "50ms").env("DISPLAY", &display));
    let first = start();
    let hour_ago = |word: &Word| word.said_ms - word.active_ms >= HOUR_MS as i64 - 10;
    wait_for_word(folder, hour_ago);
    let back_ms = now_ms();
    desktop.lock().unwrap().idle_ms = Some(0);
    wait_for_word(folder, |word| word.is_active_since(back_ms));
    // The reporter asks many times over one connection, for longer than one answer may take.
    let often = |_: &Word| desktop.lock().unwrap().asked_count >= 20;
    wait_for_word(folder, often);
    assert_eq!(desktop.lock().unwrap().asked.len(), 1);

    drop(service);
    let (code, message) = outcome(first);
    assert_eq!(code, Some(1));
    let words = "no org.gnome.Mutter.IdleMonitor on the session bus";
    assert!(message.contains(words), "{message}");
    assert!(Word::read(folder).is_none());

    let service = gnome(&address, &desktop);
    let second = start();
    wait_for_word(folder, |_| true);
    drop(daemon);
    assert_eq!(outcome(second).0, Some(1));
    drop(service);
}

#[test]
fn gnome_is_asked_where_its_compositor_does_not_tell() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut compositor = Compositor::new(&folder.join("wayland-7"));
    compositor.add_seat();
    let (_daemon, address) = bus(&folder.join("bus"));
    let _service = gnome(&address, &idle_for(HOUR_MS));
    let _reporter = start(reporter(folder, "5s").env("WAYLAND_DISPLAY", "wayland-7"));
    wait_for_word_while(folder, Word::is_idle, || compositor.serve());
}

#[test]
fn a_desktop_that_hangs_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_daemon, address) = bus(&folder.join("bus"));
    let desktop = idle_for(HOUR_MS);
    let _service = gnome(&address, &desktop);
    let _reporter = start(reporter(folder, "50ms").env("DBUS_SESSION_BUS_ADDRESS", &address));
    wait_for_word(folder, Word::is_idle);
    desktop.lock().unwrap().idle_ms = None;
    // After a timeout each question uses a new connection, so that a late answer is not taken for
    // the next one.
    let asked = || desktop.lock().unwrap().asked.len();
    wait_for_word(folder, |_| asked() >= 3);
    let back_ms = now_ms();
    desktop.lock().unwrap().idle_ms = Some(0);
    wait_for_word(folder, |word| word.is_active_since(back_ms));
}
