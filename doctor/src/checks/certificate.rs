//! Checks of a daemon's certificate, of its key, and of its authority.

use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use crate::user::{Access, FileUse, Node, User, access};
use gleaner_schemas::units::Seconds;
use gleaner_trust::{
    ClientPaths, ClientTrust, Credentials, Dates, ServerPaths, ServerTrust, certificate,
};
use jiff::Timestamp;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const SUBJECT: &str = "certificate";
/// Group of the files that several daemons share.
const SHARED: &str = "gleaner";
const DAY: Duration = Duration::from_secs(86_400);
/// If an authority is valid for less than this, it should be replaced: it takes weeks to enrol a fleet again.
const AUTHORITY_ENDS: Duration = Duration::from_secs(182 * 86_400);
/// If a server's certificate is valid for less than this, it should be replaced, which an administrator does
/// by hand.
const SERVER_ENDS: Duration = Duration::from_secs(30 * 86_400);
/// If this share of a host certificate's validity has passed, its automatic renewal must have failed: the
/// renewal is due after two thirds.
const HOST_ENDS: f64 = 0.75;

/// Paths of a certificate's files, for a host or for a server.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    Host(ClientPaths),
    Server(ServerPaths),
}

impl Files {
    fn all(&self) -> Vec<&Path> {
        let mut paths: Vec<&Path> = match self {
            Self::Host(paths) => vec![&paths.certificate, &paths.key, &paths.authority],
            Self::Server(paths) => {
                let mut all: Vec<&Path> = vec![&paths.certificate, &paths.key, &paths.authority];
                all.extend(paths.revocation_list.as_deref());
                all
            }
        };
        paths.dedup();
        paths
    }

    fn certificate(&self) -> &Path {
        match self {
            Self::Host(paths) => &paths.certificate,
            Self::Server(paths) => &paths.certificate,
        }
    }

    fn key(&self) -> &Path {
        match self {
            Self::Host(paths) => &paths.key,
            Self::Server(paths) => &paths.key,
        }
    }

    fn authority(&self) -> &Path {
        match self {
            Self::Host(paths) => &paths.authority,
            Self::Server(paths) => &paths.authority,
        }
    }
}

/// Facts about the files of a certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateFacts {
    missing: Option<PathBuf>,
    /// File or folder that keeps the daemon's user from reading a file, with its owner and mode.
    closed: Option<(PathBuf, Node)>,
    /// File that the doctor may not read.
    unseen: Option<PathBuf>,
    /// Error that occurs when key and certificate are loaded together.
    trouble: Option<String>,
    dates: Option<Dates>,
    authority: Option<Dates>,
    /// DNS names and addresses in the certificate.
    pub(crate) names: Vec<String>,
    /// Time at which the revocation list was made, and time of its next update.
    revoked: Option<(SystemTime, Option<SystemTime>)>,
    key_mode: Option<u32>,
}

/// Reads the files. `user` is the daemon's user, `me` the doctor's. For a host's certificate, also returns
/// the client credentials if they are valid.
pub(crate) fn read(
    files: &Files,
    user: &User,
    me: &User,
) -> (CertificateFacts, Option<Arc<Credentials>>) {
    let mut found = CertificateFacts::default();
    for path in files.all() {
        match access(me, path, &[FileUse::Read]) {
            Access::Missing => found.missing = found.missing.or(Some(path.to_owned())),
            Access::No(..) | Access::Unseen(_) => {
                found.unseen = found.unseen.or(Some(path.to_owned()))
            }
            Access::Yes | Access::ReadOnly => {
                if let Access::No(closed, node) = access(user, path, &[FileUse::Read]) {
                    found.closed = found.closed.or(Some((closed, node)));
                }
            }
        }
    }
    let text = |path: &Path| std::fs::read_to_string(path).ok();
    if let Some(pem) = text(files.certificate()) {
        found.dates = certificate::dates(&pem).ok();
        found.names = certificate::server_names(&pem).unwrap_or_default();
    }
    found.authority = text(files.authority()).and_then(|pem| certificate::dates(&pem).ok());
    found.key_mode = Node::of(files.key()).ok().map(|node| node.mode);
    if found.missing.is_some() || found.unseen.is_some() {
        return (found, None);
    }
    match files {
        Files::Host(paths) => match ClientTrust::load(paths) {
            Ok(trust) => return (found, Some(trust.credentials())),
            Err(e) => found.trouble = Some(e.to_string()),
        },
        Files::Server(paths) => {
            found.trouble = ServerTrust::load(paths).err().map(|e| e.to_string());
            let list = paths.revocation_list.as_deref();
            found.revoked = list.and_then(|path| gleaner_trust::revocation_dates(path).ok());
        }
    }
    (found, None)
}

