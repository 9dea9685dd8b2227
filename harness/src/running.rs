//! A program that runs beside a test.
#![allow(clippy::expect_used, clippy::panic)]

use crate::random::Random;
use crate::{PATIENCE, wait_for};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A running program. Threads read its standard error and, if piped, its standard output. The program is
/// killed when this value is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: Receiver<String>,
    printed: Option<Receiver<String>>,
}

impl Running {
    /// Starts the program.
    ///
    /// # Panics
    /// If the program cannot be started.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let stderr = child.stderr.take().expect("stderr is a pipe");
        Self {
            said: lines(stderr, |line| println!("{line}")), // shown if the test fails
            printed: child.stdout.take().map(|stdout| lines(stdout, |_| ())),
            child,
        }
    }

    /// Takes the program's standard input, if piped; dropping the returned value closes it.
    #[must_use]
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Process id of the program.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the program has not ended.
    ///
    /// # Panics
    /// If it was waited for before.
    #[track_caller]
    #[must_use]
    pub fn is_running(&self) -> bool {
        let pid = Pid::from_child(&self.child);
        let asked = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT; // it is not reaped
        let ended = waitid(WaitId::Pid(pid), asked);
        ended.expect("it is our child").is_none()
    }

    /// Waits for the next line of standard output, and returns it.
    ///
    /// # Panics
    /// If standard output is no pipe, or if there is no line before the program ends or within [`PATIENCE`].
    #[track_caller]
    pub fn printed(&self) -> String {
        let printed = self.printed.as_ref().expect("standard output is a pipe");
        let line = printed.recv_timeout(PATIENCE);
        line.unwrap_or_else(|e| panic!("{e}: printed nothing, but said {:#?}", self.said()))
    }

    /// Waits for a line of standard error that contains `words`, and returns it.
    ///
    /// # Panics
    /// If there is no such line before the program ends or within [`PATIENCE`].
    #[track_caller]
    pub fn hear(&self, words: &str) -> String {
        let (begin, mut heard) = (Instant::now(), Vec::new());
        let left = || PATIENCE.saturating_sub(begin.elapsed());
        while let Ok(line) = self.said.recv_timeout(left()) {
            if line.contains(words) {
                return line;
            }
            heard.push(line);
        }
        panic!("never said {words:?}, but {heard:#?}");
    }

    /// Lines of standard error that no call has returned so far.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the program has ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Stops the program (SIGSTOP) in the middle of its work, that is, outside the system calls that `waits`
    /// lists by number.
    ///
    /// # Panics
    /// If the program has ended, or is found in one of these system calls at every try within [`PATIENCE`].
    #[track_caller]
    pub fn stop_at_work(&self, waits: &[u32], random: &mut Random) {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/{}/{name}", self.id()));
            text.expect("the program runs")
        };
        wait_for("the program to be at work", || {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
            self.signal(Signal::STOP);
            wait_for("the program to stop", || read("stat").contains(") T "));
            let call = read("syscall");
            let is_waiting = waits
                .iter()
                .any(|number| call.starts_with(&format!("{number} ")));
            if is_waiting {
                self.signal(Signal::CONT);
            }
            !is_waiting
        });
    }

    /// Ends the program with SIGTERM, as systemd does. Returns its exit code and the remaining lines of
    /// standard error.
    ///
    /// # Panics
    /// If the program has ended and was waited for.
    #[track_caller]
    pub fn end(self) -> (Option<i32>, Vec<String>) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits until the program ends by itself; returns the same as [`Self::end`].
    ///
    /// # Panics
    /// If it was waited for before.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, Vec<String>) {
        let status = self.child.wait().expect("it is our child");
        (status.code(), self.said.iter().collect())
    }

    /// Kills the program immediately, as a power loss would.
    pub fn kill(&self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::KILL); // fails if the program has ended
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT; // dropping `self` reaps it
        let _ = waitid(WaitId::Pid(pid), ended);
    }
}

/// Reads lines from a pipe and passes each to `seen`. The pipe is read to its end, so that the program never
/// waits for the test.
fn lines(
    pipe: impl Read + Send + 'static,
    seen: impl Fn(&str) + Send + 'static,
) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            seen(&line);
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // fails if the program has ended
        let _ = self.child.wait();
    }
}
