//! Sites of a fleet: a table with a row for each site, on the page of all hosts.

use crate::ReportError;
use crate::clock::Clock;
use crate::fleet::Fleet;
use crate::options::{Options, Site, SiteFigures};
use crate::page::table::{Cell, Table, numbers, words};
use crate::page::{Part, Section};
use crate::questions::{short, trust};
use crate::view::View;
use crate::wording::count;
use gleaner_schemas::findings::{Findings, HostSummary};

/// Figures of a site, from the findings of its hosts alone; `None` without samples.
///
/// # Errors
/// [`ReportError::TimeZone`] if the options' time zone is unknown.
pub fn site_figures(
    findings: &Findings,
    options: &Options,
) -> Result<Option<SiteFigures>, ReportError> {
    let clock = Clock::new(&options.time_zone)?;
    let view = View::new(findings, None, &clock, options.span.as_ref());
    let Some(fleet) = Fleet::of(&view) else {
        return Ok(None);
    };
    let shortage = short::shortage(&view);
    Ok(Some(SiteFigures {
        physical_bytes: findings.hosts.iter().map(|h| h.physical_bytes).sum(),
        available_bytes: fleet.available_bytes,
        available_share: fleet.available_share,
        idle_share: idle_share(&findings.hosts),
        short_intervals_count: shortage.intervals_count,
        short_hosts_count: shortage.hosts_count,
        missing_share: trust::missing_share(&view),
        silent_hosts_count: trust::silent_hosts_count(&view),
    }))
}

/// Share of the covered time of all hosts in which they were idle; `None` if it is unknown on every host.
fn idle_share(hosts: &[HostSummary]) -> Option<f64> {
    let covered_ms = |host: &HostSummary| {
        host.to_time_ms.saturating_sub(host.from_time_ms) as f64 * host.coverage_share
    };
    let known = hosts.iter().filter_map(|host| {
        let idle_share = host.idle_share?;
        Some((idle_share * covered_ms(host), covered_ms(host)))
    });
    let (idle_ms, all_ms) = known.fold((0.0, 0.0), |(idle, all), (i, a)| (idle + i, all + a));
    (all_ms > 0.0).then(|| idle_ms / all_ms)
}

/// Section with the table of sites.
pub(crate) fn section(sites: &[Site]) -> Section {
    let hosts_count: usize = sites.iter().map(|site| site.hosts.len()).sum();
    Section {
        id: "sites".into(),
        title: "Site by site".into(),
        answer: format!(
            "There is a page for each of {} with its hosts, {} in all: click a name.",
            count(sites.len() as i64, "site"),
            count(hosts_count as i64, "host")
        ),
        parts: table(sites).map(Part::Table).into_iter().collect(),
    }
}

fn table(sites: &[Site]) -> Option<Table> {
    let mut columns = vec![words("site")];
    let labels = [
        "hosts",
        "silent",
        "memory",
        "available",
        "share",
        "idle",
        "dips",
        "short",
        "missing",
    ];
    columns.extend(labels.map(numbers));
    let mut table = Table::new(
        "sites-table".into(),
        format!("All {}", count(sites.len() as i64, "site")),
        columns,
    )
    .with_note(
        "Silent: hosts without samples. Available, its share and idle: means over the covered time. Dips: number of sample \
         intervals with less than a tenth of a host’s memory available. Short: hosts that need more memory. Missing: share of the \
         requested time that samples do not cover, on hosts with samples.",
    );
    // Readers look up sites in this table, so it always has all of them.
    table.rows_shown = usize::MAX;
    table.stays_open = true;
    table.with_rows(sites.iter().map(row).collect())
}

fn row(site: &Site) -> Vec<Cell> {
    let name = Cell::text(&site.name);
    let figures = site.figures.as_ref();
    let hosts_count = site.hosts.len() as i64;
    vec![
        match &site.page {
            Some(page) => name.link(page),
            None => name,
        },
        Cell::count(hosts_count),
        Cell::count(figures.map_or(hosts_count, |f| f.silent_hosts_count)),
        Cell::or_absent(figures, |f| Cell::bytes(f.physical_bytes as f64)),
        Cell::or_absent(figures, |f| Cell::bytes(f.available_bytes)),
        Cell::or_absent(figures, |f| {
            Cell::share(f.available_share)
                .swatch("available")
                .bar(f.available_share)
        }),
        Cell::or_absent(figures.and_then(|f| f.idle_share), Cell::share),
        Cell::or_absent(figures.and_then(|f| f.short_intervals_count), Cell::count),
        Cell::or_absent(figures, |f| Cell::count(f.short_hosts_count)),
        Cell::or_absent(figures, |f| Cell::share(f.missing_share)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::HostMemory;

    fn host(id: &str, hours: i64, idle_share: Option<f64>) -> HostSummary {
        HostSummary {
            host_id: id.to_owned(),
            host_name: id.to_owned(),
            physical_bytes: 1 << 30,
            to_time_ms: hours * 3_600_000,
            coverage_share: 1.0,
            idle_share,
            ..HostSummary::default()
        }
    }

    #[test]
    fn idle_time_is_weighted_by_covered_time() {
        let hosts = [
            host("a", 1, Some(1.0)),
            host("b", 3, Some(0.0)),
            host("c", 9, None),
        ];
        assert_eq!(idle_share(&hosts), Some(0.25));
        assert_eq!(idle_share(&hosts[2..]), None);
    }

    #[test]
    fn a_site_without_samples_has_dashes_and_no_page() {
        let options = Options::default();
        let nothing = site_figures(&Findings::default(), &options).unwrap();
        assert_eq!(nothing, None);
        let findings = Findings {
            hosts: vec![host("a", 2, Some(0.5))],
            memory_by_host: vec![HostMemory {
                host_id: "a".to_owned(),
                category: "available".to_owned(),
                samples_count: 10,
                mean_bytes: (1 << 29) as f64,
                mean_share: 0.5,
                ..HostMemory::default()
            }],
            ..Findings::default()
        };
        let figures = site_figures(&findings, &options).unwrap().unwrap();
        assert_eq!(figures.physical_bytes, 1 << 30);
        assert_eq!(
            (figures.available_share, figures.idle_share),
            (0.5, Some(0.5))
        );
        let site = |figures: Option<SiteFigures>| Site {
            name: "lab".to_owned(),
            page: figures.as_ref().map(|_| "week-sites/lab.html".to_owned()),
            hosts: vec!["a".to_owned(), "b".to_owned()],
            figures,
        };
        let section = section(&[site(Some(figures)), site(None)]);
        assert!(
            section.answer.contains("2\u{a0}sites"),
            "{}",
            section.answer
        );
        let [Part::Table(table)] = &section.parts[..] else {
            panic!("a table alone");
        };
        let [with, without] = &table.rows[..] else {
            panic!("two rows");
        };
        assert_eq!(with[0].link.as_deref(), Some("week-sites/lab.html"));
        assert_eq!(
            (without[0].link.as_deref(), without[2].value),
            (None, Some(2.0))
        );
        assert!(without[3..].iter().all(|cell| cell.absent));
        assert!(!with[3..6].iter().any(|cell| cell.absent));
    }
}
