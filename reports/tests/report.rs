//! Whole pages from findings: their texts, their safety against markup in names, their sizes.

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

/// The page without the parts that are equal in every page, and with ordinary spaces.
fn page(findings: &Findings) -> String {
    whole(&html(findings, &Options::default()).unwrap()).replace('\u{a0}', " ")
}

/// The page's text, including the unpacked text of every host's page.
fn whole(html: &str) -> String {
    let packed = html
        .split("<script type=\"application/x-deflate\"")
        .skip(1)
        .map(|rest| {
            let text = &rest[rest.find('>').unwrap() + 1..rest.find("</script>").unwrap()];
            let bytes = BASE64_STANDARD.decode(text).unwrap();
            String::from_utf8(miniz_oxide::inflate::decompress_to_vec(&bytes).unwrap()).unwrap()
        });
    let pages: Vec<String> = packed.collect();
    let end = html.find("</footer>").unwrap();
    html[..end].to_owned() + &pages.concat()
}

/// The figure with this id, as Plotly receives it.
fn plot(page: &str, id: &str) -> serde_json::Value {
    let figure = &page[page.find(&format!("<figure id=\"{id}\"")).unwrap()..];
    let json = figure
        .split("<script type=\"application/json\">")
        .nth(1)
        .unwrap();
    serde_json::from_str(json.split("</script>").next().unwrap()).unwrap()
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
        "This trace is too short to show how long memory stays available: only periods of 5 min or more count.",
        "No result yet: only periods of 5 min or more count, and the trace is 29 s long.",
        "It is not known when the owner was away (input: unsupported; terminal: unsupported).",
        "Files are named by ids",
        "It did not dip below any threshold, the highest being 6 GiB.",
        "21 November 2026, 10:52:01 to 10:52:30, UTC",
        "SIGMETRICS 1999",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    // The page of the only host is open.
    assert_eq!(page.matches("<article id=\"host-").count(), 1);
    assert!(
        !html(&demo(), &Options::default())
            .unwrap()
            .contains("<script type=\"application/x-deflate\"")
    );
}

