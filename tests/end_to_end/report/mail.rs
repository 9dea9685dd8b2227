//! Tests of the messages that are passed to the local mail system. tests/readers/test_report.py tests whether
//! other programs can read them.

use super::{fortnight, made, report, said, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Creates a fake sendmail, which stores its arguments in the file `args` and its input in `message`; returns
/// its path.
fn sendmail(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("sendmail");
    let here = folder.display();
    fs::write(
        &path,
        format!("#!/bin/sh\necho \"$@\" >'{here}/args'\n{script} >'{here}/message'\n"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Names and values of the header fields of a message. Fields that were folded into several lines are joined.
fn header(message: &str) -> Vec<(String, String)> {
    let (header, _) = message.split_once("\r\n\r\n").unwrap();
    let unfolded = header.replace("\r\n ", " ").replace("\r\n\t", " ");
    let fields = unfolded
        .split("\r\n")
        .map(|line| line.split_once(": ").unwrap());
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn value<'a>(header: &'a [(String, String)], name: &str) -> &'a str {
    let mut found = header.iter().filter(|(n, _)| n == name);
    let (Some((_, value)), None) = (found.next(), found.next()) else {
        panic!("{name} is not there once: {header:?}");
    };
    value
}

#[test]
fn one_message_has_the_short_form_and_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--week",
        "2026-W47",
        "--mail",
        "Lab <lab@example.org>",
        "--mail",
        "root@example.org",
    ];
    let mut command = report(fortnight(), &args);
    command.args([
        "--mail-from",
        "gleaner@example.org",
        "--title",
        "Lab 2\r\nBcc: evil@example.org",
        "-o",
        "-",
    ]);
    made(
        command
            .arg("--sendmail")
            .arg(sendmail(folder.path(), "cat"))
            .output()
            .unwrap(),
    );
    assert_eq!(text(folder.path().join("args")).trim(), "-t -i");
    let message = text(folder.path().join("message"));
    let header = header(&message);
    assert_eq!(value(&header, "From"), "gleaner@example.org");
    assert_eq!(
        value(&header, "To"),
        "Lab <lab@example.org>, root@example.org"
    );
    assert_eq!(value(&header, "Auto-Submitted"), "auto-generated");
    assert!(
        value(&header, "Subject").contains("Week 47 of 2026"),
        "{header:?}"
    );
    assert!(
        header.iter().all(|(name, _)| name != "Bcc" && name != "Cc"),
        "{header:?}"
    );
    assert!(message.contains("filename=\"2026-W47.html\""));
    assert!(
        message.lines().all(|line| line.len() < 998),
        "RFC 5322, 2.1.1"
    );
}

#[test]
fn a_page_too_large_is_linked_instead() {
    let folder = tempfile::tempdir().unwrap();
    let program = sendmail(folder.path(), "cat");
    let mailed = |args: &[&str]| {
        let mut command = report(
            fortnight(),
            &["--week", "2026-W47", "--mail", "lab@example.org"],
        );
        command
            .args(["--mail-from", "gleaner@example.org", "--mail-limit", "1MiB"])
            .args(args);
        made(
            command
                .arg("--sendmail")
                .arg(&program)
                .current_dir(folder.path())
                .output()
                .unwrap(),
        );
        let message = text(folder.path().join("message"));
        assert!(!message.contains("filename=") && message.len() < 200_000);
        // Join the lines that quoted-printable has folded.
        message.replace("=\r\n", "")
    };
    let reports = folder.path().join("reports");
    let into = ["--folder", reports.to_str().unwrap()];
    let linked = mailed(
        &[
            &into[..],
            &["--mail-link", "https://lab.example.org/reports/"],
        ]
        .concat(),
    );
    assert!(
        linked.contains("https://lab.example.org/reports/2026-W47.html\r\n"),
        "{linked}"
    );
    let place = mailed(&into);
    assert!(
        place.contains(reports.join("2026-W47.html").to_str().unwrap()),
        "{place}"
    );
}

#[test]
fn a_mail_system_that_refuses_is_told_and_the_page_stays() {
    let folder = tempfile::tempdir().unwrap();
    // This sendmail fails without reading its input. The report's error must be sendmail's, and not the
    // broken pipe.
    let refuses = sendmail(folder.path(), "echo 'no such user' >&2; exit 67");
    let with = |sendmail: &Path| {
        let args = [
            "--week",
            "2026-W47",
            "--mail",
            "lab@example.org",
            "--mail-from",
            "gleaner@example.org",
        ];
        let mut command = report(fortnight(), &args);
        command
            .arg("--sendmail")
            .arg(sendmail)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let refused = with(&refuses);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("no such user") && said(&refused).contains("67"),
        "{}",
        said(&refused)
    );
    assert!(folder.path().join("2026-W47.html").exists());
    let missing = with(Path::new("/nowhere/sendmail"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(said(&missing).contains("--sendmail"), "{}", said(&missing));
}

#[test]
fn a_test_message_needs_no_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let program = sendmail(folder.path(), "cat");
    let mut command = super::gleaner();
    command.args([
        "report",
        "--mail-test",
        "--mail",
        "lab@example.org",
        "--mail-from",
        "gleaner@example.org",
        "--sendmail",
    ]);
    let output = super::made(
        command
            .arg(&program)
            .current_dir(folder.path())
            .output()
            .unwrap(),
    );
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        told,
        format!(
            "{} took a test message for lab@example.org\n",
            program.display()
        )
    );
    let message = super::text(folder.path().join("message"));
    for wanted in [
        "To: lab@example.org",
        "From: gleaner@example.org",
        "Subject: Gleaner: a test message",
        "Mail from this machine arrives.",
    ] {
        assert!(message.contains(wanted), "no {wanted} in\n{message}");
    }
    // `--mail-test` without a recipient is a wrong usage.
    let alone = super::gleaner()
        .args(["report", "--mail-test"])
        .output()
        .unwrap();
    assert_eq!(alone.status.code(), Some(2), "{}", super::said(&alone));
}
