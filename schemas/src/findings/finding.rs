//! Declaration of a finding. It is made once; code that prints, compares, splits or anonymises findings reads
//! it here.

use super::Findings;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A list of the [`Findings`]. The type of the list's records implements this trait.
pub trait Finding: FindingList + Clone + Serialize + DeserializeOwned {
    /// Heading and place among the tables of `gleaner analyze`; absent if the list is printed only when its
    /// key is requested.
    const PRINTED: Option<TablePlace> = None;
    /// Use of the list in reports.
    const IN_REPORT: ReportUse = ReportUse::Compared;
    /// True if the report's page of a host shows the records of that host.
    const IS_ON_HOST_PAGE: bool = false;
    /// Text fields that name no host and stay unchanged in an anonymous report: words of the analysis, and
    /// recorded names of programs and files.
    const PLAIN_TEXT: &'static [&'static str] = &["size_class"];

    /// Fields in which a record names its host; none in a record of several hosts.
    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::default()
    }
}

/// Place of a list in the [`Findings`]. The macro that declares the lists implements this trait.
pub trait FindingList: Sized {
    /// Key of the list in the document and on the command line.
    const KEY: &'static str;

    /// Returns the list of records of this type.
    fn list(findings: &Findings) -> &[Self];

    /// Returns the mutable list of records of this type.
    fn list_mut(findings: &mut Findings) -> &mut Vec<Self>;
}

/// Visitor of every list of the findings, whatever the type of its records.
pub trait FindingVisitor {
    /// Visits the list whose records are of type `F`.
    fn visit<F: Finding>(&mut self);
}

/// Place among the tables that are printed when no measure is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlace {
    /// Number by which tables are sorted for printing.
    pub at: u16,
    /// Heading of the table.
    pub heading: &'static str,
}

/// Returns the declaration of a printed finding.
pub(super) const fn printed(at: u16, heading: &'static str) -> Option<TablePlace> {
    Some(TablePlace { at, heading })
}

/// Use of a finding in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportUse {
    /// Compared: measured for the time of the report and for the time before.
    Compared,
    /// Alone: measured only for the time of the report, because a comparison would cost time or memory and
    /// say nothing.
    Alone,
    /// Left out: no page shows the list. In a large fleet, such lists make up most of the findings' bytes.
    LeftOut,
}

/// Fields of a record that name its host.
#[derive(Debug, Default)]
pub struct HostFields<'a> {
    /// Id of the host; absent in a record of several hosts.
    pub id: Option<&'a mut String>,
    /// Name of the host; absent if the record has none.
    pub name: Option<&'a mut String>,
    /// A sentence that may name the host.
    pub text: Option<&'a mut String>,
}

impl<'a> HostFields<'a> {
    /// Returns the fields of a record that has only the host's id, which may be absent.
    pub fn id(id: impl Into<Option<&'a mut String>>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

/// The declaration of a finding, without the type of its records.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Key of the list ([`FindingList::KEY`]).
    pub key: &'static str,
    /// Place in the printed tables ([`Finding::PRINTED`]).
    pub printed: Option<TablePlace>,
    /// Use in reports ([`Finding::IN_REPORT`]).
    pub in_report: ReportUse,
    /// Fields of plain text ([`Finding::PLAIN_TEXT`]).
    pub plain_text: &'static [&'static str],
}

impl Declaration {
    pub(super) const fn of<F: Finding>() -> Self {
        Self {
            key: F::KEY,
            printed: F::PRINTED,
            in_report: F::IN_REPORT,
            plain_text: F::PLAIN_TEXT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_findings_are_printed_in_one_place() {
        let printed = Findings::DECLARATIONS
            .iter()
            .filter_map(|about| about.printed);
        let places: Vec<u16> = printed.map(|printed| printed.at).collect();
        let different: BTreeSet<u16> = places.iter().copied().collect();
        assert_eq!(places.len(), different.len(), "{places:?}");
    }

    #[test]
    fn every_list_of_the_document_is_declared() {
        let document = serde_json::to_value(Findings::default()).unwrap();
        let lists = document.as_object().unwrap().iter();
        let lists = lists.filter(|(_, value)| value.is_array());
        let lists: BTreeSet<&str> = lists.map(|(key, _)| key.as_str()).collect();
        let declared: BTreeSet<&str> = Findings::DECLARATIONS
            .iter()
            .map(|about| about.key)
            .collect();
        assert_eq!(lists, declared);
        assert!(Findings::keys().iter().is_sorted());
    }
}
