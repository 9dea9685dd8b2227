//! sway without a screen. Debian 12's version has `org_kde_kwin_idle`.

use super::x11::x_server;
use super::{PATIENCE, SECOND_LOOK, SECOND_LOOK_MS, Word, outcome, reporter, start, wait_for_word};
use crate::activity::{ChildGuard, now_ms};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::wl_registry::{self, WlRegistry};
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle, delegate_noop};
use wayland_protocols_wlr::virtual_pointer::v1::client as wlr;

use wlr::zwlr_virtual_pointer_manager_v1::ZwlrVirtualPointerManagerV1;
use wlr::zwlr_virtual_pointer_v1::ZwlrVirtualPointerV1;

const NOBODY: u32 = 65_534;

/// Starts sway; returns its display's socket.
fn sway(runtime_folder: &Path) -> (ChildGuard, PathBuf) {
    let mut command = Command::new("sway");
    command
        .args(["--config", "/dev/null"])
        .env_clear()
        .env("XDG_RUNTIME_DIR", runtime_folder)
        .env("WLR_BACKENDS", "headless")
        .env("WLR_LIBINPUT_NO_DEVICES", "1")
        .env("WLR_RENDERER", "pixman")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if rustix::process::geteuid().is_root() {
        // sway refuses to run as root.
        std::os::unix::fs::chown(runtime_folder, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let sway = ChildGuard(command.spawn().expect("sway is missing: run tests/setup"));
    let socket = runtime_folder.join("wayland-1");
    let until = Instant::now() + PATIENCE;
    while UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < until, "sway does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    (sway, socket)
}

struct NoEvents;

/// A virtual pointer.
struct Pointer {
    queue: EventQueue<NoEvents>,
    pointer: ZwlrVirtualPointerV1,
}

impl Pointer {
    fn new(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        let connection = Connection::from_socket(stream).unwrap();
        let (globals, queue) = registry_queue_init::<NoEvents>(&connection).unwrap();
        let handle = queue.handle();
        let manager: ZwlrVirtualPointerManagerV1 = globals.bind(&handle, 1..=1, ()).unwrap();
        let pointer = manager.create_virtual_pointer(None, &handle, ());
        Self { queue, pointer }
    }

    fn move_it(&mut self) {
        self.pointer.motion(0, 5.0, 5.0);
        self.pointer.frame();
        self.queue.roundtrip(&mut NoEvents).unwrap();
    }
}

impl Dispatch<WlRegistry, GlobalListContents> for NoEvents {
    fn event(
        _: &mut Self,
        _: &WlRegistry,
        _: wl_registry::Event,
        _: &GlobalListContents,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
    }
}

delegate_noop!(NoEvents: ZwlrVirtualPointerManagerV1);
delegate_noop!(NoEvents: ZwlrVirtualPointerV1);

#[test]
fn a_moved_pointer_is_seen_through_sway() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (sway, socket) = sway(folder);
    let mut pointer = Pointer::new(&socket);
    let reporter = start(reporter(folder, SECOND_LOOK).env("WAYLAND_DISPLAY", socket));
    let first = wait_for_word(folder, |_| true);
    // The next report, before a second look, says that the desktop is idle.
    wait_for_word(folder, |word| word.said_ms > first.said_ms);

    let moved_ms = now_ms();
    pointer.move_it();
    let word = wait_for_word(folder, |word| word.is_active_since(moved_ms));
    let waited_ms = word.said_ms - first.said_ms;
    assert!(waited_ms < SECOND_LOOK_MS, "{waited_ms} ms");
    // Without input, the desktop is idle since the movement.
    let idle = wait_for_word(folder, Word::is_idle);
    assert!(idle.is_active_since(moved_ms), "{idle:?} {moved_ms}");

    drop(sway);
    let (code, message) = outcome(reporter);
    assert_eq!(code, Some(1));
    assert!(message.contains("the Wayland compositor: "), "{message}");
    assert!(Word::read(folder).is_none());
}

#[test]
fn xwayland_alone_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_sway, socket) = sway(folder);
    let (_server, display) = x_server(
        Command::new("Xwayland")
            .args(["-rootless", "-shm"])
            .env("WAYLAND_DISPLAY", socket)
            .env("XDG_RUNTIME_DIR", folder),
    );
    let (code, message) = crate::fail(reporter(folder, "5s").env("DISPLAY", display));
    assert_eq!(code, 1);
    let words = "DISPLAY is XWayland's, and XWayland observes only the input to X programs";
    assert!(message.contains(words), "{message}");
}
