//! Traits of the measures. A measure declares the findings that it writes and the data that it reads for
//! them, adds up hosts, and writes records.
//!
//! A new measure is one file in its module, and one line in `measures.rs`.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::sizes::Classes;
use crate::trace::calendar::Calendar;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{Finding, Findings, Parameters};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A finding that a measure writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasureOutput {
    pub(crate) key: &'static str,
    /// Columns and tables of each host that the finding needs.
    pub(crate) reads: ReadSet,
    /// True if the finding needs the owner's returns, which are unknown on some hosts.
    pub(crate) rests_on_returns: bool,
}

impl MeasureOutput {
    pub(crate) const fn of<F: Finding>(reads: ReadSet) -> Self {
        Self {
            key: F::KEY,
            reads,
            rests_on_returns: false,
        }
    }

    /// Output that also needs the owner's returns.
    pub(crate) const fn on_returns(self) -> Self {
        Self {
            rests_on_returns: true,
            ..self
        }
    }
}

/// A measure pooled over hosts. Hosts are merged in the order of their ids.
///
/// The figures must not depend on the order of merges of neighbours: `(a + b) + c` equals `a + (b + c)` to the
/// bit, because an analysis may be done in parts ([`crate::part`]). Sums are therefore integers.
pub(crate) trait Measure: Sized + Serialize + DeserializeOwned {
    /// Findings that the measure writes; it is skipped if none of them is requested.
    const OUTPUTS: &'static [MeasureOutput];

    /// Computes one host's part of the measure.
    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self>;

    /// Adds the records of this single host, which is in `size_class`; most measures have none.
    fn write_host(
        &self,
        _host: &str,
        _size_class: &str,
        _parameters: &Parameters,
        _findings: &mut Findings,
    ) {
    }

    /// Adds another host's part, which must have the same parameters.
    fn merge(&mut self, other: &Self);

    /// Adds the records of the merged hosts; these are the class `size_class`, or all hosts (`all`).
    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings);

    /// Returns true if one of the measure's findings is requested.
    fn is_wanted(parameters: &Parameters) -> bool {
        Self::OUTPUTS
            .iter()
            .any(|output| parameters.wants(&[output.key]))
    }
}

/// A measure of each single host.
pub(crate) trait HostMeasure {
    /// Findings that the measure writes.
    const OUTPUTS: &'static [MeasureOutput];

    /// Adds the host's records. Measures that precede this one in the list have added theirs.
    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()>;
}

/// Settings of the pass over each host.
pub(crate) struct Pass<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) classes: &'a Classes,
    pub(crate) calendar: &'a Calendar,
    /// Columns and tables to be read for each host.
    pub(crate) reads: ReadSet,
    /// True if a requested finding needs the owner's returns.
    pub(crate) wants_returns: bool,
    /// Maximum number of points over time per host.
    pub(crate) points_count: usize,
}

/// Declares a struct of measures that are pooled over the same hosts.
macro_rules! pools {
    ($(#[doc = $doc:literal])+ $name:ident { $($field:ident : $measure:ty),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name {
            $($field: Option<$measure>,)+
        }

        impl $name {
            /// Findings that these measures write.
            pub(crate) const OUTPUTS: &'static [&'static [MeasureOutput]] = &[$(<$measure>::OUTPUTS),+];

            pub(crate) fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
                Ok(Self {
                    $($field: if <$measure>::is_wanted(parameters) {
                        Some(<$measure>::of_host(host, parameters)?)
                    } else {
                        None
                    },)+
                })
            }

            pub(crate) fn write_host(
                &self,
                host: &str,
                size_class: &str,
                parameters: &Parameters,
                findings: &mut Findings,
            ) {
                $(if let Some(measure) = &self.$field {
                    measure.write_host(host, size_class, parameters, findings);
                })+
            }

            pub(crate) fn merge(&mut self, other: &Self) {
                $(if let (Some(mine), Some(other)) = (&mut self.$field, &other.$field) {
                    mine.merge(other);
                })+
            }

            pub(crate) fn write(
                &self,
                size_class: &str,
                parameters: &Parameters,
                findings: &mut Findings,
            ) {
                $(if let Some(measure) = &self.$field {
                    measure.write(size_class, parameters, findings);
                })+
            }
        }
    };
}
pub(crate) use pools;

/// Declares measures of each single host, in the order in which they are taken.
macro_rules! alone {
    ($(#[doc = $doc:literal])+ $name:ident: $($measure:ty),+ $(,)?) => {
        $(#[doc = $doc])+
        pub(crate) struct $name;

        impl $name {
            /// Findings that these measures write.
            pub(crate) const OUTPUTS: &'static [&'static [MeasureOutput]] = &[$(<$measure>::OUTPUTS),+];

            pub(crate) fn write(
                host: &mut HostHistory<'_>,
                pass: &Pass<'_>,
                findings: &mut Findings,
            ) -> Result<()> {
                $(<$measure>::write(host, pass, findings)?;)+
                Ok(())
            }
        }
    };
}
pub(crate) use alone;
