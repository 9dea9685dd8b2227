//! A problem, with its kind, severity and remedy.

use crate::wording::count;
use serde::{Deserialize, Serialize};

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// The collector fails now, or will soon.
    Fault,
    /// Some hosts, the object store or the Iceberg tables need attention; the collector works.
    Warning,
    /// A fact worth knowing, which harms nothing.
    Notice,
}

impl Severity {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// Kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The journal cannot be moved into the dataset.
    CannotSeal,
    /// Small files cannot be merged into larger ones.
    CannotMerge,
    /// The dataset's manifest cannot be read.
    DatasetUnreadable,
    /// Batches are rejected because the disk is full.
    DiskFull,
    /// Batches will soon be rejected.
    DiskNearlyFull,
    /// The collector's certificate has expired, or will expire within a month.
    CertificateEnding,
    /// Acknowledged records were lost to damage.
    JournalDamaged,
    /// Files of the dataset were damaged, and set aside.
    DatasetDamaged,
    /// Acknowledged batches could not be sealed, and were set aside.
    BatchesSetAside,
    /// Another collector of the dataset does not answer.
    PeerUnreachable,
    /// The copy on an object store cannot be updated.
    CannotPublish,
    /// The Iceberg tables cannot be updated.
    CannotPublishTables,
    /// Hosts were rejected at their last attempt.
    HostsRejected,
    /// Hosts were not heard recently.
    HostsSilent,
    /// Hosts whose clocks are wrong by more than a minute.
    ClocksWrong,
    /// The agents have several versions.
    SeveralVersions,
}

impl Kind {
    pub(crate) const ALL: [Self; 16] = [
        Self::CannotSeal,
        Self::CannotMerge,
        Self::DatasetUnreadable,
        Self::DiskFull,
        Self::DiskNearlyFull,
        Self::CertificateEnding,
        Self::JournalDamaged,
        Self::DatasetDamaged,
        Self::BatchesSetAside,
        Self::PeerUnreachable,
        Self::CannotPublish,
        Self::CannotPublishTables,
        Self::HostsRejected,
        Self::HostsSilent,
        Self::ClocksWrong,
        Self::SeveralVersions,
    ];

    pub(crate) fn severity(self) -> Severity {
        match self {
            Self::CannotPublish
            | Self::CannotPublishTables
            | Self::HostsRejected
            | Self::HostsSilent
            | Self::ClocksWrong => Severity::Warning,
            Self::SeveralVersions => Severity::Notice,
            _ => Severity::Fault,
        }
    }

    /// Address of the page that lists the hosts with this problem.
    pub(in crate::http) fn hosts_address(self) -> &'static str {
        match self {
            Self::HostsRejected => "/?state=rejected",
            Self::HostsSilent => "/?state=silent",
            Self::ClocksWrong => "/?sort=-clock",
            _ => "/",
        }
    }

    /// Name in JSON and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CannotSeal => "cannot_seal",
            Self::CannotMerge => "cannot_merge",
            Self::DatasetUnreadable => "dataset_unreadable",
            Self::DiskFull => "disk_full",
            Self::DiskNearlyFull => "disk_nearly_full",
            Self::CertificateEnding => "certificate_ending",
            Self::JournalDamaged => "journal_damaged",
            Self::DatasetDamaged => "dataset_damaged",
            Self::BatchesSetAside => "batches_set_aside",
            Self::PeerUnreachable => "peer_unreachable",
            Self::CannotPublish => "cannot_publish",
            Self::CannotPublishTables => "cannot_publish_tables",
            Self::HostsRejected => "hosts_rejected",
            Self::HostsSilent => "hosts_silent",
            Self::ClocksWrong => "clocks_wrong",
            Self::SeveralVersions => "several_versions",
        }
    }
}

/// Problem of the collector or a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    pub(crate) severity: Severity,
    /// Description of the problem, as a sentence.
    pub(crate) text: String,
    /// Remedy for the administrator.
    pub(crate) remedy: String,
    /// Number of hosts with this problem.
    pub(crate) hosts_count: u64,
    /// Some of these hosts, one line each.
    pub(crate) hosts: Vec<String>,
}

impl Problem {
    /// Text like `all 1,200 hosts`.
    pub(in crate::http) fn all_hosts(&self) -> String {
        format!("all {}", count(self.hosts_count, "host"))
    }
}
