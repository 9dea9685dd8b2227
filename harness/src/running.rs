//! A program that runs beside a test.
#![allow(clippy::expect_used, clippy::panic)]

use crate::PATIENCE;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A running program, whose standard error is heard; killed with the value.
#[derive(Debug)]
pub struct Running {
    child: Child,
    said: Receiver<String>,
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
        let (sender, said) = channel();
        let stderr = child.stderr.take().expect("stderr is a pipe");
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                println!("{line}"); // seen when the test fails
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, said }
    }

    /// Process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains `words`, and returns it.
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

    /// Ends it as systemd does; returns its exit code and the lines that were not heard so far.
    ///
    /// # Panics
    /// When the program has ended.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, Vec<String>) {
        self.signal(Signal::TERM);
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

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}
