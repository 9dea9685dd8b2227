//! Tests of reports by sites: a page for each site, and a page of all hosts.

use super::{fortnight, gleaner, json, made, names, report, said, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const WEEK: [&str; 2] = ["--week", "2026-W47"];

/// Names of the four hosts, in the order of their ids.
fn hosts() -> &'static [String] {
    static HOSTS: OnceLock<Vec<String>> = OnceLock::new();
    HOSTS.get_or_init(|| {
        let mut command = gleaner();
        let analyze = command.arg("analyze").arg(fortnight());
        let output = made(
            analyze
                .args(["--json", "--measure", "hosts"])
                .output()
                .unwrap(),
        );
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hosts = found["hosts"].as_array().unwrap().iter();
        hosts
            .map(|host| host["host_name"].as_str().unwrap().to_owned())
            .collect()
    })
}

/// File in which the first and the third host are at `quay`, and the second is at `yard`.
fn sites(folder: &Path) -> PathBuf {
    let [first, second, third, _] = hosts() else {
        panic!("{:?}", hosts());
    };
    let path = folder.join("sites.toml");
    let text = format!("yard = [{second:?}]\nquay = [{first:?}, {third:?}]\n");
    fs::write(&path, text).unwrap();
    path
}

/// Writes the page `NAME.html` with companions, by the sites of [`sites`].
#[track_caller]
fn page_by_sites(folder: &Path, name: &str, args: &[&str]) -> PathBuf {
    let page = folder.join(name);
    let mut command = report(fortnight(), &WEEK);
    command.args(["--also", "md,csv,json", "-o"]).arg(&page);
    command.arg("--sites").arg(sites(folder)).args(args);
    made(command.output().unwrap());
    page
}

/// Tables of a JSON companion, without these.
fn tables(document: &Value, without: &str) -> Map<String, Value> {
    let mut tables = document["tables"].as_object().unwrap().clone();
    assert!(tables.remove(without).is_some(), "{without}");
    tables
}

/// Answers of a JSON companion, without the section `without`.
fn answers<'a>(document: &'a Value, without: &str) -> Vec<(&'a str, &'a str)> {
    let answers = document["answers"].as_array().unwrap().iter();
    let told = |answer: &'a Value, member: &str| answer[member].as_str().unwrap();
    let told = answers.map(|answer| (told(answer, "id"), told(answer, "answer")));
    told.filter(|(id, _)| *id != without).collect()
}

#[test]
fn the_page_of_all_hosts_has_the_figures_of_the_report_on_all_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let fleet = page_by_sites(folder.path(), "fleet.html", &[]);
    let whole = folder.path().join("whole.html");
    let args = ["--also", "md,csv,json", "-o"];
    made(
        report(fortnight(), &WEEK)
            .args(args)
            .arg(&whole)
            .output()
            .unwrap(),
    );
    let [fleet_json, whole_json] =
        ["fleet.json", "whole.json"].map(|n| json(folder.path().join(n)));
    for member in ["title", "subject", "period", "lead", "support"] {
        assert_eq!(fleet_json[member], whole_json[member], "{member}");
    }
    assert_eq!(
        answers(&fleet_json, "sites"),
        answers(&whole_json, "each-host")
    );
    let (of_fleet, of_whole) = (
        tables(&fleet_json, "sites-table"),
        tables(&whole_json, "hosts"),
    );
    for (name, table) in &of_whole {
        assert_eq!(Some(table), of_fleet.get(name), "{name}");
    }
    assert_eq!(of_fleet.len(), of_whole.len());

    // Pages of hosts are in the pages of sites only, and hosts' names lead there.
    let (fleet, whole) = (text(fleet), text(whole));
    assert!(whole.contains("data-page=\"host-") && !fleet.contains("data-page="));
    let first = &hosts()[0];
    let address = format!("href=\"fleet-sites/quay.html#host-{first}\"");
    assert!(fleet.contains(&address), "{address}");
    assert!(text(folder.path().join("fleet.md")).contains("| quay |"));
}

