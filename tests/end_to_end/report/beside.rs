//! Tests of the companion files of a report's page.

use super::{fortnight, json, made, names, report, said, text};
use std::fs;
use std::path::Path;

#[test]
fn companions_lie_beside_the_page_and_old_tables_go() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("week.html");
    let tables = folder.path().join("week-tables");
    fs::create_dir(&tables).unwrap();
    fs::write(tables.join("of-an-earlier-report.csv"), "a,b\r\n").unwrap();
    let args = ["--week", "2026-W47", "--also", "md,csv,json", "-o"];
    made(report(fortnight(), &args).arg(&page).output().unwrap());
    assert_eq!(
        names(folder.path()),
        ["week-tables", "week.html", "week.json", "week.md"]
    );
    assert!(text(&page).ends_with("</html>\n") || text(&page).ends_with("</html>"));
    assert!(text(folder.path().join("week.md")).starts_with("# Memory of 4 hosts\n"));
    // The JSON document and the CSV files have the same tables, with equally many rows.
    let document = json(folder.path().join("week.json"));
    let in_json = document["tables"].as_object().unwrap();
    let mut expected: Vec<String> = in_json.keys().map(|name| format!("{name}.csv")).collect();
    expected.sort();
    assert!(expected.len() > 3, "{expected:?}");
    assert_eq!(names(&tables), expected);
    let hosts = in_json["coverage"]["rows"].as_array().unwrap();
    assert_eq!(hosts.len(), 4);
    assert_eq!(text(tables.join("coverage.csv")).lines().count(), 5);
}

/// Width and height, from a PNG's header.
fn picture_size(path: &Path) -> (u32, u32) {
    let bytes = fs::read(path).unwrap();
    assert!(
        bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "{}",
        path.display()
    );
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn chromium_prints_the_page_and_every_figure() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("a week #47?.html");
    let args = ["--week", "2026-W47", "--pdf", "-o"];
    made(report(fortnight(), &args).arg(&page).output().unwrap());
    assert_eq!(
        names(folder.path()),
        ["a week #47?-figures", "a week #47?.html", "a week #47?.pdf"]
    );
    let pdf = fs::read(folder.path().join("a week #47?.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-"));
    let pages = String::from_utf8_lossy(&pdf)
        .matches("/Type /Page\n")
        .count();
    assert!(pages > 3, "{pages} pages");
    let figures = folder.path().join("a week #47?-figures");
    let pictures = names(&figures);
    assert!(pictures.len() > 3, "{pictures:?}");
    for name in pictures {
        let (width, height) = picture_size(&figures.join(&name));
        assert!(width > 1000 && height > 300, "{name}: {width} x {height}");
    }
}

#[test]
fn a_chromium_that_fails_is_told_and_costs_the_pdf_alone() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("week.html");
    let with = |chromium: &str| {
        let args = ["--week", "2026-W47", "--pdf", "--chromium", chromium, "-o"];
        report(fortnight(), &args).arg(&page).output().unwrap()
    };
    let failed = with("/bin/false");
    assert_eq!(failed.status.code(), Some(1));
    assert!(
        said(&failed).contains("/bin/false did not print"),
        "{}",
        said(&failed)
    );
    assert_eq!(names(folder.path()), ["week.html"]);
    let missing = report(fortnight(), &["--pdf"])
        .env("PATH", "/nowhere")
        .env_remove("CHROMIUM")
        .output();
    let missing = missing.unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(said(&missing).contains("--chromium"), "{}", said(&missing));
}

#[test]
fn an_anonymous_report_names_no_host_in_any_file() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--week", "2026-W47", "--anonymous", "--folder"];
    made(
        report(fortnight(), &args)
            .arg(folder.path())
            .output()
            .unwrap(),
    );
    let dataset = gleaner_dataset::Dataset::open(fortnight()).unwrap();
    let mut secrets = dataset.hosts().unwrap();
    assert_eq!(secrets.len(), 4);
    secrets.push("synthetic-0".to_owned());
    let mut searched = 0;
    let mut folders = vec![folder.path().to_owned()];
    while let Some(next) = folders.pop() {
        for name in names(&next) {
            let path = next.join(&name);
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            searched += 1;
            let content = text(&path) + &name;
            for secret in &secrets {
                assert!(
                    !content.contains(secret),
                    "{secret} is in {}",
                    path.display()
                );
            }
        }
    }
    assert!(searched > 6, "{searched} files");
}
