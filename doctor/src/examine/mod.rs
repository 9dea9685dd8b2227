//! Examines each daemon by combining its checks. This file has the parts common to all daemons.

mod agent;
mod clerk;
mod collector;
mod commons;
mod memoryd;
mod recruiter;
mod recruiters;
mod ship;

use super::checks::certificate::{self, Files};
use super::checks::{configuration, folder, limits, program, unit};
use super::daemon::Daemon;
use super::finding::Finding;
use super::message::Message;
use super::place::{Place, quoted};
use super::process::{self, Process};
use super::settings::Settings;
use super::user::{Node, User};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Default limit on the number of connections, the same for collector and recruiter.
const CONNECTIONS_LIMIT: u64 = 20_000;

/// A daemon's findings.
pub(super) struct Examination {
    pub(super) daemon: Daemon,
    pub(super) is_used: bool,
    pub(super) findings: Vec<Finding>,
}

/// Facts about a daemon that are collected before the checks of this daemon alone.
struct Patient<'a> {
    place: &'a Place,
    daemon: Daemon,
    unit: unit::Unit,
    program: program::Program,
    /// Answer of the daemon's program to `check-config`; `None` if the program does not exist.
    checked: Option<configuration::Answer>,
    settings: Settings,
    process: Option<Process>,
    /// User who runs the daemon, or would run it.
    user: User,
    /// True if the daemon was named on the command line.
    is_asked: bool,
}

/// Examines a daemon. `is_asked`: the daemon was named on the command line.
pub(super) fn examine(place: &Place, daemon: Daemon, is_asked: bool) -> Examination {
    let unit = unit::read(place, daemon);
    let process = process::find(place, daemon, unit.main_pid());
    let program = program::read(place, daemon);
    let checked = program
        .path
        .as_deref()
        .map(|program| configuration::read(place, daemon, program, &unit.variables()));
    let known = match &checked {
        Some(Ok(checked)) => checked.as_ref(),
        _ => None,
    };
    let settings = Settings::read(place, daemon, known);
    let keeps_at = state(place, daemon, &settings);
    let patient = Patient {
        user: user(place, &unit, process.as_ref(), &keeps_at),
        program,
        checked,
        settings,
        process,
        unit,
        place,
        daemon,
        is_asked,
    };
    let findings = match daemon {
        Daemon::Agent => agent::examine(&patient),
        Daemon::Ship => ship::examine(&patient),
        Daemon::Collector => collector::examine(&patient),
        Daemon::Recruiter => recruiter::examine(&patient),
        Daemon::Memoryd => memoryd::examine(&patient),
        Daemon::Clerk => clerk::examine(&patient),
        Daemon::Commons => commons::examine(&patient),
    };
    match findings {
        Some(findings) => Examination {
            daemon,
            is_used: true,
            findings,
        },
        None => Examination {
            daemon,
            is_used: false,
            findings: vec![patient.unused()],
        },
    }
}

/// User of the daemon's unit, else of its process, else of its files. Without these, it is the doctor's user,
/// who would start the daemon.
fn user(place: &Place, unit: &unit::Unit, process: Option<&Process>, state: &Path) -> User {
    let of_unit = unit
        .user()
        .and_then(|(name, groups)| Some(User::named(&name)?.with_groups(&groups)));
    let of_process = || process.and_then(|process| process.uid).map(User::of);
    let of_state = || Node::of(state).ok().map(|node| User::of(node.uid));
    let found = of_unit.or_else(of_process).or_else(of_state);
    found.unwrap_or_else(|| place.me.clone())
}

