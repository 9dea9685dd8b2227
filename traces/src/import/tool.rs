//! Runs other programs' tools and reads their output: only these tools know every version of their own files.

use super::ImportError;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

/// Number of bytes kept of a tool's error output: at least this many, at most twice as many. The last ones
/// are kept, because they say how the tool ended.
const SAID_BYTES: usize = 4096;

/// A tool of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// Names under which the program is installed, the newest first.
    pub(super) programs: &'static [&'static str],
    /// Debian package that contains the program.
    pub(super) package: &'static str,
}

/// A running tool; it is killed when this is dropped.
pub(super) struct Running {
    program: &'static str,
    child: Child,
    /// Output of the tool, read as it arrives.
    printed: ChildStdout,
    said: Option<JoinHandle<String>>,
}

impl Tool {
    /// Runs the tool on `path`, placed between the two lists of arguments, in the C locale.
    pub(super) fn run(
        &self,
        before: &[&str],
        path: &Path,
        after: &[&str],
    ) -> Result<Running, ImportError> {
        for program in self.programs {
            let mut command = Command::new(program);
            // With `./` in front, the tool cannot take the path for an option or a number.
            command.args(before).arg(Path::new(".").join(path));
            command.args(after).env("LC_ALL", "C");
            command.stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(path, format!("{program}: {error}"))),
                Ok(mut child) => {
                    let (Some(printed), Some(said)) = (child.stdout.take(), child.stderr.take())
                    else {
                        return Err(failed(path, format!("{program} has no output")));
                    };
                    return Ok(Running {
                        program,
                        child,
                        printed,
                        // A thread reads the error output meanwhile: a tool blocks if nobody reads it.
                        said: Some(thread::spawn(move || tail(said))),
                    });
                }
            }
        }
        Err(ImportError::NoTool {
            path: path.to_owned(),
            tool: self.programs.join(" or "),
            package: self.package,
        })
    }
}

/// Error for a tool that failed on `path`, with its error output ([`Running::end`]).
pub(super) fn failed(path: &Path, said: String) -> ImportError {
    ImportError::Tool {
        path: path.to_owned(),
        said,
    }
}

/// Reads a stream to its end, and returns its last part ([`SAID_BYTES`]).
fn tail(mut from: impl Read) -> String {
    let (mut text, mut part) = (Vec::new(), [0; SAID_BYTES]);
    while let Ok(read @ 1..) = from.read(&mut part) {
        text.extend_from_slice(&part[..read]);
        let over = text.len().saturating_sub(SAID_BYTES);
        text.drain(..over);
    }
    String::from_utf8_lossy(&text).into_owned()
}

impl Running {
    /// Waits until the tool exits; its output must have been read. If the tool failed, returns its name and
    /// its error output, without the lines that contain `beside`.
    pub(super) fn end(mut self, beside: Option<&str>) -> Option<String> {
        let status = match self.child.wait() {
            Ok(status) if status.success() => return None,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let said = self.said.take().and_then(|said| said.join().ok());
        let said = said.unwrap_or_default();
        let lines = said.lines().map(str::trim);
        let lines =
            lines.filter(|l| !l.is_empty() && beside.is_none_or(|beside| !l.contains(beside)));
        let named = format!("{}: ", self.program);
        let lines: Vec<&str> = lines.map(|l| l.strip_prefix(&named).unwrap_or(l)).collect();
        let said = if lines.is_empty() {
            status
        } else {
            lines.join("; ")
        };
        Some(format!("{named}{said}"))
    }
}

impl Read for Running {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.printed.read(into)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The tool may have exited already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(said) = self.said.take() {
            let _ = said.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Tool = Tool {
        programs: &["no-such-shell", "sh"],
        package: "dash",
    };

    fn run(script: &str) -> (String, Option<String>) {
        let mut running = SHELL.run(&["-c", script], Path::new("x"), &[]).unwrap();
        let mut printed = String::new();
        running.read_to_string(&mut printed).unwrap();
        (printed, running.end(Some("beside")))
    }

    #[test]
    fn what_it_prints_and_how_it_failed() {
        assert_eq!(run("echo a; echo b >&2"), ("a\n".to_owned(), None));
        let (printed, failed) = run("echo a; echo beside it >&2; echo sh: why >&2; exit 3");
        assert_eq!(
            (printed.as_str(), failed.as_deref()),
            ("a\n", Some("sh: why"))
        );
        assert_eq!(run("exit 3").1.as_deref(), Some("sh: exit status: 3"));
        // The error output is larger than a pipe's buffer; only its end is kept.
        let (printed, failed) = run("yes x | head -c 1000000 >&2; echo a; echo why >&2; exit 1");
        assert_eq!(printed, "a\n");
        assert!(failed.unwrap().ends_with("x; why"));
        // The path is passed unchanged, and never read as an option.
        assert_eq!(run("echo $0").0, "./x\n");
    }

    #[test]
    fn one_that_is_dropped_is_ended() {
        let script = ["-c", "exec sleep 600"];
        let running = SHELL.run(&script, Path::new("x"), &[]).unwrap();
        let pid = running.child.id();
        drop(running);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_missing_one_is_named_with_its_package() {
        let missing = Tool {
            programs: &["no-such-tool"],
            package: "nothing",
        };
        let error = missing.run(&[], Path::new("a"), &["-V"]).err().unwrap();
        let text = error.to_string();
        assert!(
            text.contains("no-such-tool") && text.contains("package nothing"),
            "{text}"
        );
    }
}
