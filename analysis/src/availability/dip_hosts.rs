//! On how many hosts available memory dips how often (Acharya & Setia, Table 3).

use super::dips::{self, Threshold};
use crate::error::Result;
use crate::measure::Measure;
use crate::trace::HostTrace;
use gleaner_schemas::findings::{Dip, DipHosts, Findings, Parameters};

/// The paper's columns: hosts with at least so many intervals below; 0 stands for hosts with none.
const INTERVALS: [i64; 6] = [0, 1, 6, 11, 21, 31];

/// Intervals of each host below each threshold.
#[derive(Clone, Debug)]
pub(crate) struct DipCounts(Vec<Vec<i64>>);

impl Measure for DipCounts {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        let dips = dips::of_host(trace, parameters);
        Ok(Self(
            dips.iter().map(|dip: &Dip| vec![dip.intervals]).collect(),
        ))
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.extend(theirs);
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (threshold, hosts) in Threshold::all(parameters).zip(&self.0) {
            let (threshold_bytes, threshold_share) = threshold.asked();
            findings
                .dip_hosts
                .extend(INTERVALS.map(|at_least| DipHosts {
                    size_class: size_class.to_owned(),
                    threshold_bytes,
                    threshold_share,
                    at_least_intervals: at_least,
                    hosts_count: match at_least {
                        0 => hosts.iter().filter(|n| **n == 0).count(),
                        some => hosts.iter().filter(|n| **n >= some).count(),
                    } as i64,
                    hosts_in_all: hosts.len() as i64,
                }));
        }
    }
}
