//! The terminal: put into raw mode while a view is shown, and restored however the view ends.

use anyhow::Context;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum time between updates; keys are handled immediately.
const TICK: Duration = Duration::from_millis(250);

/// A view on the terminal.
pub(super) trait Screen {
    /// Reads new data.
    fn refresh(&mut self);
    /// Draws the whole frame.
    fn draw(&mut self, frame: &mut Frame<'_>);
    /// Handles a key.
    fn key(&mut self, key: KeyEvent) -> NextStep;
}

/// Effect of a key on the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Continue,
    Quit,
}

/// Restores the terminal when dropped. After a panic, ratatui's hook restores it earlier, before the panic's
/// message is printed.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows `screen` until a key or a signal ends it.
pub(super) fn show(screen: &mut dyn Screen) -> anyhow::Result<()> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let mut terminal =
        ratatui::try_init().context("cannot take the terminal; --once prints one frame")?;
    let _taken = TerminalGuard;
    while !ended.load(Ordering::Relaxed) {
        screen.refresh();
        terminal
            .draw(|frame| screen.draw(frame))
            .context("cannot draw on the terminal")?;
        let mut wait = TICK;
        while event::poll(wait).context("cannot read the terminal")? {
            wait = Duration::ZERO; // handle all pressed keys, then draw one frame
            if let Event::Key(key) = event::read().context("cannot read the terminal")?
                && key.kind != KeyEventKind::Release
                && (is_interrupt(key) || screen.key(key) == NextStep::Quit)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Returns true for Ctrl-C, which is a key in raw mode.
fn is_interrupt(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    use std::fs::File;
    use std::io::Read;
    use std::process::Command;

    struct Panics;

    impl Screen for Panics {
        fn refresh(&mut self) {}
        fn draw(&mut self, _: &mut Frame<'_>) {
            panic!("while it draws");
        }
        fn key(&mut self, _: KeyEvent) -> NextStep {
            NextStep::Quit
        }
    }

    /// The test starts itself again as a child process on a terminal; the child panics while it draws.
    #[test]
    fn the_terminal_is_given_back_after_a_panic() {
        if std::env::var_os("GLEANER_TEST_PANICS").is_some() {
            let _ = show(&mut Panics);
            return;
        }
        let mut master = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let open = || {
            File::options()
                .read(true)
                .write(true)
                .open(name.to_str().unwrap())
        };
        let terminal = open().unwrap();
        let test = "top::terminal::tests::the_terminal_is_given_back_after_a_panic";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env("GLEANER_TEST_PANICS", "1")
            .stdin(open().unwrap())
            .stdout(open().unwrap())
            .stderr(open().unwrap())
            .spawn()
            .unwrap();
        let reader = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = master.read_to_end(&mut said); // ends with an error when the terminal is closed
            String::from_utf8_lossy(&said).into_owned()
        });
        assert!(!child.wait().unwrap().success());
        let modes = tcgetattr(&terminal).unwrap().local_modes;
        assert!(
            modes.contains(LocalModes::ICANON | LocalModes::ECHO),
            "{modes:?}"
        );
        drop(terminal);
        let said = reader.join().unwrap();
        let left = said
            .find("\u{1b}[?1049l")
            .expect("the other screen is left");
        let told = said.find("while it draws").expect("the panic is told");
        assert!(left < told, "{said:?}");
    }
}
