//! Time for which a region stays available: odds for lease terms, and lower bounds of the periods; one line per
//! region.

use super::{is_worth_a_row, or_dash, percent, table, text};
use gleaner_schemas::findings::{
    AvailabilityOdds, BoundVerdict, Findings, Notion, PeriodBound, Scope,
};
use gleaner_schemas::units::{Bytes, Seconds};

/// Horizons shown, in seconds: as many as fit into a line.
const AHEAD_S: [f64; 6] = [600.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 259_200.0];

const fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::All => "all",
        Scope::Idle => "idle",
    }
}

fn seconds(s: Option<f64>) -> String {
    or_dash(s.map(|s| Seconds(s).to_string()))
}

/// Probability that memory available now is still available later.
pub(super) fn odds(findings: &Findings) -> String {
    let ahead = AHEAD_S.map(|s| format!("after {}", Seconds(s)));
    let mut header = vec!["class", "scope", "region"];
    header.extend(ahead.iter().map(String::as_str));
    let mut t = table(&header, 2);
    let same = |a: &AvailabilityOdds, b: &AvailabilityOdds| {
        (&a.size_class, a.scope, a.notion, a.region_bytes)
            == (&b.size_class, b.scope, b.notion, b.region_bytes)
    };
    for of_region in findings.availability_odds.chunk_by(same) {
        let region = &of_region[0];
        if region.notion != Notion::Available || !is_worth_a_row(findings, &region.size_class) {
            continue;
        }
        let mut row = vec![
            region.size_class.clone(),
            scope(region.scope).to_owned(),
            Bytes::from(region.region_bytes).to_string(),
        ];
        row.extend(AHEAD_S.map(|s| {
            let found = of_region.iter().find(|o| o.ahead_s == s);
            or_dash(found.map(|o| match (o.low, o.high) {
                (Some(low), Some(high)) => {
                    let (low, high) = (low * 100.0, high * 100.0);
                    format!("{} ({low:.0}-{high:.0})", percent(o.available_probability))
                }
                _ => percent(o.available_probability),
            }))
        }));
        t.add_row(row);
    }
    format!(
        "{}\n  In brackets 95 % intervals over hosts. Which cause loses the rest: --json.",
        text(&t)
    )
}

/// Lower bounds of period lengths: one line per region, one column per quantile.
pub(super) fn bounds(findings: &Findings) -> String {
    let same = |a: &PeriodBound, b: &PeriodBound| {
        (&a.size_class, a.scope, a.region_bytes) == (&b.size_class, b.scope, b.region_bytes)
    };
    let mut header: Vec<String> = ["class", "scope", "region", "periods", "cut"]
        .map(str::to_owned)
        .to_vec();
    let regions = || findings.period_bounds.chunk_by(same);
    let first = regions().next().unwrap_or_default();
    header.extend(
        first
            .iter()
            .map(|b| format!("{} last", percent(1.0 - b.quantile))),
    );
    header.push("verdict".to_owned());
    let mut t = table(&header.iter().map(String::as_str).collect::<Vec<_>>(), 2);
    for of_region in regions().filter(|r| is_worth_a_row(findings, &r[0].size_class)) {
        let b = &of_region[0];
        let mut row = vec![
            b.size_class.clone(),
            scope(b.scope).to_owned(),
            Bytes::from(b.region_bytes).to_string(),
            b.periods_count.to_string(),
            percent(b.censored_share),
        ];
        row.extend(of_region.iter().map(|b| seconds(b.bound_s)));
        // One verdict per region: the first of its bounds' verdicts that is not "too few periods".
        let mut verdicts = of_region.iter().map(|b| b.verdict);
        let verdict = verdicts.find(|v| *v != BoundVerdict::TooFew);
        row.push(
            match verdict.unwrap_or(BoundVerdict::TooFew) {
                BoundVerdict::Holds => "holds",
                BoundVerdict::Censored => "cut periods: true value may be larger",
                BoundVerdict::Dependent => "dependent periods: less certain",
                BoundVerdict::TooFew => "too few periods",
            }
            .to_owned(),
        );
        t.add_row(row);
    }
    format!(
        "{}\n  Lower bounds of the length. The confidence is 95 % where the verdict is \"holds\".",
        text(&t)
    )
}
