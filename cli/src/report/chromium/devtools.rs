//! A headless Chromium, controlled over a pipe with the DevTools protocol
//! (<https://chromedevtools.github.io/devtools-protocol/>): JSON messages, each followed by a NUL.

use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit for printing one page completely; the page of a thousand hosts is long.
const LIMIT: Duration = Duration::from_secs(300);

/// Chromium reads commands from descriptor 3 and answers on 4; the shell connects our pipes there.
const START: &str = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

const FLAGS: [&str; 13] = [
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
    // The page must not access the network.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
];

pub(super) struct Browser {
    process: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Bytes that were read but not parsed yet.
    unread: Vec<u8>,
    last_id: u64,
    session: Option<String>,
    deadline: Instant,
    /// Folder of Chromium's profile and log; removed when the value is dropped.
    folder: TempDir,
}

impl Browser {
    /// Starts Chromium with an empty page.
    pub(super) fn start(chromium: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a folder for its profile")?;
        let said = std::fs::File::create(folder.path().join("said"))?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", START])
            .arg(chromium)
            .args(FLAGS)
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("profile").display()
            ))
            // Chromium writes all its files into the temporary folder, which is removed afterwards.
            .env("HOME", folder.path())
            .env("XDG_CONFIG_HOME", folder.path())
            .env("XDG_CACHE_HOME", folder.path());
        if rustix::process::geteuid().is_root() {
            // Chromium's sandbox does not run as root; Chromium opens only our own page.
            command.arg("--no-sandbox");
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said)
            .spawn()
            .context("cannot start /bin/sh")?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("no pipes to it");
        };
        let mut browser = Self {
            process,
            input,
            output,
            unread: Vec::new(),
            last_id: 0,
            session: None,
            deadline: Instant::now() + LIMIT,
            folder,
        };
        let mut target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"].take(), "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach)?;
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.ask("Page.enable", json!({}))?;
        Ok(browser)
    }

    /// Opens a page, and waits until it is completely loaded.
    pub(super) fn open(&mut self, url: &str) -> anyhow::Result<()> {
        let answer = self.ask("Page.navigate", json!({ "url": url }))?;
        if let Some(error) = answer["errorText"].as_str() {
            bail!("cannot open {url}: {error}");
        }
        let expression =
            "document.readyState === 'complete' || new Promise((r) => addEventListener('load', r))";
        let loaded = json!({ "expression": expression, "awaitPromise": true });
        self.ask("Runtime.evaluate", loaded).map(|_| ())
    }

    /// Sends a command, and waits for the answer.
    pub(super) fn ask(&mut self, method: &str, parameters: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut line = serde_json::to_vec(&message)?;
        line.push(0);
        let asked = self.input.write_all(&line);
        if asked.is_err() {
            return Err(self.failure());
        }
        loop {
            // Skip events that arrive before the answer.
            let mut answer = self.next_message()?;
            if answer["id"].as_u64() == Some(self.last_id) {
                ensure!(
                    answer.get("error").is_none(),
                    "{method}: {}",
                    answer["error"]["message"]
                );
                return Ok(answer["result"].take());
            }
        }
    }

    fn next_message(&mut self) -> anyhow::Result<Value> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.unread[searched..].iter().position(|&byte| byte == 0) {
                let message = serde_json::from_slice(&self.unread[..searched + end]);
                self.unread.drain(..=searched + end);
                return message.context("it does not speak as DevTools do");
            }
            searched = self.unread.len();
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> anyhow::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left)?;
        let mut ready = [PollFd::new(&self.output, PollFlags::IN)];
        let ready = rustix::io::retry_on_intr(|| poll(&mut ready, Some(&left)))?;
        ensure!(ready > 0, "it did not finish within {} s", LIMIT.as_secs());
        let mut more = vec![0; 1 << 16];
        let count = self.output.read(&mut more)?;
        if count == 0 {
            return Err(self.failure());
        }
        self.unread.extend_from_slice(&more[..count]);
        Ok(())
    }

    /// Error that Chromium exited, with its last output.
    fn failure(&self) -> anyhow::Error {
        let said = std::fs::read(self.folder.path().join("said")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        anyhow::anyhow!("it ended early: {}", last.unwrap_or("it said nothing"))
    }

    /// Asks Chromium to exit, so that its child processes exit too.
    pub(super) fn end(mut self) {
        let _ = self.ask("Browser.close", json!({}));
        while Instant::now() < self.deadline
            && !matches!(self.process.try_wait(), Ok(Some(_)) | Err(_))
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // This fails if Chromium has exited already, which does no harm.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
