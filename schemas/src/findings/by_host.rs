//! Separation of the findings' records: those of single hosts, and those of several hosts.

use super::{Finding, FindingVisitor, Findings};
use serde::{Deserialize, Serialize};

/// Value of `host_id` in a record about all hosts, for lists whose records always have a host id.
const ALL_HOSTS: &str = "all";

/// Files with the records of single hosts. The document that names the files has only the records of several
/// hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RecordFiles {
    /// Path of the folder with the files, as given to the command.
    pub folder: String,
    /// Files in the order of the lists; a list without records of single hosts has no file.
    pub files: Vec<RecordFile>,
}

/// Parquet file with the records of single hosts that belong to one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct RecordFile {
    /// Key of the list.
    pub measure: String,
    /// Name of the file in the folder.
    pub file: String,
    /// Number of records in the file.
    pub rows_count: i64,
    /// BLAKE3 hash of the file's bytes, in hexadecimal.
    pub blake3: String,
}

/// Findings as a document, with the names of the files that have the records of single hosts.
#[derive(Debug, Serialize)]
pub struct FindingsDocument<'a> {
    /// Findings without the records in the files.
    #[serde(flatten)]
    pub findings: &'a Findings,
    /// Files with the other records.
    pub records: &'a RecordFiles,
}

/// Removes the records of single hosts from one list of the findings. Returns these records in the order of
/// host ids; records of the same host keep their order.
#[must_use]
pub fn take_records_of_hosts<F: Finding>(findings: &mut Findings) -> Vec<F> {
    let (mut of_hosts, mut of_several) = (Vec::new(), Vec::new());
    for mut record in std::mem::take(F::list_mut(findings)) {
        let host = record.host_fields().id;
        match host.filter(|id| id.as_str() != ALL_HOSTS).cloned() {
            Some(host) => of_hosts.push((host, record)),
            None => of_several.push(record),
        }
    }
    *F::list_mut(findings) = of_several;
    of_hosts.sort_by(|(a, _), (b, _)| a.cmp(b));
    of_hosts.into_iter().map(|(_, record)| record).collect()
}

impl Findings {
    /// Sorts the records of single hosts in each list by host id; records of several hosts follow them.
    pub fn sort_by_host(&mut self) {
        Self::visit(&mut Sorter(self));
    }
}

/// Sorts every list of the findings by host id.
struct Sorter<'a>(&'a mut Findings);

impl FindingVisitor for Sorter<'_> {
    fn visit<F: Finding>(&mut self) {
        let mut sorted = take_records_of_hosts::<F>(self.0);
        let list = F::list_mut(self.0);
        sorted.append(list);
        *list = sorted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{MissingMeasure, Reclaims};

    fn reclaims(host: Option<&str>, count: i64) -> Reclaims {
        Reclaims {
            host_id: host.map(str::to_owned),
            size_class: "all".to_owned(),
            hosts_count: 1,
            reclaims_count: count,
            observed_days: 1.0,
            reclaims_per_day: 0.0,
        }
    }

    fn missing(host: &str) -> MissingMeasure {
        MissingMeasure {
            measure: "dips".to_owned(),
            host_id: host.to_owned(),
            reason: String::new(),
        }
    }

    #[test]
    fn records_are_sorted_by_host_and_those_of_several_hosts_stay() {
        let mut findings = Findings {
            reclaims: [(Some("b"), 1), (None, 2), (Some("a"), 3), (Some("b"), 4)]
                .map(|(host, count)| reclaims(host, count))
                .to_vec(),
            missing_measures: ["z", "all", "b"].map(missing).to_vec(),
            ..Findings::default()
        };
        findings.sort_by_host();
        let counts = |list: &[Reclaims]| -> Vec<i64> {
            list.iter().map(|record| record.reclaims_count).collect()
        };
        assert_eq!(counts(&findings.reclaims), [3, 1, 4, 2]);
        assert_eq!(
            findings.missing_measures,
            ["b", "z", "all"].map(missing).to_vec()
        );
        let of_hosts = take_records_of_hosts::<Reclaims>(&mut findings);
        assert_eq!(counts(&of_hosts), [3, 1, 4]);
        assert_eq!(counts(&findings.reclaims), [2]);
    }

    #[test]
    fn a_document_names_the_files_beside_its_lists() {
        let findings = Findings::default();
        let records = RecordFiles {
            folder: "records".to_owned(),
            files: vec![RecordFile::default()],
        };
        let document = FindingsDocument {
            findings: &findings,
            records: &records,
        };
        let mut document = serde_json::to_value(&document).unwrap();
        let named = document.as_object_mut().unwrap().remove("records").unwrap();
        assert_eq!(
            serde_json::from_value::<RecordFiles>(named).unwrap(),
            records
        );
        assert_eq!(document, serde_json::to_value(&findings).unwrap());
    }
}
