//! The questions that the page answers, in order, and what answers each.

use crate::figures::{away, lasting, over_time};
use crate::page::{Part, Section};
use crate::tables::{hosts, lasting as lengths, memory, trust, users};
use crate::view::View;
use crate::wording::{bytes, count, list, seconds, share, size, stored_bytes};
use gleaner_schemas::findings::{Category, Findings};

/// The sections of all hosts, or of one.
pub(crate) fn sections(view: &View) -> Vec<Section> {
    let mut sections = Vec::new();
    if view.findings.hosts.len() > 1 {
        sections.push(section(
            view,
            "hosts",
            "How do the hosts compare?",
            overview(view),
        ));
    }
    sections.extend([
        section(view, "memory", "Where does the memory go?", usage(view)),
        section(
            view,
            "available",
            "How much is available, and when is it not?",
            available(view),
        ),
    ]);
    // Pooled over hosts: a host's own part has none.
    if view.prefix.is_empty() {
        sections.push(section(
            view,
            "lasting",
            "How long does it stay available?",
            stays(view),
        ));
    }
    sections.extend([
        section(view, "away", "When is the owner away?", owner_away(view)),
        section(view, "users", "Who uses the memory?", used_by(view)),
        section(view, "trust", "Can the data be trusted?", trusted(view)),
    ]);
    sections
}

fn section(view: &View, id: &str, title: &'static str, parts: Vec<Part>) -> Section {
    Section {
        id: format!("{}{id}", view.prefix),
        title,
        parts,
    }
}

fn overview(view: &View) -> Vec<Part> {
    let hosts = &view.findings.hosts;
    let idle: Vec<f64> = hosts.iter().filter_map(|h| h.idle_share).collect();
    let known = match idle.len() {
        0 => "On none of them is it known when the owner was away".to_owned(),
        n => format!(
            "For {n} of {} it is known when the owner was away: {} of the time on average",
            count(hosts.len() as i64, "host"),
            share(idle.iter().sum::<f64>() / n as f64)
        ),
    };
    parts([
        Some(Part::Say(format!(
            "{known}. Each host’s own figures stand further down."
        ))),
        hosts::overview(view).map(Part::Table),
    ])
}

fn usage(view: &View) -> Vec<Part> {
    let figure = over_time::categories(view);
    let tables = memory::usage(view);
    let several = view.only_host().is_none() && !tables.is_empty();
    let words = (figure.is_none() && tables.is_empty())
        .then(|| without(view, "memory_usage", "There are no samples of memory."));
    let mut parts = parts([
        words,
        several.then(|| Part::Say(classes_sentence(view))),
        figure.map(Part::figure),
    ]);
    parts.extend(tables.into_iter().map(Part::Table));
    parts
}

/// What the tables of use say, for those who will not read them.
fn classes_sentence(view: &View) -> String {
    let usage = &view.findings.memory_usage;
    let of = |class: &str, category: Category| {
        let name = category.column().trim_end_matches("_bytes");
        let row = usage
            .iter()
            .find(|u| u.size_class == class && u.category == name);
        row.map(|u| share(u.mean_share))
    };
    let all = of("all", Category::Available).unwrap_or("an unknown part".into());
    let process = of("all", Category::Process).unwrap_or("an unknown part".into());
    format!(
        "In the mean over all samples, {all} of a host’s memory was available and active processes held {process}. The deviation \
         says how far single samples lie from the mean."
    )
}

fn available(view: &View) -> Vec<Part> {
    let words = if view.only_host().is_none() {
        Some(Part::Say(dips_sentence(&view.findings)))
    } else if view.findings.memory_over_time.is_empty() {
        Some(without(
            view,
            "memory_over_time",
            "There are no samples of available memory.",
        ))
    } else if view.findings.dips.is_empty() {
        Some(without(
            view,
            "dips",
            "Dips were not counted: no threshold was set.",
        ))
    } else {
        None
    };
    parts([
        over_time::available(view).map(Part::figure),
        words,
        quota_sentence(view).map(Part::Say),
        memory::dips(view).map(Part::Table),
    ])
}

fn dips_sentence(findings: &Findings) -> String {
    let mut thresholds: Vec<i64> = findings
        .absolute_dips()
        .map(|d| d.threshold_bytes)
        .collect();
    thresholds.sort_unstable_by(|a, b| b.cmp(a));
    thresholds.dedup();
    let said: Vec<String> = thresholds
        .into_iter()
        .map(|threshold| {
            let below = |d: &&gleaner_schemas::findings::Dip| {
                d.threshold_bytes == threshold && d.intervals > 0
            };
            let hosts = findings.absolute_dips().filter(below).count() as i64;
            format!("{} below {}", count(hosts, "host"), size(threshold))
        })
        .collect();
    match said.is_empty() {
        true => "Dips were not counted.".into(),
        false => format!("Dipped at least once: {}.", list(&said)),
    }
}