/// Judges the files. `renew` is the command that gets a new certificate. It is `None` if the certificates
/// come from another PKI than Gleaner's.
pub(crate) fn judge(
    found: &CertificateFacts,
    files: &Files,
    user: &User,
    renew: Option<&str>,
    now: SystemTime,
) -> Vec<Finding> {
    let path = files.certificate().display();
    let of = |message, text: String| {
        let finding = Finding::of(message, SUBJECT, text);
        match renew {
            Some(renew) => finding.remedy(renew),
            None => finding,
        }
    };
    let mut findings = Vec::new();
    if let Some(mode) = found.key_mode.filter(|mode| mode & 0o004 != 0) {
        let key = files.key();
        let text = format!(
            "{} (mode {mode:04o}) is open to every user of this host",
            key.display()
        );
        findings.push(
            Finding::of(Message::KeyOpen, "key", text)
                .remedy(format!("sudo chmod o-rwx {}", quoted(key))),
        );
    }
    let main = if let Some(missing) = &found.missing {
        of(
            Message::CertificateMissing,
            format!("{} is not there", missing.display()),
        )
    } else if let Some((closed, node)) = &found.closed {
        let owner = User::of(node.uid).name;
        let text = format!(
            "{} belongs to {owner} (mode {:04o}): {} may not read it",
            closed.display(),
            node.mode,
            user.name
        );
        let path = quoted(closed);
        let mode = if node.is_folder { "g+rx" } else { "g+r" };
        let remedy = match user.shares_a_group(SHARED) {
            true => format!("sudo chgrp {SHARED} {path} && sudo chmod {mode} {path}"),
            false => format!("sudo chown {}: {path}", user.name),
        };
        Finding::of(Message::CertificateUnread, SUBJECT, text).remedy(remedy)
    } else if let Some(unseen) = &found.unseen {
        let text = format!("this user may not read {}", unseen.display());
        Finding::of(Message::CertificateUnseen, SUBJECT, text).remedy("sudo gleaner doctor")
    } else if let Some(trouble) = &found.trouble {
        of(Message::CertificateWrong, trouble.clone())
    } else {
        match found.dates {
            None => of(
                Message::CertificateWrong,
                format!("{path} holds no certificate"),
            ),
            Some(dates) if now > dates.until => {
                let text = format!(
                    "{path} has ended {} ago, on {}",
                    length(dates.until, now),
                    day(dates.until)
                );
                of(Message::CertificateExpired, text)
            }
            Some(dates) if now < dates.from => {
                let text = format!(
                    "{path} is valid from {} on, {} from now",
                    day(dates.from),
                    length(now, dates.from)
                );
                Finding::of(Message::CertificateEarly, SUBJECT, text)
                    .remedy("sudo timedatectl set-ntp true")
            }
            Some(dates) if ends_soon(files, dates, now) => of(
                Message::CertificateEnds,
                format!(
                    "{path} ends in {}, on {}",
                    length(now, dates.until),
                    day(dates.until)
                ),
            ),
            Some(dates) => {
                let text = format!(
                    "{path} until {} ({})",
                    day(dates.until),
                    length(now, dates.until)
                );
                Finding::ok(SUBJECT, text)
            }
        }
    };
    findings.push(main);
    findings.extend(
        found
            .authority
            .and_then(|dates| authority(files, dates, now)),
    );
    if let Some((made, Some(until))) = found
        .revoked
        .filter(|(_, until)| until.is_some_and(|until| now > until))
    {
        let text = format!(
            "the list of revoked certificates is of {}, and a newer one was due on {}",
            day(made),
            day(until)
        );
        findings.push(Finding::of(Message::RevocationsOld, "revocations", text));
    } else if let Some((made, _)) = found.revoked {
        findings.push(Finding::ok(
            "revocations",
            format!("the list is of {}, {} ago", day(made), length(made, now)),
        ));
    }
    findings
}

fn ends_soon(files: &Files, dates: Dates, now: SystemTime) -> bool {
    let left = dates.until.duration_since(now).unwrap_or_default();
    let life = dates.until.duration_since(dates.from).unwrap_or_default();
    match files {
        Files::Host(_) => left < life.mul_f64(1.0 - HOST_ENDS),
        Files::Server(_) => left < SERVER_ENDS,
    }
}

fn authority(files: &Files, dates: Dates, now: SystemTime) -> Option<Finding> {
    let path = files.authority().display();
    let remedy = "sudo gleaner pki init /etc/gleaner/pki-next --name COLLECTOR";
    if now > dates.until {
        let text = format!("{path} has ended on {}", day(dates.until));
        return Some(Finding::of(Message::AuthorityExpired, "authority", text).remedy(remedy));
    }
    let left = dates.until.duration_since(now).unwrap_or_default();
    (left < AUTHORITY_ENDS).then(|| {
        let text = format!(
            "{path} ends in {} days, on {}",
            left.as_secs() / DAY.as_secs(),
            day(dates.until)
        );
        Finding::of(Message::AuthorityEnds, "authority", text).remedy(remedy)
    })
}

/// Judges the modes of the authority's key and folder; `None` if they are strict enough, or not on this
/// machine.
pub(crate) fn judge_authority_folder(folder: &Path) -> Option<Finding> {
    let key = folder.join("authority.key");
    let of = |path: &Path, allowed: u32| {
        let node = Node::of(path).ok()?;
        (node.mode & 0o777 & !allowed != 0).then(|| (path.to_owned(), node.mode, allowed))
    };
    let (path, mode, allowed) = of(&key, 0o600).or_else(|| of(folder, 0o755))?;
    let text = format!(
        "{} has mode {mode:04o}, {allowed:04o} at most: whoever reads the authority's key can be anybody",
        path.display()
    );
    Some(
        Finding::of(Message::KeyOpen, "authority", text)
            .remedy(format!("sudo chmod {allowed:04o} {}", quoted(&path))),
    )
}

fn day(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(
        |_| "?".to_owned(),
        |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

fn length(from: SystemTime, until: SystemTime) -> String {
    Seconds(until.duration_since(from).unwrap_or_default().as_secs_f64()).to_string()
}

#[cfg(test)]
mod tests;
