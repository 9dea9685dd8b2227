//! Mail to the local mail system: the short form of the report, and the page if it is small enough.

use super::args::Mail;
use anyhow::{Context, anyhow, ensure};
use gleaner_reports::Report;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Sender of the message; `None` if no recipient is given, so that no mail is sent.
pub(super) fn sender(args: &Mail) -> anyhow::Result<Option<Mailbox>> {
    if args.to.is_empty() {
        return Ok(None);
    }
    if let Some(from) = &args.from {
        return Ok(Some(from.clone()));
    }
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let address = Address::new("gleaner", host.as_ref()).with_context(|| {
        format!(
            "this machine's name, {host:?}, cannot be used in a sender address: give --mail-from"
        )
    })?;
    Ok(Some(Mailbox::new(Some("Gleaner".to_owned()), address)))
}

/// Sends the message. `page_url` is the page's URL, if it has one.
pub(super) fn send(
    args: &Mail,
    from: Mailbox,
    report: &Report,
    html: &str,
    page_name: &str,
    page_url: Option<String>,
) -> anyhow::Result<()> {
    let summary = report.summary();
    let is_attached = i64::try_from(html.len()).is_ok_and(|bytes| bytes <= args.limit_bytes);
    let mut text = report.markdown();
    if is_attached {
        text.push_str("\nThe full report is attached: open it in a browser.\n");
    }
    match page_url {
        Some(place) if args.link.is_some() || !is_attached => {
            text.push_str(&format!("\nThe full report: {place}\n"));
        }
        None if !is_attached => text.push_str("\nThe full report is too large for mail.\n"),
        _ => {}
    }
    let mut message = Message::builder()
        .from(from)
        .subject(one_line(&format!("{}, {}", summary.title, summary.period)))
        .header(AutoSubmitted);
    for to in &args.to {
        message = message.to(to.clone());
    }
    let text = SinglePart::plain(text);
    let message = if is_attached {
        // The page is passed as bytes, so that it is encoded as base64: quoted-printable would be larger.
        let page = Attachment::new(page_name.to_owned())
            .body(html.as_bytes().to_vec(), ContentType::TEXT_HTML);
        message.multipart(MultiPart::mixed().singlepart(text).singlepart(page))
    } else {
        message.singlepart(text)
    };
    let message = message.context("cannot write the message")?;
    pipe_to_sendmail(&args.sendmail, &message.formatted())
}

/// Sends a message that only says that mail from here arrives.
pub(super) fn send_test(args: &Mail, from: Mailbox) -> anyhow::Result<()> {
    let mut message = Message::builder()
        .from(from)
        .subject("Gleaner: a test message")
        .header(AutoSubmitted);
    for to in &args.to {
        message = message.to(to.clone());
    }
    let text =
        "Mail from this machine arrives. Gleaner will send the weekly report to this address.\n";
    let message = message.singlepart(SinglePart::plain(text.to_owned()));
    pipe_to_sendmail(
        &args.sendmail,
        &message.context("cannot write the message")?.formatted(),
    )
}

/// Passes the message to sendmail, with options that every sendmail accepts. `-t` takes the recipients from
/// the header; `-i` makes a line with a single dot part of the text.
fn pipe_to_sendmail(sendmail: &Path, message: &[u8]) -> anyhow::Result<()> {
    let name = sendmail.display();
    let mut program = Command::new(sendmail)
        .args(["-t", "-i"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| {
            format!(
                "cannot start {name}: install a mail system, or name its sendmail by --sendmail"
            )
        })?;
    let mut input = program.stdin.take().context("no pipe to sendmail")?;
    // The result of writing is checked later: if sendmail stopped reading, its own error message says why.
    let written = input.write_all(message);
    drop(input);
    let output = program
        .wait_with_output()
        .with_context(|| format!("cannot wait for {name}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{name} rejected the message ({}): {}",
        output.status,
        said.trim()
    );
    written.map_err(|e| anyhow!("{name} did not read the whole message: {e}"))
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// Header that stops automatic replies (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}