#[test]
fn each_site_has_its_own_report() {
    let folder = tempfile::tempdir().unwrap();
    page_by_sites(folder.path(), "fleet.html", &[]);
    let sites = folder.path().join("fleet-sites");
    let of_site = |name: &str, suffix: &str| format!("{name}{suffix}");
    let expected = ["other", "quay", "yard"]
        .iter()
        .flat_map(|site| ["-tables", ".html", ".json", ".md"].map(|s| of_site(site, s)));
    let expected: BTreeSet<String> = expected.collect();
    assert_eq!(names(&sites), expected.into_iter().collect::<Vec<_>>());
    let quay = json(sites.join("quay.json"));
    assert_eq!(quay["title"], "Memory of 2 hosts at quay");
    let covered = quay["tables"]["coverage"]["rows"].as_array().unwrap();
    let covered: BTreeSet<&str> = covered
        .iter()
        .map(|r| r["host"].as_str().unwrap())
        .collect();
    let [first, _, third, _] = hosts() else {
        panic!("{:?}", hosts());
    };
    assert_eq!(covered, BTreeSet::from([first.as_str(), third.as_str()]));
    let yard = json(sites.join("yard.json"));
    assert_eq!(yard["title"], format!("Memory of {} at yard", hosts()[1]));

    let table = json(folder.path().join("fleet.json"));
    let rows = table["tables"]["sites-table"]["rows"].as_array().unwrap();
    let site: Vec<&str> = rows.iter().map(|r| r["site"].as_str().unwrap()).collect();
    assert_eq!(site, ["yard", "quay", "other"]);
    let row = &rows[1];
    assert_eq!((&row["hosts"], &row["silent"]), (&2.0.into(), &0.0.into()));
    // The figures are those of the site's own page.
    let lead = quay["lead"].as_str().unwrap();
    let share = row["share_share"].as_f64().unwrap();
    assert!(
        lead.contains(&format!("{:.0}\u{a0}%", share * 100.0)),
        "{lead} {share}"
    );
}

/// A site of all hosts has the report on all hosts, with another title.
#[test]
fn a_site_page_is_the_report_on_its_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("sites.toml"), "everywhere = ['*']\n").unwrap();
    let args = ["--also", "json,md", "-o"];
    let run = |page: &str| {
        let mut command = report(fortnight(), &WEEK);
        command.args(args).arg(at(page));
        command
    };
    made(run("whole.html").output().unwrap());
    let mut by_sites = run("fleet.html");
    made(
        by_sites
            .arg("--sites")
            .arg(at("sites.toml"))
            .output()
            .unwrap(),
    );
    let mut whole = json(at("whole.json"));
    let site = json(at("fleet-sites/everywhere.json"));
    let title = whole["title"].as_str().unwrap();
    whole["title"] = format!("{title} at everywhere").into();
    assert!(site == whole, "{site:#}");
}

#[test]
fn sites_may_be_reported_by_several_machines() {
    let [folder, at_once] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    page_by_sites(at_once.path(), "fleet.html", &[]);
    let command = |args: &[&str]| {
        let mut command = report(fortnight(), &WEEK);
        command.args(["--also", "md,csv,json", "-o"]);
        command.arg(folder.path().join("fleet.html"));
        command.arg("--sites").arg(sites(folder.path())).args(args);
        command.output().unwrap()
    };
    made(command(&["--site", "quay", "--site", "other"]));
    assert!(!folder.path().join("fleet.html").exists());
    let early = command(&["--fleet"]);
    assert_eq!(early.status.code(), Some(1));
    let complaint = said(&early);
    assert!(
        complaint.contains("the site yard has no part"),
        "{complaint}"
    );
    assert!(complaint.contains("--site yard"), "{complaint}");
    // A part of another analysis is refused.
    made(command(&["--site", "yard", "--load-limit", "0.7"]));
    let complaint = said(&command(&["--fleet"]));
    assert!(
        complaint.contains("part of site yard") && complaint.contains("parameters"),
        "{complaint}"
    );
    made(command(&["--site", "yard"]));
    made(command(&["--fleet"]));
    for name in [
        "fleet.json",
        "fleet.md",
        "fleet-sites/yard.json",
        "fleet-sites/quay.json",
    ] {
        assert!(
            text(folder.path().join(name)) == text(at_once.path().join(name)),
            "{name}"
        );
    }
    let left = names(&folder.path().join("fleet-sites"));
    assert_eq!(
        left,
        names(&at_once.path().join("fleet-sites")),
        "the parts are removed"
    );

    let unknown = command(&["--site", "quai"]);
    let complaint = said(&unknown);
    assert!(
        complaint.contains("\"quai\"") && complaint.contains("quay"),
        "{complaint}"
    );
}

