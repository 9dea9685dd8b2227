//! A program that runs beside a test.
#![allow(clippy::expect_used, clippy::panic)]

use crate::random::Random;
use crate::{PATIENCE, wait_for};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A running program, whose standard error is heard, and its standard output where that is a pipe; killed with the value.
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
    /// When it cannot be started.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let stderr = child.stderr.take().expect("stderr is a pipe");
        Self {
            said: lines(stderr, |line| println!("{line}")), // seen when the test fails
            printed: child.stdout.take().map(|stdout| lines(stdout, |_| ())),
            child,
        }
    }

    /// Takes its standard input, where that is a pipe; it ends with the returned value.
    #[must_use]
    pub fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Process id of the program.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line of standard output, and returns it.
    ///
    /// # Panics
    /// When standard output is no pipe, or the program ends or [`PATIENCE`] does without a line.
    #[track_caller]
    pub fn printed(&self) -> String {
        let printed = self.printed.as_ref().expect("standard output is a pipe");
        let line = printed.recv_timeout(PATIENCE);
        line.unwrap_or_else(|e| panic!("{e}: printed nothing, but said {:#?}", self.said()))
    }

    /// Waits for a line of standard error that contains `words`, and returns it.
    ///
    /// # Panics
    /// When the program ends or [`PATIENCE`] does without such a line.
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

    /// Lines that were not heard so far.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the program has ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Stops it in the middle of its work: until it is found in no system call of `waits`, by number.
    ///
    /// # Panics
    /// When the program has ended, or is not found so within [`PATIENCE`].
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

    /// Ends it as systemd does; returns its exit code and the lines that were not heard so far.
    ///
    /// # Panics
    /// When the program has ended and was waited for.
    #[track_caller]
    pub fn end(self) -> (Option<i32>, Vec<String>) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits for its own end; returns the same as [`Self::end`].
    ///
    /// # Panics
    /// When it was waited for before.
    #[track_caller]
    pub fn ended(mut self) -> (Option<i32>, Vec<String>) {
        let status = self.child.wait().expect("it is our child");
        (status.code(), self.said.iter().collect())
    }

    /// Ends it as a loss of power does, as far as a process can tell.
    pub fn kill(&self) {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::KILL); // it may have ended
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT; // it is reaped with the value
        let _ = waitid(WaitId::Pid(pid), ended);
    }
}

/// Lines of a pipe, each seen when it comes; read to the end, so that the program never waits for the test.
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
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}
