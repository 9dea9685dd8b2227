//! Weeks as users name them.

use jiff::civil::{ISOWeekDate, Weekday};

/// A week as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Week {
    /// The last complete week.
    Last,
    /// The week that begins on this Monday.
    Of(ISOWeekDate),
}

/// Parses `2026-W47`, or `last`.
pub(crate) fn week(text: &str) -> Result<Week, String> {
    if text == "last" {
        return Ok(Week::Last);
    }
    let parts = text.split_once("-W").filter(|(year, week)| {
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        year.len() == 4 && week.len() == 2 && digits(year) && digits(week)
    });
    let numbers = parts.and_then(|(year, week)| Some((year.parse().ok()?, week.parse().ok()?)));
    let (year, week): (i16, i8) =
        numbers.ok_or("write an ISO week such as 2026-W47, or `last`".to_owned())?;
    ISOWeekDate::new(year, week, Weekday::Monday)
        .map(Week::Of)
        .map_err(|_| {
            let first = ISOWeekDate::new(year, 1, Weekday::Monday);
            let last = first.map_or(52, ISOWeekDate::weeks_in_year);
            format!("there is no week {week} in {year}: its weeks are W01 to W{last}")
        })
}

/// Name like `2026-W47`.
pub(crate) fn name(week: ISOWeekDate) -> String {
    format!("{:04}-W{:02}", week.year(), week.week())
}
