//! Options of a report.

/// Options of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Title of the page.
    pub title: String,
    /// IANA name of the time zone of all times in the report.
    pub time_zone: String,
    /// Time at which the report was made, given by the caller so that the same input gives the same page.
    pub made_at_ms: i64,
    /// Requested time; if absent, the report covers all records.
    pub span: Option<Span>,
    /// True to show hosts as numbers instead of their names and ids.
    pub anonymous: bool,
}

/// The time that a report covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Label for people: `Week 47 of 2026`.
    pub label: String,
    /// Start, in ms since 1970-01-01 UTC.
    pub from_ms: i64,
    /// End, in ms since 1970-01-01 UTC; not part of the span.
    pub until_ms: i64,
    /// Label of the time before the span, for sentences: `the week before`.
    pub before_label: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: "Idle memory".into(),
            time_zone: "UTC".into(),
            made_at_ms: 0,
            span: None,
            anonymous: false,
        }
    }
}