#[test]
fn a_fault_in_the_file_of_sites_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sites.toml");
    let refused = |content: &str, expected: &str| {
        fs::write(&file, content).unwrap();
        let mut command = report(fortnight(), &WEEK);
        command.arg("-o").arg(folder.path().join("fleet.html"));
        let output = command.arg("--sites").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let complaint = said(&output);
        assert!(complaint.contains("sites.toml"), "{complaint}");
        assert!(complaint.contains(expected), "{complaint}");
        assert_eq!(names(folder.path()), ["sites.toml"], "nothing is written");
    };
    let first = &hosts()[0];
    refused(
        &format!("a = [{first:?}]\nb = ['no-such-*']\n"),
        "line 2: no host",
    );
    refused(
        &format!("a = [{first:?}]\nb = [{first:?}]\n"),
        "line 2: the pattern",
    );
    refused(&format!("a = [{first:?}]\n\nb = ['*']\n"), "line 3");
    refused("a = 'lab'\n", "line 1");
    let mut to_stdout = report(fortnight(), &WEEK);
    let to_stdout = to_stdout.args(["-o", "-", "--sites"]).arg(&file).output();
    assert!(said(&to_stdout.unwrap()).contains("-o FILE"));
}

#[test]
fn the_index_leads_to_the_sites_and_old_weeks_go_with_theirs() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("reports");
    let into = |week: &str, args: &[&str]| {
        let mut command = report(fortnight(), &["--week", week, "--folder"]);
        command
            .arg(&folder)
            .arg("--sites")
            .arg(sites(parent.path()));
        made(command.args(args).output().unwrap());
    };
    into("2026-W46", &[]);
    into("2026-W47", &[]);
    let index = text(folder.join("index.html"));
    assert!(index.contains("<summary>3 sites</summary>"), "{index}");
    for site in ["quay", "yard", "other"] {
        let address = format!("2026-W47-sites/{site}.html");
        assert!(index.contains(&format!("<a href=\"{address}\">{site}</a>")));
        assert!(folder.join(&address).is_file());
    }
    into("2026-W47", &["--keep", "1"]);
    let left = names(&folder);
    assert!(
        left.iter().all(|name| !name.starts_with("2026-W46")),
        "{left:?}"
    );
}

/// Files in a folder and the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn anonymous_pages_name_neither_hosts_nor_sites() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let mut command = report(fortnight(), &WEEK);
    command.args(["--also", "md,csv,json", "--anonymous", "-o"]);
    command.arg(folder.path().join("fleet.html"));
    command.arg("--sites").arg(sites(outside.path()));
    made(command.output().unwrap());
    let written = files(folder.path());
    assert!(written.len() > 20, "{written:?}");
    for path in written {
        let content = text(&path);
        let path = path
            .strip_prefix(folder.path())
            .unwrap()
            .display()
            .to_string();
        let names = hosts().iter().map(String::as_str).chain(["quay", "yard"]);
        for name in names {
            // Names that are parts of words are no names.
            let words = content.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            assert!(!words.clone().any(|word| word == name), "{name} in {path}");
            assert!(!path.contains(name), "{path}");
        }
    }
    let rows = json(folder.path().join("fleet.json"));
    let rows = rows["tables"]["sites-table"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["site"], "site 1");
    assert!(folder.path().join("fleet-sites/site-1.html").is_file());
}
