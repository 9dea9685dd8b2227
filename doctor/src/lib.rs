//! `gleaner doctor`: what works on this host, what does not, and the command that fixes it.
//!
//! `examine` combines the checks of each daemon; each check in `checks` collects facts and judges them;
//! `message` has all messages other than "ok"; `text` formats the diagnosis for display.
//!
//! Rooms, from the top; each uses only those after it: `args`, `examine`, `checks`, `settings`, `process`, `exchange`,
//! `command`, `place`, `daemon`, `user`, `finding`, `message`, `text`.

mod args;
mod checks;
mod command;
mod daemon;
mod examine;
mod exchange;
mod finding;
mod message;
mod place;
mod process;
mod settings;
mod text;
mod user;

pub use args::Doctor;
use checks::{clock, kernel};
use daemon::Daemon;
use examine::{Examination, examine};
use finding::Finding;
use gleaner_schemas::diagnosis::{Check, CheckState, DIAGNOSIS_VERSION, Diagnosis};
use message::Message;
pub use message::reference;
use place::Place;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
pub use text::text;
use user::User;
pub use user::group_id;

/// Examines this host, or only the daemons that `args` names.
#[must_use]
pub fn diagnose(args: &Doctor) -> Diagnosis {
    let begin = Instant::now();
    let place = Place {
        configuration: args.config_folder.clone(),
        programs: args.programs.clone(),
        proc_root: args.proc_root.clone(),
        sys_root: args.sys_root.clone(),
        me: User::me(),
    };
    let asked = &args.daemons;
    let wanted: Vec<Daemon> = match asked.as_slice() {
        [] => Daemon::ALL.to_vec(),
        some => Daemon::ALL
            .into_iter()
            .filter(|daemon| some.contains(daemon))
            .collect(),
    };
    let mut examined = all(&place, &wanted, asked);
    // Daemons that are not used come last.
    examined.sort_by_key(|examined| !examined.is_used);
    let used: Vec<Daemon> = examined
        .iter()
        .filter(|e| e.is_used)
        .map(|e| e.daemon)
        .collect();
    let is_root = place.me.is_root();
    let of_host = host(&place, &used)
        .into_iter()
        .map(|finding| ("host", finding));
    let of_daemons = examined.into_iter().flat_map(|examined| {
        let name = examined.daemon.name();
        examined
            .findings
            .into_iter()
            .map(move |finding| (name, finding))
    });
    let checks: Vec<Check> = of_host
        .chain(of_daemons)
        .map(|(daemon, finding)| finding.into_check(daemon, is_root))
        .collect();
    let count = |state| checks.iter().filter(|check| check.state == state).count() as u64;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Diagnosis {
        diagnosis_version: DIAGNOSIS_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        time_ms: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
        user: place.me.name,
        duration_ms: u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX),
        ok_count: count(CheckState::Ok),
        warning_count: count(CheckState::Warning),
        fault_count: count(CheckState::Fault),
        not_used_count: count(CheckState::NotUsed),
        checks,
    }
}

/// Examines all daemons at the same time, so that slow daemons do not delay others.
fn all(place: &Place, wanted: &[Daemon], asked: &[Daemon]) -> Vec<Examination> {
    thread::scope(|scope| {
        let each = wanted
            .iter()
            .map(|daemon| scope.spawn(move || examine(place, *daemon, asked.contains(daemon))));
        let each: Vec<_> = each.collect();
        each.into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    })
}

/// Findings on the host as a whole.
fn host(place: &Place, used: &[Daemon]) -> Vec<Finding> {
    let mut findings = kernel::judge(&kernel::read(place), used);
    findings.push(clock::judge(
        clock::read(),
        place.program("timedatectl").is_some() && place.has_systemd(),
    ));
    if !place.has_systemd() && !used.is_empty() {
        findings.push(Finding::of(
            Message::NoSystemd,
            "units",
            "systemd does not run this host: units were not looked at",
        ));
    }
    findings
}
