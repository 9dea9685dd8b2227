//! Whole pages from findings: what they say, what they do not let in, how large they are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod week;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use gleaner_reports::{Options, Report, ReportError};
use gleaner_schemas::findings::*;
use sha2::{Digest, Sha256};

fn demo() -> Findings {
    serde_json::from_str(include_str!("../fixtures/demo.json")).unwrap()
}

fn html(findings: &Findings, options: &Options) -> Result<String, ReportError> {
    Report::new(findings, None, options)?.html()
}

fn markdown(findings: &Findings, options: &Options) -> Result<String, ReportError> {
    Ok(Report::new(findings, None, options)?.markdown())
}

/// The page without what is the same in every page, with plain spaces.
fn page(findings: &Findings) -> String {
    let page = html(findings, &Options::default()).unwrap();
    let end = page.find("</footer>").unwrap();
    page[..end].replace('\u{a0}', " ")
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

#[test]
fn the_demo_says_what_was_found_and_what_was_not() {
    let page = page(&demo());
    for sentence in [
        "On average, 85 % of this host’s memory was available: 20.1 GiB of 23.5 GiB.",
        "At the worst moment of the 29 s traced, 18.0 GiB was still available.",
        "a trace this short cannot tell: only periods of 5 min or more count.",
        "Nothing to show yet: only periods of 5 min or more count, and the trace is 29 s long.",
        "It did not dip below any threshold, the highest being 6 GiB.",
        "21 November 2026, 10:52:01 to 10:52:30, UTC",
        "SIGMETRICS 1999",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    assert_eq!(page.matches("<details").count(), 1);
}

#[test]
fn several_hosts_are_compared_and_then_shown_one_by_one() {
    let findings = week::findings();
    let page = page(&findings);
    assert_eq!(page.matches("<details").count(), 3);
    for sentence in [
        "of these 3 hosts’ memory was available",
        "Had every host’s worst moment come at once",
        " region of 4 GiB",
        "read “at least”",
        "There is 1 gap in the trace",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    // Each host: by category, available, days. All together: periods, dots.
    assert_eq!(page.matches("<figure id=").count(), 3 * 3 + 2);
}

#[test]
fn what_lookahead_adds_has_names_for_people() {
    let mut findings = demo();
    let available = findings.memory_usage.iter();
    let available: Vec<_> = available
        .filter(|u| u.category == "available")
        .cloned()
        .collect();
    for category in ["live_file_cache", "available_paper"] {
        findings
            .memory_usage
            .extend(available.iter().map(|usage| MemoryUsage {
                category: category.to_owned(),
                ..usage.clone()
            }));
    }
    let page = page(&findings);
    assert!(page.contains("file cache, with files used again soon"));
    assert!(page.contains("available without files used again soon"));
    assert!(!page.contains("live_file_cache") && !page.contains("available_paper"));
}

#[test]
fn findings_without_anything_make_a_sensible_page() {
    let empty = page(&Findings::default());
    assert!(empty.contains("There are no samples to report on."));
    assert!(!empty.contains("<figure id=") && !empty.contains("NaN"));

    let mut host_only = demo();
    host_only.memory_over_time.clear();
    host_only.memory_usage.clear();
    assert!(page(&host_only).contains("There are no samples of memory."));

    let lists = serde_json::to_value(demo()).unwrap();
    for (name, _) in lists
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, v)| v.is_array())
    {
        let mut without = lists.clone();
        without[name] = serde_json::json!([]);
        let findings: Findings = serde_json::from_value(without).unwrap();
        let page = page(&findings);
        assert!(
            page.contains("</main>") && !page.contains("NaN"),
            "without {name}"
        );
    }
}

#[test]
fn hostile_names_stay_text() {
    let hostile = "</script><script>alert(1)</script>\u{2028}<img src=x onerror=alert(1)>\"' onfocus=alert(1) |`*";
    for mut findings in [demo(), week::findings()] {
        findings.hosts[0].host_name = hostile.into();
        findings.hosts[0].kernel_release = Some(hostile.into());
        findings.hosts[0].size_class = hostile.into();
        findings.top_processes[0].name = hostile.into();
        findings.top_files[0].file = hostile.into();
        findings.quotas[0].reason = hostile.into();
        findings.absences[0].detail = hostile.into();
        findings.memory_usage[0].category = hostile.into();
        findings.memory_usage[0].size_class = hostile.into();
        findings.not_measured[0].reason = hostile.into();
        findings.activity_sources[0].state = hostile.into();
        let options = Options {
            title: hostile.into(),
            ..Options::default()
        };
        let page = html(&findings, &options).unwrap();
        let harmless = html(&demo(), &Options::default()).unwrap();
        // Plotly's own text has whatever it has; no more may come with the findings.
        let count = |page: &str, what: &str| page.matches(what).count();
        for what in ["alert(1)</script>", "<img src=x", "<script>alert"] {
            assert_eq!(count(&page, what), count(&harmless, what), "{what}");
        }
        assert!(
            page.contains("&#60;script&#62;alert(1)"),
            "it is there, as text"
        );
        for json in page.split("<script type=\"application/json\">").skip(1) {
            let json = json.split("</script>").next().unwrap();
            serde_json::from_str::<serde_json::Value>(json).unwrap();
            assert!(!json.contains(['<', '>', '\u{2028}']) && !json.contains("alert"));
        }
        let text = markdown(&findings, &options).unwrap();
        assert!(
            !text.contains("<script") && !text.contains("<img"),
            "{text}"
        );
    }
}

#[test]
fn the_content_policy_knows_both_scripts_and_nothing_leaves_the_page() {
    let page = html(&demo(), &Options::default()).unwrap();
    let plotly = include_bytes!("../assets/plotly-cartesian.min.js");
    let scripts: Vec<&str> = page
        .split("<script>")
        .skip(1)
        .map(|rest| &rest[..rest.find("</script>").unwrap()])
        .collect();
    assert_eq!(scripts.len(), 2);
    assert_eq!(scripts[0].as_bytes(), plotly);
    for script in scripts {
        let hash = format!(
            "'sha256-{}'",
            BASE64_STANDARD.encode(sha256(script.as_bytes()))
        );
        assert!(
            page.contains(&hash),
            "src/write/html.rs: the hash of a script is {hash}"
        );
        assert!(!script.contains('\r'));
    }
    let hex: String = sha256(plotly)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(
        include_str!("../assets/PLOTLY.md").contains(&hex),
        "assets/PLOTLY.md: the sha256 is {hex}"
    );
    assert!(page.contains("default-src 'none'") && !page.contains("<link rel=\"stylesheet\""));
    let outside_scripts = &page[..page.find("</footer>").unwrap()];
    assert!(!outside_scripts.contains("http://") && !outside_scripts.contains("https://"));
}

#[test]
fn one_host_with_2000_points_stays_under_two_and_a_half_megabytes() {
    let mut findings = demo();
    let point = findings.memory_over_time[0].clone();
    findings.memory_over_time = (0..2000_i64)
        .map(|i| MemoryPoint {
            time_ms: point.time_ms + i * 90_000,
            process_bytes: point.process_bytes.map(|b| b + (i * 7_919_113) as f64),
            available_bytes: point.available_bytes - (i * 7_919_113) as f64,
            ..point.clone()
        })
        .collect();
    let page = html(&findings, &Options::default()).unwrap();
    assert!(page.len() < 2_500_000, "{} bytes", page.len());
}

#[test]
fn the_same_input_gives_the_same_page() {
    let findings = week::findings();
    let options = Options {
        time_zone: "Asia/Kolkata".into(),
        ..Options::default()
    };
    let page = html(&findings, &options).unwrap();
    assert_eq!(page, html(&findings, &options).unwrap());
    assert!(page.contains("Asia/Kolkata (UTC+05:30)"));
    let unknown = Options {
        time_zone: "Mars/Olympus".into(),
        ..Options::default()
    };
    assert!(matches!(
        html(&findings, &unknown),
        Err(ReportError::TimeZone { .. })
    ));
}

#[test]
fn a_gap_starts_a_new_line() {
    let mut findings = demo();
    findings.memory_over_time[10].after_gap = true;
    let page = html(&findings, &Options::default()).unwrap();
    let json = page
        .split("<script type=\"application/json\">")
        .nth(1)
        .unwrap();
    let plot: serde_json::Value =
        serde_json::from_str(json.split("</script>").next().unwrap()).unwrap();
    let lengths: Vec<usize> = plot["times"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [10, 20]);
    for trace in plot["data"].as_array().unwrap() {
        let run = trace["x"][0].as_u64().unwrap() as usize;
        assert_eq!(trace["y"].as_array().unwrap().len(), lengths[run]);
        assert_eq!(trace["stackgroup"], format!("run-{run}"));
    }
}

#[test]
fn the_areas_of_a_moment_add_up_to_physical_memory() {
    let findings = demo();
    let page = html(&findings, &Options::default()).unwrap();
    let json = page
        .split("<script type=\"application/json\">")
        .nth(1)
        .unwrap();
    let plot: serde_json::Value =
        serde_json::from_str(json.split("</script>").next().unwrap()).unwrap();
    let traces = plot["data"].as_array().unwrap();
    for i in 0..findings.memory_over_time.len() {
        let sum: f64 = traces.iter().map(|t| t["y"][i].as_f64().unwrap()).sum();
        let physical_gib = findings.hosts[0].physical_bytes as f64 / week::GIB;
        assert!(
            (sum - physical_gib).abs() < 0.001,
            "{sum} of {physical_gib} GiB"
        );
    }
}

#[test]
fn markdown_has_the_headline_and_the_table() {
    let text = markdown(&demo(), &Options::default())
        .unwrap()
        .replace('\u{a0}', " ");
    assert!(
        text.starts_with("# Idle memory\n\n21 November 2026, 10:52:01 to 10:52:30, UTC\n\n**On average, 85 % of this host’s memory was available"),
        "{text}"
    );
    assert!(text.contains("- Available: 20.1 GiB"), "{text}");
    assert!(text.contains("- Lease quota now: 0 B (the owner's activity cannot be seen)"));
}
