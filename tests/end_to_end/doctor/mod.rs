//! `gleaner doctor` examines daemons that the test breaks, one fault at a time. It must name the fault, and
//! its command must fix the fault.

mod clinic;
mod disks;

use crate::delivery::running::{Running, wait_for};
use clinic::{Clinic, DAY, Diagnosis, free_port, shell};
use gleaner_tests::program;
use gleaner_trust::{Authority, Role, Validity};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

const ALL: [&str; 3] = ["agent", "ship", "collector"];

#[test]
fn certificates_and_the_way_to_the_collector() {
    let mut clinic = Clinic::start();
    clinic.is_well(&ALL);
    let host_id = gleaner_trust::this_host_id().unwrap();
    let enrol = |remedy: &str| remedy.replace("TOKEN", &clinic.token(Some(&host_id)));

    // Fault: the host's certificate has expired, as it does during a long absence.
    clinic.replace_host_certificate(&host_id, 90, 2);
    let found = clinic.finds(
        &ALL,
        &[("ship", "certificate-expired"), ("ship", "host-refused")],
    );
    assert!(
        found.find("ship", "certificate-expired")["finding"]
            .as_str()
            .unwrap()
            .contains("has ended 2 d")
    );
    clinic.applies(&enrol(&found.remedy("ship", "certificate-expired")));
    clinic.is_well(&ALL);

    // Fault: the agent trusts another deployment's authority.
    let authority = clinic.path("trace/ship/authority.crt");
    Authority::init(&clinic.path("other"), "other", 10).unwrap();
    fs::copy(clinic.path("other/authority.crt"), &authority).unwrap();
    let found = clinic.finds(&["ship"], &[("ship", "authority-other")]);
    clinic.applies(&enrol(&found.remedy("ship", "authority-other")));
    clinic.is_well(&ALL);

    // Fault: the collector's certificate has expired. Both ends report it; it is fixed on the server.
    let now = SystemTime::now();
    let names = vec!["127.0.0.1".to_owned()];
    let validity = Validity {
        from: now - DAY * 365,
        until: now - DAY,
    };
    let issued = clinic
        .authority
        .issue_for(&Role::Collector { names }, &validity)
        .unwrap();
    issued
        .write(
            &clinic.path("pki/collector.crt"),
            &clinic.path("pki/collector.key"),
        )
        .unwrap();
    wait_for("the collector to take it up", || {
        clinic
            .diagnose(&["ship"])
            .faults()
            .iter()
            .any(|(_, code)| code == "server-expired")
    });
    let found = clinic.diagnose(&["collector"]);
    clinic.applies(&found.remedy("collector", "certificate-expired"));
    clinic.is_well(&ALL);

    // Fault: everybody can read the authority's key.
    let key = clinic.path("pki/authority.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let found = clinic.finds(&["collector"], &[("collector", "key-open")]);
    clinic.applies(&found.remedy("collector", "key-open"));
    clinic.is_well(&["collector"]);

    // Fault: the collector does not run. The doctor's command starts it.
    clinic.collector.take().unwrap().kill();
    let found = clinic.finds(
        &ALL,
        &[("ship", "connection-refused"), ("collector", "not-running")],
    );
    let start = found.remedy("collector", "not-running");
    clinic.collector = Some(Running::start(&mut shell(&format!("exec {start}"))));
    clinic.is_well(&ALL);
}

#[test]
fn the_agent_and_what_it_says_of_itself() {
    let mut clinic = Clinic::start();
    clinic.is_well(&ALL);

    // Fault: the agent does not run. The doctor's command starts it.
    clinic.agent.take().unwrap().end();
    wait_for("the newest sample to be old", || {
        !clinic.diagnose(&["agent"]).faults().is_empty()
    });
    let found = clinic.finds(
        &["agent"],
        &[("agent", "not-running"), ("agent", "trace-old")],
    );
    let start = found.remedy("agent", "trace-old");
    clinic.agent = Some(Running::start(&mut shell(&format!("exec {start}"))));
    clinic.is_well(&["agent"]);

    // Fault: the shipper does not run.
    clinic.shipper.take().unwrap().end();
    clinic.finds(&["ship"], &[("ship", "not-running")]);

    // Warning: every user can read the trace.
    let trace = clinic.path("trace/trace.db");
    fs::set_permissions(&trace, fs::Permissions::from_mode(0o644)).unwrap();
    let found = clinic.diagnose(&["agent"]);
    clinic.applies(&found.remedy("agent", "trace-open"));
    assert_eq!(
        fs::metadata(&trace).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn another_user_sees_less_and_is_told_so() {
    let clinic = Clinic::start();
    clinic.is_well(&ALL);
    // The programs are copied to a folder that another user can read, since the build's target folder may be
    // closed to them.
    let programs = clinic.path("bin");
    fs::create_dir(&programs).unwrap();
    for name in ["gleaner", "gleaner-agent", "gleaner-collector"] {
        fs::copy(program(name).unwrap(), programs.join(name)).unwrap();
    }
    let as_nobody = |more: &[&str]| {
        let mut doctor = Command::new("setpriv");
        doctor.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
        doctor
            .arg(programs.join("gleaner"))
            .arg("doctor")
            .args(ALL)
            .args(more);
        doctor
            .arg("--config-folder")
            .arg(clinic.path("etc"))
            .arg("--programs")
            .arg(&programs);
        doctor
    };
    let found = Diagnosis::of(&mut as_nobody(&["--json"]));
    assert_eq!(found.faults(), [], "{:#}", found.0);
    assert_eq!(
        found.remedy("agent", "trace-unseen"),
        "sudo gleaner doctor agent"
    );
    for (daemon, code) in [
        ("agent", "socket-denied"),
        ("ship", "certificate-unseen"),
        ("collector", "certificate-unseen"),
    ] {
        found.find(daemon, code);
    }
    let text = String::from_utf8(as_nobody(&[]).output().unwrap().stdout).unwrap();
    assert!(
        text.contains("Seen as nobody: `sudo gleaner doctor` sees more."),
        "{text}"
    );
}

/// Creates a program that imitates the service manager, or a daemon's `check-config`.
fn stand_in(folder: &Path, name: &str, script: &str) {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_the_service_manager_and_the_configuration_say() {
    let clinic = Clinic::start();
    let programs = clinic.path("bin");
    fs::create_dir(&programs).unwrap();
    let agent = program("gleaner-agent").unwrap();
    let file = clinic.configuration("agent.toml");
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("intervall = \"90s\"\n{good}")).unwrap();
    let found = clinic.finds(&["agent"], &[("agent", "configuration-wrong")]);
    let fault = found.find("agent", "configuration-wrong");
    let said = fault["finding"].as_str().unwrap();
    assert!(
        said.contains("agent.toml, line 1") && said.contains("intervall"),
        "{said}"
    );
    assert!(
        fault["remedy"]
            .as_str()
            .unwrap()
            .ends_with("etc/agent.toml"),
        "{fault}"
    );
    fs::write(&file, good).unwrap();
    clinic.is_well(&["agent"]);

    // Fault: systemd runs the agent as a user who may not write to the agent's folder.
    std::os::unix::fs::symlink(&agent, programs.join("gleaner-agent")).unwrap();
    let unit = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nUser=nobody";
    stand_in(&programs, "systemctl", &format!("cat <<'END'\n{unit}\nEND"));
    let found = clinic.finds_with(&programs, &["agent"], &[("agent", "folder-unwritable")]);
    clinic.applies(&found.remedy("agent", "folder-unwritable"));
    clinic.finds_with(&programs, &["agent"], &[]);

    // A unit that has failed is a fault; a systemd that does not answer is a warning.
    let failed = "LoadState=loaded\nActiveState=failed\nResult=exit-code\nStateChangeTimestamp=Mon 2026-11-16 07:00:00 UTC";
    stand_in(
        &programs,
        "systemctl",
        &format!("cat <<'END'\n{failed}\nEND"),
    );
    let found = clinic.diagnose_with(&programs, &["agent"]);
    assert_eq!(
        found.find("agent", "unit-failed")["finding"],
        "gleaner-agent.service has failed since Mon 2026-11-16 07:00:00 UTC: exit-code"
    );
    stand_in(
        &programs,
        "systemctl",
        "echo 'Failed to connect to bus' >&2; exit 1",
    );
    let found = clinic.diagnose_with(&programs, &["agent"]);
    found.find("agent", "systemd-silent");

    // Warning: the agent's program has another version than `gleaner`.
    fs::remove_file(programs.join("systemctl")).unwrap();
    fs::remove_file(programs.join("gleaner-agent")).unwrap();
    stand_in(&programs, "gleaner-agent", "echo gleaner-agent 0.0.9");
    clinic
        .diagnose_with(&programs, &["agent"])
        .find("agent", "program-version");
}

#[test]
fn memory_servers_and_recruiters() {
    let mut clinic = Clinic::start();
    let port = free_port();
    fs::write(
        clinic.configuration("recruiter.toml"),
        format!("local_listen = \"127.0.0.1:{port}\"\nlocal_access = \"all\"\n"),
    )
    .unwrap();
    let text = format!(
        "agent_socket = {:?}\nsocket = {:?}\nstate_folder = {:?}\nrecruiters = [\"http://127.0.0.1:{port}\"]\n",
        clinic.path("agent.sock"),
        clinic.path("memoryd.sock"),
        clinic.path("memoryd")
    );
    fs::write(clinic.configuration("memoryd.toml"), text).unwrap();
    let recruiter = clinic.run(
        "gleaner-recruiter",
        "recruiter.toml",
        "run",
        "listening on http:",
    );
    let configuration = clinic.configuration("memoryd.toml");
    let run_memoryd = || {
        let mut memoryd = Command::new(program("gleaner-memoryd").unwrap());
        Running::start(memoryd.arg("run").arg("--config").arg(&configuration))
    };
    let memoryd = run_memoryd();
    // Fault: the memory server grants leases, but clients cannot reach their pages.
    let found = clinic.finds(
        &["agent", "recruiter", "memoryd"],
        &[("memoryd", "pages-unserved")],
    );
    let remedy = found.remedy("memoryd", "pages-unserved");
    let (write, _starts_it_anew) = remedy.rsplit_once(" && ").unwrap();
    clinic.applies(&write.replace(":10809", &format!(":{}", free_port())));
    assert_eq!(memoryd.end().0, Some(0));
    let memoryd = run_memoryd();
    clinic.is_well(&["agent", "recruiter", "memoryd"]);

    recruiter.kill();
    wait_for("the link to be missed", || {
        let faults = clinic.diagnose(&["memoryd"]).faults();
        faults.iter().any(|(_, code)| code == "recruiter-unlinked")
    });
    let found = clinic.finds(
        &["memoryd", "recruiter"],
        &[
            ("recruiter", "not-running"),
            ("memoryd", "recruiter-unlinked"),
            ("memoryd", "connection-refused"),
        ],
    );
    let start = found.remedy("recruiter", "not-running");
    let recruiter = Running::start(&mut shell(&format!("exec {start}")));
    clinic.is_well(&["recruiter", "memoryd"]);

    clinic.agent.take().unwrap().end();
    wait_for("the agent to be missed", || {
        let faults = clinic.diagnose(&["memoryd"]).faults();
        faults.iter().any(|(_, code)| code == "agent-unheard")
    });
    let start = clinic
        .diagnose(&["memoryd"])
        .remedy("memoryd", "agent-unheard");
    clinic.agent = Some(Running::start(&mut shell(&format!("exec {start}"))));
    clinic.is_well(&["agent", "recruiter", "memoryd"]);
    assert_eq!(memoryd.end().0, Some(0));
    recruiter.kill();
}

#[test]
fn hosts_without_any_daemon_and_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |arguments: &[&str]| {
        let mut doctor = Command::new(program("gleaner").unwrap());
        doctor
            .arg("doctor")
            .args(arguments)
            .env("COLUMNS", "80")
            .env("XDG_STATE_HOME", folder.path());
        doctor.output().unwrap()
    };
    assert_eq!(doctor(&["smith"]).status.code(), Some(2));
    // The configuration names an address on which no recruiter listens.
    let file = folder.path().join("recruiter.toml");
    fs::write(
        file,
        format!("local_listen = \"127.0.0.1:{}\"\n", free_port()),
    )
    .unwrap();
    let config = folder.path().to_str().unwrap();
    let output = doctor(&["recruiter", "--config-folder", config]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("[not-running]") && !text.contains('\u{1b}'),
        "{text}"
    );
    let is_command = |line: &&str| line.trim_start().starts_with("remedy: ");
    let wide = text
        .lines()
        .filter(|line| !is_command(line))
        .find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text}");
    let messages = String::from_utf8(doctor(&["--messages"]).stdout).unwrap();
    assert!(messages.contains("### certificate-expired\n"));
}
