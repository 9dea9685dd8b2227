//! `gleaner pki`: a deployment's certificates, made with the built command.

use gleaner_tests::program;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const HOST: &str = "0123456789abcdef0123456789abcdef";

/// Runs `gleaner pki` with these arguments in `folder`. The authority is in `folder/pki`.
fn pki(folder: &Path, args: &[&str]) -> Output {
    Command::new(program("gleaner").unwrap())
        .arg("pki")
        .args(args)
        .env("GLEANER_PKI", "pki")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn good(folder: &Path, args: &[&str]) -> String {
    let output = pki(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&good(folder, args)).unwrap()
}

/// Folder of a new deployment, with the collector's certificate.
fn deployment() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    good(folder.path(), &["init", "--name", "collector.example"]);
    folder
}

#[test]
fn init_makes_what_the_collector_needs_and_says_what_is_next() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let names = ["--name", "collector.example", "--name", "10.0.0.5"];
    let said = good(folder, &[&["init"][..], &names].concat());
    for next in ["pki = \"/", "gleaner pki token --pki /", "authority.key"] {
        assert!(said.contains(next), "{next}: {said}");
    }
    let mode = |name: &str| {
        fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("pki"), 0o700);
    assert_eq!(mode("pki/authority.key"), 0o600);
    assert_eq!(mode("pki/collector.key"), 0o600);
    // OpenSSL verifies the collector's certificate for each of its names.
    let name = |option: &str, name: &str| {
        let output = Command::new("openssl")
            .args(["verify", "-crl_check", "-purpose", "sslserver"])
            .args([
                "-CAfile",
                "pki/authority.crt",
                "-CRLfile",
                "pki/revoked.crl",
            ])
            .args([option, name, "pki/collector.crt"])
            .current_dir(folder)
            .output()
            .expect("this test needs the openssl program (Debian: apt install openssl)");
        output.status.success()
    };
    assert!(name("-verify_hostname", "collector.example"));
    assert!(name("-verify_ip", "10.0.0.5"));
    assert!(!name("-verify_hostname", "other.example"));
}

#[test]
fn what_is_issued_is_listed_until_it_is_revoked() {
    let folder = deployment();
    let folder = folder.path();
    good(folder, &["issue", "--reader", "ada", "-o", "ada.lab"]);
    assert!(folder.join("ada.lab.key").exists());
    good(folder, &["issue", "--client", "pager", "-o", "pager"]);
    good(folder, &["issue", "--admin", "grace", "-o", "grace"]);
    let recruiter = ["recruiter.example", "10.0.0.6"];
    let recruiter = [
        "issue",
        "-o",
        "r",
        "--recruiter",
        recruiter[0],
        recruiter[1],
    ];
    good(folder, &recruiter);
    let issued = json(folder, &["issue", "--host", HOST, "-o", "host", "--json"]);
    let (serial, until) = (
        &issued["serial"],
        issued["expiry_time_ms"].as_i64().unwrap(),
    );
    let listed = json(folder, &["list", "--json"]);
    let listed = listed.as_array().unwrap();
    let find = |rows: &[Value], name: &str| {
        let row = rows.iter().find(|r| r["name"] == name);
        row.cloned().unwrap_or_else(|| panic!("{name}: {rows:?}"))
    };
    assert_eq!(listed.len(), 6);
    assert_eq!(find(listed, "collector.example")["role"], "collector");
    assert_eq!(find(listed, "ada")["role"], "reader");
    assert_eq!(find(listed, "pager")["role"], "client");
    assert_eq!(find(listed, "grace")["role"], "admin");
    assert_eq!(
        find(listed, "recruiter.example 10.0.0.6")["role"],
        "recruiter"
    );
    let host = find(listed, HOST);
    assert_eq!((&host["serial"], &host["state"]), (serial, &"valid".into()));
    assert_eq!(host["expiry_time_ms"].as_i64(), Some(until));
    let lines = good(folder, &["list"]);
    assert_eq!(lines.lines().count(), 7, "{lines}");

    let said = good(folder, &["revoke", "host.crt"]);
    assert!(
        said.contains(HOST) && said.contains(serial.as_str().unwrap()),
        "{said}"
    );
    let again = good(folder, &["revoke", HOST]);
    assert!(again.contains("nothing changed"), "{again}");
    let said = good(folder, &["revoke", "pki/collector.crt"]);
    assert!(said.contains("new authority"), "{said}");
    let revoked = json(folder, &["revoke", "ada", "--json"]);
    assert_eq!(revoked[0]["state"], "revoked");
    let listed = json(folder, &["list", "--json"]);
    let states = |name: &str| find(listed.as_array().unwrap(), name)["state"].clone();
    assert_eq!(states(HOST), "revoked");
    assert_eq!(states("ada"), "revoked");
    let token = pki(folder, &["token"]);
    assert_eq!(token.status.code(), Some(1));
    let said = String::from_utf8_lossy(&token.stderr).into_owned();
    assert!(said.contains("--collector"), "{said}");
}