fn quota_sentence(view: &View) -> Option<String> {
    view.only_host()?;
    let quota = view.findings.quotas.first()?;
    let harvestable = quota
        .harvestable_bytes
        .map(stored_bytes)
        .unwrap_or("an unknown amount".into());
    let recruitable = stored_bytes(quota.recruitable_bytes);
    let (now, would) = match quota.quota_bytes {
        0 => (
            "nothing".into(),
            "Were the host idle, the paper’s rule would give",
        ),
        bytes => (stored_bytes(bytes), "The paper’s rule gives"),
    };
    Some(format!(
        "At the last sample {now} could be leased ({}). {would} {recruitable}; without pushing the owner’s pages out, {harvestable} \
         could be taken.",
        quota.reason.trim_end_matches('.'),
    ))
}

fn stays(view: &View) -> Vec<Part> {
    let periods = &view.findings.availability_periods;
    let minimum_s = view.findings.parameters.minimum_period_s;
    let longest_s = view.longest_trace_s();
    let kept = periods.iter().filter(|p| p.periods > 0);
    let largest = kept.clone().max_by_key(|p| p.region_bytes);
    let words = match largest {
        None if longest_s < minimum_s => Some(format!(
            "Nothing to show yet: only periods of {} or more count, and the trace is {} long. Trace for some days, with nights \
             and a weekend in them, to learn how long memory stays available.",
            seconds(minimum_s),
            seconds(longest_s)
        )),
        None if periods.is_empty() => Some("No size of region was asked about.".into()),
        None => Some(format!(
            "No region stayed available for {}, the shortest that counts.",
            seconds(minimum_s)
        )),
        Some(largest) if kept.clone().all(|p| p.censored >= p.periods) => Some(format!(
            "No period was seen whole: each touches a gap or an end of the trace, so how long a region stays available cannot be \
             told from it. A region of {} was available for at least {} at a stretch.",
            size(largest.region_bytes),
            largest.longest_s.map(seconds).unwrap_or_default()
        )),
        Some(_) => None,
    };
    let figure = words.is_none().then(|| lasting::periods(view)).flatten();
    // Without a single period the table would be rows of dashes.
    let table = largest.and_then(|_| lengths::availability(view));
    parts([
        words.map(Part::Say),
        figure.map(Part::figure),
        table.map(Part::Table),
    ])
}

fn owner_away(view: &View) -> Vec<Part> {
    let p = &view.findings.parameters;
    let words = view.findings.idle_periods.is_empty().then(|| {
        let rule = format!(
            "Idle means: no keyboard, mouse or terminal used and a load below {} for {} or more.",
            p.load_limit,
            seconds(p.idle_after_s)
        );
        let known = view.findings.hosts.iter().any(|h| h.idle_share.is_some());
        let reason = view.reason_without("idle_periods").map(sentence);
        let finding = if known {
            "No idle period was seen.".to_owned()
        } else {
            let sources = sources_words(&view.findings);
            format!("When the owner was away cannot be told{sources}.")
        };
        Part::Say(format!(
            "{finding} {}{rule}",
            reason.map(|r| r + " ").unwrap_or_default()
        ))
    });
    let many = view.only_host().is_none() && words.is_none();
    let total = many.then(|| {
        let idle = &view.findings.idle_periods;
        let longest = idle.iter().map(|i| i.duration_s).fold(0.0, f64::max);
        Part::Say(format!(
            "{} were seen on all hosts, {} long on average, the longest {}.",
            count(idle.len() as i64, "idle period"),
            seconds(idle.iter().map(|i| i.duration_s).sum::<f64>() / idle.len().max(1) as f64),
            seconds(longest)
        ))
    });
    parts([
        words,
        total,
        away::days(view).map(Part::figure),
        lengths::idle(view).map(Part::Table),
    ])
}

/// ` (input: unsupported; terminal: denied)`.
fn sources_words(findings: &Findings) -> String {
    let mut states: Vec<String> = findings
        .activity_sources
        .iter()
        .map(|s| format!("{}: {}", s.source, s.state))
        .collect();
    states.dedup();
    match states.is_empty() {
        true => ": no source of activity was found".into(),
        false => format!(" ({})", states.join("; ")),
    }
}