impl Patient<'_> {
    /// Returns true if the daemon is used on this host. That its program is installed is not enough.
    /// `has_left`: files of the daemon exist.
    fn is_used(&self, has_left: bool) -> bool {
        self.is_asked
            || self.unit.is_wanted()
            || self.settings.is_there
            || self.process.is_some()
            || has_left
    }

    /// Findings on the certificate of a server.
    fn server_certificate(&self, name: &str) -> Vec<Finding> {
        let Some(paths) = self.server_files(name) else {
            return Vec::new();
        };
        let files = Files::Server(paths);
        let (found, _) = certificate::read(&files, &self.user, &self.place.me);
        let issue = self.issue(&found.names);
        let now = SystemTime::now();
        certificate::judge(&found, &files, &self.user, issue.as_deref(), now)
            .into_iter()
            .collect()
    }

    /// Finding on a running server: whether it may open enough files for its limit on connections.
    fn descriptors(&self) -> Option<Finding> {
        let process = self.process.as_ref()?;
        let limit = self.settings.number("connections_limit");
        let limit = limit.unwrap_or(CONNECTIONS_LIMIT);
        Some(limits::judge_server(
            process,
            limit,
            self.restore().as_deref(),
        ))
    }

    /// Finding that this host does not use the daemon.
    fn unused(&self) -> Finding {
        let name = self.daemon.program();
        match (&self.program.path, self.daemon) {
            (_, Daemon::Ship) => {
                let found = "this host is not enrolled with a collector: nothing leaves it";
                Finding::of(Message::NotEnrolled, "ship", found)
                    .remedy(self.enrol("https://COLLECTOR:7443"))
            }
            (Some(path), _) => {
                let found = format!("{} is installed, and nothing here uses it", path.display());
                Finding::of(Message::NotUsed, "program", found)
            }
            (None, _) => Finding::of(
                Message::NotUsed,
                "program",
                format!("{name} is not installed"),
            ),
        }
    }

    /// Findings on the program, the unit and the configuration. Also returns true if the program exists and
    /// accepts the configuration.
    fn common(&self) -> (Vec<Finding>, bool) {
        let mut findings = vec![program::judge(
            &self.program,
            self.daemon,
            env!("CARGO_PKG_VERSION"),
        )];
        findings.extend(unit::judge(&self.unit, self.daemon));
        findings.extend(configuration::judge(
            self.place,
            self.daemon,
            &self.settings,
            self.checked.as_ref(),
        ));
        let stops = [
            Message::ProgramMissing,
            Message::ProgramFails,
            Message::ConfigurationWrong,
        ];
        let is_sound = !findings
            .iter()
            .any(|f| f.message.is_some_and(|m| stops.contains(&m)));
        (findings, is_sound)
    }

    /// Finding that the daemon does not run; `None` if the finding on its unit says so already.
    fn running(&self, is_running: bool) -> Option<Finding> {
        let is_told = self.unit.is_loaded() && !self.unit.is_active();
        let found = format!(
            "no {} {} is at work here",
            self.daemon.program(),
            self.daemon.command()
        );
        (!is_running && !is_told)
            .then(|| Finding::of(Message::NotRunning, "running", found).remedy(self.start()))
    }

    /// Command that starts or restarts the daemon.
    fn start(&self) -> String {
        match self.unit.is_loaded() {
            true => format!("sudo systemctl restart {}", self.daemon.unit()),
            false => format!("sudo {}", self.start_by_hand()),
        }
    }

    /// Command line that runs the daemon.
    fn start_by_hand(&self) -> String {
        self.place.line(self.daemon, self.daemon.command())
    }

    /// Command that starts another daemon. If this daemon has a unit, so has the other: their packages are
    /// alike.
    fn start_of(&self, daemon: Daemon) -> String {
        match self.unit.is_loaded() {
            true => format!("sudo systemctl restart {}", daemon.unit()),
            false => format!("sudo {}", self.place.line(daemon, daemon.command())),
        }
    }

    /// Command that shows all drop-ins of the unit, lets the user edit one, and restarts the daemon; `None`
    /// without a unit. Unlike `systemctl revert`, the command removes no changes that the administrator has
    /// made.
    fn restore(&self) -> Option<String> {
        let unit = self.daemon.unit();
        self.unit.is_loaded().then(|| {
            format!(
                "systemctl cat {unit}; sudo systemctl edit {unit} && sudo systemctl restart {unit}"
            )
        })
    }

    fn program_path(&self) -> Option<&Path> {
        self.program.path.as_deref()
    }

    /// Command that issues the next certificate of a server; `None` if the certificate comes from another PKI
    /// than Gleaner's.
    fn issue(&self, names: &[String]) -> Option<String> {
        let pki = self.settings.path("pki")?;
        if self.settings.text("certificate").is_some() {
            return None;
        }
        let names = match names {
            [] => vec!["NAME".to_owned()],
            some => some.to_vec(),
        };
        let (role, file) = match self.daemon {
            Daemon::Recruiter => (format!("--recruiter {}", names.join(" ")), "recruiter"),
            _ => (
                format!("--collector --name {}", names.join(" --name ")),
                "collector",
            ),
        };
        let command = self.place.gleaner(&format!(
            "pki issue {role} -o {} --pki {}",
            quoted(&pki.join(file)),
            quoted(&pki)
        ));
        Some(format!("sudo {command}"))
    }

    /// Command that gets this host its next certificate from the collector at `url`. It stores the
    /// certificate in the place that the agent's configuration names.
    fn enrol(&self, url: &str) -> String {
        format!(
            "sudo {} {url} TOKEN",
            self.place.line(Daemon::Agent, "enroll")
        )
    }

    /// Command that edits the configuration.
    fn edit(&self) -> String {
        format!(
            "sudo ${{EDITOR:-vi}} {}",
            quoted(&self.place.configuration_of(self.daemon))
        )
    }

    /// Finding on whether the daemon may write to the folder.
    fn folder(&self, path: &Path) -> Finding {
        folder::judge(&folder::read(path, &self.user), path, &self.user)
    }

    /// Paths of a server's certificate files; `None` if its configuration does not name them.
    fn server_files(&self, name: &str) -> Option<gleaner_trust::ServerPaths> {
        self.settings.text("listen")?;
        let pki = self.settings.path("pki");
        let in_pki = |file: &str| pki.as_ref().map(|pki| pki.join(file));
        let file = |key: &str, file: &str| self.settings.path(key).or_else(|| in_pki(file));
        Some(gleaner_trust::ServerPaths {
            certificate: file("certificate", &format!("{name}.crt"))?,
            key: file("key", &format!("{name}.key"))?,
            authority: file("authority", "authority.crt")?,
            revocation_list: file("revocation_list", "revoked.crl"),
        })
    }

    /// Address at which a server answers only this machine; `None` if it has no such address. `usual` is the
    /// default.
    fn local(&self, usual: &str) -> Option<String> {
        let local = self
            .settings
            .text("local_listen")
            .unwrap_or_else(|| usual.to_owned());
        (local != "none").then_some(local)
    }
}

/// Folder to which a daemon writes.
fn state(place: &Place, daemon: Daemon, settings: &Settings) -> PathBuf {
    match daemon {
        Daemon::Agent => folder_of(&database(place, settings)),
        Daemon::Ship => enrolled(place, settings),
        Daemon::Collector => settings
            .path("data_folder")
            .unwrap_or_else(|| place.state("collector")),
        Daemon::Memoryd => settings
            .path("state_folder")
            .unwrap_or_else(|| place.state("memoryd")),
        Daemon::Recruiter => place.state("recruiter"),
        // It writes no files: this folder does not exist.
        Daemon::Commons => place.state("commons"),
        Daemon::Clerk => settings
            .path("disk_folder")
            .unwrap_or_else(|| place.state("clerk")),
    }
}

fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).to_owned()
}

/// Path of the agent's trace.
fn database(place: &Place, settings: &Settings) -> PathBuf {
    settings
        .path("database")
        .unwrap_or_else(|| place.state("trace.db"))
}

/// Folder with the files from the enrolment, which shipping and lending use.
fn enrolled(place: &Place, settings: &Settings) -> PathBuf {
    let beside = || database(place, settings).with_file_name("ship");
    settings.path("ship.folder").unwrap_or_else(beside)
}