#[test]
fn a_token_comes_with_the_command_to_run() {
    let folder = deployment();
    let folder = folder.path();
    let said = good(folder, &["token"]);
    let start = "gleaner-agent enroll https://collector.example:7443 ";
    let token = said.lines().next().unwrap().strip_prefix(start).unwrap();
    assert_eq!(token.len(), 32 + 1 + 64, "{token}");
    let made = json(
        folder,
        &[
            "token",
            "--json",
            "--host",
            HOST,
            "--valid",
            "30m",
            "--collector",
            "https://[::1]:1/",
        ],
    );
    assert_eq!(made["host"], HOST);
    let command = made["command"].as_str().unwrap();
    let token = made["token"].as_str().unwrap();
    assert_eq!(
        command,
        format!("gleaner-agent enroll https://[::1]:1 {token}")
    );
    // The secret part of the token must not be stored in the authority's folder.
    let secret = token.split('.').next().unwrap();
    for entry in fs::read_dir(folder.join("pki/tokens")).unwrap() {
        assert!(
            !fs::read_to_string(entry.unwrap().path())
                .unwrap()
                .contains(secret)
        );
    }
}

#[test]
fn of_two_inits_at_once_one_makes_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let ends: Vec<Output> = std::thread::scope(|s| {
        let init = || pki(folder.path(), &["init", "--name", "localhost"]);
        let both = [s.spawn(init), s.spawn(init)];
        both.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let codes: Vec<_> = ends.iter().map(|o| o.status.code().unwrap()).collect();
    assert!(codes == [0, 1] || codes == [1, 0], "{ends:?}");
    good(folder.path(), &["issue", "--reader", "ada", "-o", "ada"]);
}

#[test]
fn refusals_say_what_to_do() {
    let folder = deployment();
    let folder = folder.path();
    for (args, code, words) in [
        (&["init", "--name", "x"][..], 1, "already"),
        (&["init", "elsewhere", "--name", "a b"], 1, "DNS name"),
        (&["list", "--pki", "nowhere"], 1, "gleaner pki init"),
        (&["revoke", "nobody"], 1, "gleaner pki list"),
        (
            &["issue", "--host", "h1", "-o", "x"],
            1,
            "32 lower-case hex digits",
        ),
        (&["token", "--host", "h1"], 1, "32 lower-case hex digits"),
        (
            &["issue", "--reader", "../x", "-o", "x"],
            1,
            "reader's name",
        ),
        (&["issue", "-o", "x"], 2, "--reader"),
        (&["issue", "--collector", "-o", "x"], 2, "--name"),
        (
            &["issue", "--reader", "a", "--name", "b", "-o", "x"],
            2,
            "--name",
        ),
        (
            &["issue", "--reader", "a", "--host", HOST, "-o", "x"],
            2,
            "--host",
        ),
        (
            &["issue", "--reader", "a", "--days", "0", "-o", "x"],
            2,
            "--days",
        ),
        (&["token", "--valid", "0s"], 2, "up to a year"),
        (&["init"], 2, "--name"),
    ] {
        let output = pki(folder, args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(code == 2 || said.lines().count() == 1, "{said}");
    }
    assert!(!folder.join("elsewhere").exists());
    assert!(!folder.join("x.key").exists());
}

#[test]
fn every_command_has_help_with_examples() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["init", "issue", "token", "revoke", "list"] {
        let help = good(folder.path(), &[command, "--help"]);
        assert!(
            help.contains("Examples") && help.contains("--json"),
            "{help}"
        );
    }
}
