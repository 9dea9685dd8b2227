//! Rate of owners' returns.

use super::{class_cell, decimal, decimal_change};
use crate::page::figure::Figure;
use crate::page::hours::{Map, Measure, Week};
use crate::page::table::{Cell, Table, numbers};
use crate::view::View;
use crate::wording::seconds;
use gleaner_schemas::findings::{Findings, Reclaims};

/// Rate of owners' returns, over hosts of all sizes together.
pub(super) fn pooled(findings: &Findings) -> Option<&Reclaims> {
    of_class(findings, "all")
}

fn of_class<'a>(findings: &'a Findings, class: &str) -> Option<&'a Reclaims> {
    let mut all = findings.reclaims.iter();
    all.find(|r| r.host_id.is_none() && r.size_class == class && r.observed_days > 0.0)
}

/// Table of the rates of returns by class of hosts, with a row for all hosts.
pub(super) fn table(view: &View) -> Option<Table> {
    let f = view.findings;
    let before = view.before.filter(|b| pooled(b).is_some());
    let classes: Vec<&Reclaims> = f.reclaims.iter().filter(|r| r.host_id.is_none()).collect();
    // A single class has the same values as all hosts, so it gets no row.
    let one = classes.len() <= 2;
    let rows = classes
        .into_iter()
        .filter(|r| !one || r.size_class == "all")
        .map(|r| {
            let mut row = vec![
                class_cell(&r.size_class),
                Cell::count(r.hosts_count),
                Cell::count(r.reclaims_count),
                decimal(r.observed_days),
                decimal(r.reclaims_per_day),
            ];
            row.extend(before.map(|b| {
                Cell::or_absent(of_class(b, &r.size_class), |b| {
                    decimal_change(r.reclaims_per_day - b.reclaims_per_day)
                })
            }));
            row
        });
    let mut columns = vec![
        numbers("memory size"),
        numbers("hosts"),
        numbers("returns"),
        numbers("host-days"),
        numbers("returns per host and day"),
    ];
    columns.extend(before.map(|_| numbers("change")));
    let table = Table::new(
        format!("{}reclaims", view.prefix),
        "Owners’ returns after idle periods",
        columns,
    )
    .with_rows(rows.collect())?;
    Some(table.with_note(
        "A return is the owner’s activity, or a load above the limit, after an idle period. Returns count whether or not memory was lent. \
         Host-days: time in which it is known whether the host was idle.",
    ))
}

/// Map of returns per hour of idle time, by hour of the week.
pub(super) fn by_hour(view: &View) -> Option<Figure> {
    let hours = view.findings.reclaims_by_hour.iter();
    let week = Week::of(
        hours
            .filter(|r| r.size_class == "all")
            .map(|r| (r.weekday, r.hour, r.per_idle_hour)),
    );
    let most = week.hour_words(true)?;
    let sentence = format!(
        "Returns per idle hour of a host: {}. Maximum: {}, {:.1}; a lease that starts then lasts {}.",
        week.parts_words(Measure::Number),
        most.0,
        most.1,
        lasts(most.1)
    );
    week.figure(Map {
        id: format!("{}hours-returns", view.prefix),
        title: format!(
            "Rate of owners’ returns by hour of the week{}",
            view.hours_zone()
        ),
        sentence,
        measure: Measure::Number,
        colour: "loss",
        label: "returns per idle hour:",
    })
}

/// Words for the mean length of a lease, from the rate of returns per hour.
fn lasts(per_hour: f64) -> String {
    if per_hour <= 0.0 {
        return "for the whole observed time".into();
    }
    let minutes = (60.0 / per_hour).round().max(1.0);
    format!("{} on average", seconds(60.0 * minutes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::reclaims;
    use super::*;
    use crate::view::ask as of;

    #[test]
    fn the_change_is_by_class_and_only_where_it_is_known() {
        let now = Findings {
            reclaims: vec![reclaims(4.0)],
            ..Findings::default()
        };
        let alone = of(&now, None, table).unwrap();
        assert_eq!(alone.columns.len(), 5);
        let before = Findings {
            reclaims: vec![reclaims(5.5)],
            ..Findings::default()
        };
        let both = of(&now, Some(&before), table).unwrap();
        assert_eq!(both.rows[0][5].text, "−1.5");
        let unknown = of(&now, Some(&Findings::default()), table).unwrap();
        assert_eq!(unknown.columns.len(), 5);
        assert!(of(&Findings::default(), None, table).is_none());
    }
}