#[test]
fn several_hosts_are_compared_and_then_shown_one_by_one() {
    let findings = week::findings();
    let page = page(&findings);
    assert_eq!(page.matches("<article id=\"host-").count(), 3);
    for sentence in [
        "of these 3 hosts’ memory was available",
        "for 95 % of the time.",
        "was on hosts whose owners were away",
        "nightly-fit",
        " region of 4 GiB",
        "read “at least”",
        "with 1 gap of",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    // Each host has three figures: by category, available, days. All hosts together have five: over time,
    // ranks, dots, hours, periods.
    assert_eq!(page.matches("<figure id=").count(), 3 * 3 + 5);
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
    assert!(page.contains("available, without files used again soon"));
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

/// Each list in turn is missing this week or the week before. The companions are checked, since they contain
/// what the page does.
#[test]
fn a_fleet_without_any_one_list_says_sensible_things() {
    let mut complete = week::findings();
    complete.memory_over_time = complete.memory_over_time.into_iter().step_by(16).collect();
    let whole = serde_json::to_value(&complete).unwrap();
    let lists = whole.as_object().unwrap().iter();
    for (name, _) in lists.filter(|(_, v)| v.as_array().is_some_and(|v| !v.is_empty())) {
        let mut without = whole.clone();
        without[name] = serde_json::json!([]);
        let findings: Findings = serde_json::from_value(without).unwrap();
        for (now, before) in [
            (&findings, None),
            (&findings, Some(&complete)),
            (&complete, Some(&findings)),
        ] {
            let report = Report::new(now, before, &Options::default()).unwrap();
            let said = format!("{} {}", report.markdown(), report.json());
            for nonsense in ["NaN", " inf", "-0.0 ", "−0 "] {
                assert!(!said.contains(nonsense), "{nonsense} without {name}");
            }
        }
    }
}

#[test]
fn how_long_it_lasts_and_what_it_costs_are_answered_from_what_there_is() {
    let (mut now, mut before) = (week::whole(), week::whole());
    for odds in &mut before.availability_odds {
        odds.available_probability *= 0.9;
    }
    let said = |findings: &Findings, before: Option<&Findings>| {
        let report = Report::new(findings, before, &Options::default()).unwrap();
        let page = report.html().unwrap();
        page[..page.find("</footer>").unwrap()].replace('\u{a0}', " ")
    };
    let page = said(&now, Some(&before));
    for id in [
        "odds",
        "odds-ends",
        "survival",
        "hours-available",
        "hours-idle",
        "hours-region",
        "hours-stays",
        "coming-week",
        "forecast-calibration",
        "hours-returns",
        "settings",
        "returns-at-once",
    ] {
        assert!(page.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
    for sentence in [
        "points more than in the time before",
        "Owners return 3.5 times per host and day, as in the time before.",
        "so a forecast by hour is useful",
        "To lend more at no higher cost: idle after 10 min, headroom 10 %",
        "owners of 2 of 3 idle hosts returned and would have reclaimed 23.0 GiB",
        "may be longer: many periods were cut short",
    ] {
        assert!(page.contains(sentence), "{sentence}");
    }
    let report = Report::new(&now, Some(&before), &Options::default()).unwrap();
    for table in report.tables() {
        let names: Vec<&str> = table.csv.lines().next().unwrap().split(',').collect();
        let once: std::collections::HashSet<&&str> = names.iter().collect();
        assert_eq!(once.len(), names.len(), "{}: {names:?}", table.name);
    }
    let alone = said(&now, None);
    assert!(alone.contains("is not known yet: it takes two weeks"));
    assert!(!alone.contains("the time before"));

    // If any one list is missing, this week or the week before, the page says less, but no nonsense.
    now.memory_over_time.clear(); // only hosts' pages use this list
    let lists = serde_json::to_value(&now).unwrap();
    for (name, list) in lists.as_object().unwrap() {
        if list.as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let mut without = lists.clone();
        without[name] = serde_json::json!([]);
        let without: Findings = serde_json::from_value(without).unwrap();
        for (now, before) in [(&without, &before), (&now, &without)] {
            let report = Report::new(now, Some(before), &Options::default()).unwrap();
            let text = report.json().replace('\u{a0}', " ");
            for nonsense in ["NaN", "inf ", ": .", " ,", "  than", "()"] {
                assert!(!text.contains(nonsense), "{nonsense:?} without {name}");
            }
        }
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
        for process in &mut findings.dip_processes {
            process.name = hostile.into();
        }
        findings.top_files[0].file = hostile.into();
        findings.quotas[0].reason = hostile.into();
        findings.missing_values[0].detail = hostile.into();
        findings.memory_usage[0].category = hostile.into();
        findings.memory_usage[0].size_class = hostile.into();
        findings.missing_measures[0].reason = hostile.into();
        findings.activity_sources[0].state = hostile.into();
        let options = Options {
            title: hostile.into(),
            ..Options::default()
        };
        let page = whole(&html(&findings, &options).unwrap());
        let harmless = whole(&html(&demo(), &Options::default()).unwrap());
        // Plotly's own text may contain these; the findings must not add any.
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
    findings.memory_over_time[10].is_after_gap = true;
    let page = html(&findings, &Options::default()).unwrap();
    let plot = plot(&page, "h1-memory-over-time");
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
    let plot = plot(&page, "h1-memory-over-time");
    let traces = plot["data"].as_array().unwrap();
    for i in 0..findings.memory_over_time.len() {
        let sum: f64 = traces.iter().map(|t| t["y"][i].as_f64().unwrap()).sum();
        let physical_gib = findings.hosts[0].physical_bytes as f64 / week::GIB;
        assert!(
            (sum - physical_gib).abs() < 0.005,
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

#[test]
fn an_anonymous_report_has_no_name_or_id_of_a_host_anywhere() {
    let mut findings = week::findings();
    for (index, host) in findings.hosts.iter_mut().enumerate() {
        host.host_name = format!("workstation-of-{index}-zygmunt");
    }
    let mut before = findings.clone();
    before.hosts.remove(0);
    // Reasons and details of both weeks may contain a host's name.
    findings.quotas[0].reason = format!("{} sleeps", findings.hosts[0].host_name);
    findings.missing_values[0].detail = format!("no route to {}", findings.hosts[0].host_id);
    let everything = |anonymous: bool| {
        let options = Options {
            anonymous,
            ..Options::default()
        };
        let report = Report::new(&findings, Some(&before), &options).unwrap();
        let html = report.html().unwrap();
        let tables: String = report.tables().into_iter().map(|t| t.csv).collect();
        // Plotly's own text contains neither the names nor the ids.
        whole(&html)
            + &html[html.find("<footer").unwrap()..]
            + &report.markdown()
            + &report.json()
            + &tables
    };
    let (told, hidden) = (everything(false), everything(true));
    assert!(told.contains("zygmunt"));
    for host in &findings.hosts {
        assert!(
            !hidden.contains(&host.host_name) && !hidden.contains(&host.host_id),
            "{}",
            host.host_name
        );
    }
    assert!(!hidden.contains("zygmunt"));
    for number in 1..=3 {
        assert!(hidden.contains(&format!("host {number}")), "{number}");
    }
    assert!(hidden.contains("firefox"), "what was recorded stays");
}

/// Findings of `hosts` hosts over a week, with `points` points each.
fn fleet(hosts: i64, points: i64) -> Findings {
    let week = week::findings();
    let mut fleet = Findings {
        parameters: week.parameters.clone(),
        ..Findings::default()
    };
    for number in 0..hosts {
        let template = &week.hosts[number as usize % week.hosts.len()];
        let id = format!("{number:032x}");
        let mut host = template.clone();
        host.host_id = id.clone();
        host.host_name = format!("ws-{number:04}");
        let step_ms = 7 * 86_400_000 / points;
        host.to_time_ms = host.from_time_ms + points * step_ms;
        let series: Vec<&MemoryPoint> = week
            .memory_over_time
            .iter()
            .filter(|p| p.host_id == template.host_id)
            .collect();
        for at in 0..points {
            let mut point = series[at as usize % series.len()].clone();
            // The values differ from every other host's, so that equal values do not help the compression.
            let noise = ((number * 7_919 + at * 104_729) % 1_048_573 * 97) as f64;
            point.host_id = id.clone();
            point.time_ms = host.from_time_ms + at * step_ms + (number * 31 + at * 17) % 900;
            point.samples_count = 6720 / points.max(1);
            point.is_after_gap = at > 0 && at % 700 == 0;
            point.available_bytes -= noise;
            point.min_available_bytes -= 2 * noise as i64;
            point.process_bytes = point.process_bytes.map(|b| b + noise);
            fleet.memory_over_time.push(point);
        }
        macro_rules! copy {
            ($($list:ident),*) => {
                $(fleet.$list.extend(week.$list.iter().filter(|x| x.host_id == template.host_id).cloned().map(|mut x| {
                    x.host_id = id.clone();
                    x
                }));)*
            };
        }
        copy!(
            dips,
            idle_periods,
            quotas,
            top_processes,
            top_files,
            gaps,
            missing_values,
            activity_sources,
            residuals,
            agent_cost
        );
        fleet.hosts.push(host);
    }
    fleet.memory_usage = week.memory_usage;
    fleet.availability_periods = week.availability_periods;
    fleet
}

#[test]
fn a_hundred_hosts_of_a_week_stay_under_five_megabytes() {
    let findings = fleet(100, 2000);
    let report = Report::new(&findings, Some(&findings), &Options::default()).unwrap();
    let page = report.html().unwrap();
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert_eq!(
        page.matches("<script type=\"application/x-deflate\"")
            .count(),
        100
    );
}

/// Meaning of available memory in the invented trace.
const BOUND: &str = "Available memory is an upper bound.";

/// Findings in which the first `count` hosts are imported from another program's trace.
fn imported(mut findings: Findings, count: usize) -> Findings {
    for host in findings.hosts.iter_mut().take(count) {
        host.source = Some("a trace".into());
        host.idle_share = None;
    }
    findings.sources = vec![TraceSource {
        name: "a trace".into(),
        hosts_count: count as i64,
        available_meaning: BOUND.into(),
        physical_meaning: Some("what was provisioned".into()),
        has_invented_sizes: false,
        columns: vec![TraceColumn {
            table: "samples".into(),
            column: "available_bytes".into(),
            origin: "provisioned less used".into(),
        }],
    }];
    findings
}

/// Texts that are true only for hosts on which an agent ran.
const AGENTS_ALONE: [&str; 6] = [
    "neither the kernel nor any active program",
    "installed",
    "not in use at the moment",
    "the agent was stopped",
    "agent not running",
    "the kernel did not report",
];

#[test]
fn what_imported_figures_mean_is_in_every_answer_page_and_companion() {
    let mut findings = imported(week::whole(), 3);
    findings.gaps.push(Gap {
        host_id: findings.hosts[0].host_id.clone(),
        from_time_ms: 0,
        to_time_ms: 60_000,
        duration_s: 60.0,
        cause: "stopped".into(),
    });
    let all = page(&findings);
    // The meaning is in the headline, three answers, the method's table, and each of the three hosts' pages.
    assert_eq!(all.matches(BOUND).count(), 1 + 3 + 1 + 3, "{all}");
    assert!(all.contains("provisioned less used") && all.contains("the recording was stopped"));
    let report = Report::new(&findings, None, &Options::default()).unwrap();
    let (markdown, json) = (report.markdown(), report.json());
    assert_eq!(markdown.matches(BOUND).count(), 1 + 3, "{markdown}");
    assert!(report.summary().lead.ends_with(BOUND));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = &document["tables"]["sources"]["rows"][0];
    assert_eq!(row["available_memory"], BOUND);
    assert_eq!(row["physical_memory"], "what was provisioned");
    for table in ["hosts", "hosts-overview", "coverage"] {
        assert_eq!(
            document["tables"][table]["rows"][0]["imported_from"], "a trace",
            "{table}"
        );
    }
    let tables = report.tables();
    let csv = |name: &str| &tables.iter().find(|t| t.name == name).unwrap().csv;
    assert!(csv("sources").contains(BOUND));
    assert!(
        csv("source-columns").contains("a trace,samples.available_bytes,provisioned less used")
    );
    assert!(csv("hosts").starts_with("host,imported_from,"));
    for claim in AGENTS_ALONE {
        for (form, text) in [("page", &all), ("markdown", &markdown), ("JSON", &json)] {
            assert!(!text.contains(claim), "{form}: {claim}");
        }
    }

    // If only one host is imported, the texts on hosts with agents stay.
    let both = page(&imported(week::findings(), 1));
    assert!(
        both.contains("This applies to 2 hosts. For 1 host from a trace: "),
        "{both}"
    );
    assert!(both.contains("agent or recorder not running"));
    // With agents only, the page does not mention traces.
    let agents = page(&week::findings());
    assert!(!agents.contains("imported") && agents.contains("agent not running"));
}

#[test]
fn synthetic_hosts_have_the_words_of_agents_and_are_called_made_up() {
    let mut findings = week::whole();
    for host in &mut findings.hosts {
        host.source = Some("synthetic modern".into());
    }
    let page = page(&findings);
    let headline = "using it. 3 hosts (synthetic modern) and all their figures are synthetic: a model generated them.";
    assert_eq!(page.matches(headline).count(), 1);
    assert_eq!(
        page.matches("Synthetic, generated by a model (synthetic modern). ")
            .count(),
        3
    );
    assert!(page.contains("agent not running"));
    assert!(!page.contains("imported"));
}

#[test]
fn nothing_is_advised_of_sizes_that_an_importer_made_up() {
    let advised = |findings: &Findings| {
        let report = Report::new(findings, None, &Options::default()).unwrap();
        let document: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        let rows = document["tables"]["hosts-overview"]["rows"]
            .as_array()
            .unwrap();
        let words = rows
            .iter()
            .map(|row| row["advice"].as_str().unwrap().to_owned());
        (words.collect::<Vec<_>>(), report.json())
    };
    let mut findings = imported(long(), 3);
    let (words, _) = advised(&findings);
    assert!(words.iter().any(|word| word != "watch"), "{words:?}");
    findings.sources[0].has_invented_sizes = true;
    let (words, json) = advised(&findings);
    assert!(words.iter().all(|word| word == "watch"), "{words:?}");
    assert!(json.contains("the trace has no sizes"));
}

/// The invented findings, stretched so that hosts are traced for long enough to get advice.
fn long() -> Findings {
    let mut findings = week::findings();
    for host in &mut findings.hosts {
        let from_ms = host.from_time_ms;
        host.to_time_ms = from_ms + 5 * (host.to_time_ms - from_ms);
        host.coverage_share = 1.0;
        let points = findings.memory_over_time.iter_mut();
        for point in points.filter(|point| point.host_id == host.host_id) {
            point.time_ms = from_ms + 5 * (point.time_ms - from_ms);
        }
    }
    findings
}