fn used_by(view: &View) -> Vec<Part> {
    let processes = users::processes(view);
    let files = users::files(view);
    let process_words = match view
        .findings
        .top_processes
        .iter()
        .max_by(|a, b| a.mean_bytes.total_cmp(&b.mean_bytes))
    {
        Some(top) => Part::Say(format!(
            "Of the processes that were active, {} held most: {} on average, {} at most. A process counts while it uses the CPU; \
             memory that several share is divided among them.",
            top.name,
            bytes(top.mean_bytes),
            stored_bytes(top.max_bytes),
        )),
        None => without(view, "top_processes", "No active process was recorded."),
    };
    let files_words = match view.findings.top_files.iter().any(|f| !f.file.contains('/')) {
        _ if files.is_none() => without(view, "top_files", "No file in use was recorded."),
        true => Part::Say(
            "Files are named by ids: the host’s owner has not allowed paths to leave it. An id stays the same from sample to \
             sample and says nothing about the path."
                .into(),
        ),
        false => Part::Say("Files are named by their paths, as the host’s owner allows.".into()),
    };
    parts([
        Some(process_words),
        processes.map(Part::Table),
        Some(files_words),
        files.map(Part::Table),
    ])
}

fn trusted(view: &View) -> Vec<Part> {
    let f = &view.findings;
    let samples: i64 = f.hosts.iter().map(|h| h.samples_count).sum();
    let cover: Vec<String> = f
        .hosts
        .iter()
        .map(|h| h.coverage_share)
        .reduce(f64::min)
        .map(share)
        .into_iter()
        .collect();
    let least = if f.hosts.len() > 1 { "at least " } else { "" };
    let summary = match cover.first() {
        Some(cover) => format!(
            "The figures rest on {}, which cover {least}{cover} of the time traced. {} in the trace and {}.",
            count(samples, "sample"),
            match f.gaps.len() as i64 {
                0 => "There is no gap".into(),
                1 => "There is 1 gap".into(),
                n => format!("There are {n} gaps"),
            },
            match f.absences.len() as i64 {
                0 => "nothing was left unread".into(),
                1 => "1 thing could not be read".into(),
                n => format!("{n} things could not be read"),
            }
        ),
        None => "There are no samples.".into(),
    };
    let residual = f
        .residuals
        .iter()
        .max_by(|a, b| a.max_abs_share.total_cmp(&b.max_abs_share));
    let residual = residual.map(|r| {
        Part::Say(format!(
            "Available memory is what the other categories leave over. Summed from its parts instead (free, idle processes, unused \
             cache, reclaimable kernel memory), it differs by {} on average and by {} at most, {} of memory.",
            bytes(r.mean_bytes),
            stored_bytes(r.max_abs_bytes),
            share(r.max_abs_share)
        ))
    });
    let cost = f
        .agent_cost
        .iter()
        .max_by(|a, b| a.mean_cpu_ms.total_cmp(&b.mean_cpu_ms));
    let cost = cost.map(|c| {
        Part::Say(format!(
            "Tracing itself took {:.1}\u{a0}ms of CPU time a sample on average, {:.1}\u{a0}ms at most{}, and {} of memory at most.",
            c.mean_cpu_ms,
            c.max_cpu_ms,
            c.cpu_share.map(|s| format!(" ({} of one CPU)", share(s))).unwrap_or_default(),
            stored_bytes(c.max_rss_bytes)
        ))
    });
    parts([
        Some(Part::Say(summary)),
        trust::coverage(view).map(Part::Table),
        trust::gaps(view).map(Part::Table),
        trust::absences(view).map(Part::Table),
        trust::activity(view).map(Part::Table),
        residual,
        trust::residuals(view).map(Part::Table),
        cost,
        trust::cost(view).map(Part::Table),
        trust::not_measured(view).map(Part::Table),
        view.prefix
            .is_empty()
            .then(|| trust::parameters(view))
            .flatten()
            .map(Part::Table),
    ])
}

/// What is said in place of a measure: the analysis' reason, or else `otherwise`.
fn without(view: &View, measure: &str, otherwise: &str) -> Part {
    Part::Say(
        view.reason_without(measure)
            .map_or_else(|| otherwise.to_owned(), sentence),
    )
}

/// A reason as a sentence.
fn sentence(reason: &str) -> String {
    let mut letters = reason.trim().trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

fn parts<const N: usize>(parts: [Option<Part>; N]) -> Vec<Part> {
    parts.into_iter().flatten().collect()
}
