//! Runs other programs, and ends them after a timeout.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a program. Programs answer within milliseconds, but a machine that is short of memory takes
/// longer.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);
/// Maximum size of a program's output, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// Output of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramOutput {
    /// Exit code of the program; `None` if a signal killed it.
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Runs a program, and waits until it ends.
///
/// # Errors
/// Text for display: the program cannot be run, or it did not end in time.
pub(super) fn ask(program: &Path, arguments: &[&str]) -> Result<ProgramOutput, String> {
    ask_with(program, arguments, &BTreeMap::new())
}

/// Runs a program like [`ask`], with these additional environment variables.
///
/// # Errors
/// Errors of [`ask`].
pub(super) fn ask_with(
    program: &Path,
    arguments: &[&str],
    variables: &BTreeMap<String, String>,
) -> Result<ProgramOutput, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", program.display());
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let read = |from: Option<Box<dyn Read + Send>>| {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            let _ = from.take(MOST_BYTES).read_to_end(&mut bytes); // after an error, what was read is used
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let output = output.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let errors = errors.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let output = thread::spawn(move || read(output));
    let errors = thread::spawn(move || read(errors));
    let begin = Instant::now();
    let ended = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if begin.elapsed() > PATIENCE => {
                let _ = child.kill();
                let _ = child.wait();
                let seconds = PATIENCE.as_secs();
                return Err(format!(
                    "{} did not end within {seconds} s",
                    program.display()
                ));
            }
            None => thread::sleep(LOOK),
        }
    };
    Ok(ProgramOutput {
        code: ended.code(),
        output: output.join().unwrap_or_default(),
        errors: errors.join().unwrap_or_default(),
    })
}

/// Runs work that may hang in a thread of its own; returns `None` if the work does not end in time. The
/// thread then continues until this process exits.
pub(super) fn within<T: Send + 'static>(
    patience: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        let _ = sender.send(work()); // fails if nobody waits any more
    });
    receiver.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_heard_and_not_waited_for_without_end() {
        let shell = Path::new("/bin/sh");
        let said = ask(shell, &["-c", "echo out; echo err >&2; exit 3"]).unwrap();
        assert_eq!(
            (said.code, said.output.as_str(), said.errors.as_str()),
            (Some(3), "out\n", "err\n")
        );
        assert!(
            ask(Path::new("/nonexistent"), &[])
                .unwrap_err()
                .contains("/nonexistent")
        );
        let error = ask(shell, &["-c", "exec sleep 600"]).unwrap_err();
        assert!(error.contains("did not end within 5 s"), "{error}");
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
        let forever = || loop {
            thread::park();
        };
        assert_eq!(within::<()>(Duration::from_millis(1), forever), None);
    }
}
