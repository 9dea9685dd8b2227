//! The idle protocol of Wayland, with the compositor made by the tests.

use super::compositor::Compositor;
use super::{SECOND_LOOK, SECOND_LOOK_MS, Word, outcome, reporter, start, wait_for_word_while};
use crate::activity::now_ms;

#[test]
fn the_idle_protocol_is_spoken_in_both_versions() {
    for version in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut compositor = Compositor::new(&folder.join("wayland-7"));
        compositor.add_seat();
        compositor.add_notifier(version);
        // The reporter must ask neither XWayland's display nor the session bus.
        let reporter = start(
            reporter(folder, SECOND_LOOK)
                .env("WAYLAND_DISPLAY", "wayland-7")
                .env("DISPLAY", ":0"),
        );
        compositor.serve_until_asked(1);
        let asked = compositor.notifications()[0];
        assert_eq!((asked.timeout_ms, asked.input), (1000, version == 2));
        let seat = asked.object.clone();
        let first = wait_for_word_while(folder, |_| true, || compositor.serve());
        assert!(!first.is_idle(), "{first:?}");

        compositor.leave_alone(0);
        let idle = wait_for_word_while(folder, Word::is_idle, || compositor.serve());
        assert!(idle.is_active_since(first.active_ms)); // an activity is never taken back
        let resumed_ms = now_ms();
        seat.resumed();
        let resumed = wait_for_word_while(
            folder,
            |word| word.is_active_since(resumed_ms),
            || compositor.serve(),
        );
        let waited_ms = resumed.said_ms - first.said_ms;
        assert!(waited_ms < SECOND_LOOK_MS, "{waited_ms} ms");

        drop(compositor);
        let (code, message) = outcome(reporter);
        assert_eq!(code, Some(1));
        assert!(message.contains("the Wayland compositor: "), "{message}");
        assert!(Word::read(folder).is_none());
    }
}

#[test]
fn the_seat_used_last_counts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut compositor = Compositor::new(&folder.join("wayland-7"));
    compositor.add_notifier(2);
    compositor.add_seat();
    let _reporter = start(reporter(folder, "50ms").env("WAYLAND_DISPLAY", "wayland-7"));
    compositor.serve_until_asked(1);
    compositor.leave_alone(0);
    wait_for_word_while(folder, Word::is_idle, || compositor.serve());

    // A new seat is in use until it is reported idle, and forgotten when it is removed.
    let plugged_ms = now_ms();
    let second = compositor.add_seat();
    compositor.serve_until_asked(2);
    let in_use = |word: &Word| word.is_active_since(plugged_ms) && !word.is_idle();
    wait_for_word_while(folder, in_use, || compositor.serve());
    compositor.remove(second);
    compositor.serve_until_asked(1);
    wait_for_word_while(folder, Word::is_idle, || compositor.serve());

    compositor.add_seat();
    compositor.serve_until_asked(2);
    wait_for_word_while(folder, |word| !word.is_idle(), || compositor.serve());
    compositor.leave_alone(1);
    wait_for_word_while(folder, Word::is_idle, || compositor.serve());
}

#[test]
fn a_compositor_without_the_protocol_is_no_reason_to_ask_xwayland() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (_server, display) = super::x11::xvfb();
    let mut compositor = Compositor::new(&folder.join("wayland-7"));
    compositor.add_seat();
    let mut reporter = start(
        reporter(folder, "5s")
            .env("WAYLAND_DISPLAY", "wayland-7")
            .env("DISPLAY", display),
    );
    while reporter.0.try_wait().unwrap().is_none() {
        compositor.serve();
    }
    let (code, message) = outcome(reporter);
    assert_eq!(code, Some(1));
    for words in [
        "offers neither ext_idle_notifier_v1 nor org_kde_kwin_idle",
        "X11: not asked",
    ] {
        assert!(message.contains(words), "{message}");
    }
}
