//! Tests of the folder of weekly reports and of its index.

use super::{fortnight, made, names, report, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn into(folder: &Path, week: &str, args: &[&str]) -> Command {
    let mut command = report(fortnight(), &["--week", week]);
    command.arg("--folder").arg(folder).args(args);
    command
}

/// Names of the weeks in the index, in its order.
fn listed(folder: &Path) -> Vec<String> {
    let index = text(folder.join("index.html"));
    let links = index.split("<h2><a href=\"").skip(1);
    links
        .map(|link| link.split_once(".html\"").unwrap().0.to_owned())
        .collect()
}

const WEEK: [&str; 5] = [
    "2026-W47-tables",
    "2026-W47.html",
    "2026-W47.json",
    "2026-W47.md",
    "2026-W47.summary.json",
];

/// Weekly reports contain names of hosts and users. Other local users must not be able to read any of them,
/// whatever the umask is.
#[test]
fn other_users_do_not_read_the_weeks() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("reports");
    made(into(&folder, "2026-W47", &[]).output().unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder) & 0o027, 0);
    let tables = folder.join("2026-W47-tables");
    for folder in [&folder, &tables] {
        for name in names(folder) {
            let path = folder.join(name);
            assert_eq!(
                mode(&path) & 0o027,
                0,
                "{} {:o}",
                path.display(),
                mode(&path)
            );
        }
    }
}

#[test]
fn weeks_are_listed_newest_first_and_made_again_in_place() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("reports");
    made(into(&folder, "2026-W47", &[]).output().unwrap());
    assert_eq!(listed(&folder), ["2026-W47"]);
    assert_eq!(
        names(&folder),
        [&[".lock"][..], &WEEK[..], &["index.html"][..]].concat()
    );
    made(into(&folder, "2026-W46", &[]).output().unwrap());
    assert_eq!(listed(&folder), ["2026-W47", "2026-W46"]);
    let index = text(folder.join("index.html"));
    assert!(
        index.contains("Week 47 of 2026: ") && index.contains("of these 4 hosts"),
        "{index}"
    );
    for href in index
        .split("href=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0)
    {
        let is_elsewhere = href.starts_with('#') || href.starts_with("data:");
        assert!(
            is_elsewhere || folder.join(href).exists(),
            "{href} leads nowhere"
        );
    }
    let (before, names_before) = (index, names(&folder));
    made(into(&folder, "2026-W47", &[]).output().unwrap());
    assert_eq!(text(folder.join("index.html")), before);
    assert_eq!(names(&folder), names_before);
}

#[test]
fn two_at_once_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let weeks = ["2026-W46", "2026-W47", "2026-W47"];
    let running: Vec<_> = weeks
        .iter()
        .map(|week| {
            into(folder.path(), week, &[])
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for process in running {
        made(process.wait_with_output().unwrap());
    }
    assert_eq!(listed(folder.path()), ["2026-W47", "2026-W46"]);
    assert!(
        names(folder.path())
            .iter()
            .all(|name| !name.starts_with(".gleaner-new-"))
    );
}

#[test]
fn what_was_killed_leaves_nothing_half() {
    let folder = tempfile::tempdir().unwrap();
    made(into(folder.path(), "2026-W46", &[]).output().unwrap());
    fs::remove_file(folder.path().join(".lock")).unwrap();
    let mut killed = into(folder.path(), "2026-W47", &[])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Wait until the command is writing files, and kill it then.
    let deadline = Instant::now() + Duration::from_secs(300);
    let is_new = |name: &String| name.starts_with(".gleaner-new-");
    while !names(folder.path()).iter().any(is_new) {
        assert!(Instant::now() < deadline && killed.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    for name in names(folder.path())
        .iter()
        .filter(|name| !name.starts_with('.'))
    {
        let path = folder.path().join(name);
        if name.ends_with(".html") {
            assert!(text(&path).trim_end().ends_with("</html>"), "{name} is cut");
        } else if name.ends_with(".json") {
            super::json(&path);
        }
    }
    for week in listed(folder.path()) {
        assert!(
            folder.path().join(format!("{week}.html")).exists(),
            "{week}"
        );
    }
    // A killed run may leave such a file. The next run removes it.
    fs::write(folder.path().join(".gleaner-new-1"), "<html>").unwrap();
    made(into(folder.path(), "2026-W47", &[]).output().unwrap());
    assert_eq!(listed(folder.path()), ["2026-W47", "2026-W46"]);
    assert!(
        names(folder.path())
            .iter()
            .all(|name| !name.starts_with(".gleaner-new-"))
    );
}

#[test]
fn old_weeks_go_when_asked_and_what_is_not_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.html"), "years of work").unwrap();
    fs::write(folder.path().join("2026-W99.summary.json"), "no week").unwrap();
    fs::write(folder.path().join("2026-W45.summary.json"), "{ torn").unwrap();
    made(into(folder.path(), "2026-W46", &[]).output().unwrap());
    let output = made(into(folder.path(), "2026-W47", &[]).output().unwrap());
    let said = super::said(&output);
    assert!(
        said.contains("2026-W45.summary.json is left out of the index"),
        "{said}"
    );
    assert_eq!(listed(folder.path()), ["2026-W47", "2026-W46"]);
    made(
        into(folder.path(), "2026-W47", &["--keep", "1"])
            .output()
            .unwrap(),
    );
    assert_eq!(listed(folder.path()), ["2026-W47"]);
    let kept = [
        &[".lock"][..],
        &WEEK[..],
        &["2026-W99.summary.json", "index.html", "thesis.html"][..],
    ];
    assert_eq!(names(folder.path()), kept.concat());
}

#[test]
fn nothing_to_report_changes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("reports");
    let output = into(&folder, "2026-W40", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(!folder.exists());
}
