//! Number of hosts by how often available memory dips on them (Acharya & Setia, Table 3), for each notion of
//! available.

use super::dips::{Threshold, intervals_below};
use super::notions::Sizes;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{DipHosts, FindingList, Findings, Notion, NotionSizes, Parameters};
use serde::{Deserialize, Serialize};

/// The paper's columns: minimum number of intervals below the threshold. 0 stands for hosts without any.
const INTERVALS: [i64; 6] = [0, 1, 6, 11, 21, 31];

/// For each threshold: the number of intervals below it, on each host whose sizes by the notion are known.
type ByThreshold = Vec<Vec<i64>>;

/// Counts by notion, in the order of [`Notion::ALL`]. The other notions need more tables; if they were not
/// requested, only the first has counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DipCounts(Vec<ByThreshold>);

fn requested_notions(parameters: &Parameters) -> &'static [Notion] {
    if parameters.wants(&[NotionSizes::KEY]) {
        &Notion::ALL
    } else {
        &[Notion::Available]
    }
}

impl Measure for DipCounts {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<DipHosts>(ReadSet::FEW)];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let of_notion = |&notion: &Notion| {
            let sizes = Sizes::of(host, notion);
            let physical_bytes = &host.trace.samples.physical_bytes;
            let of_threshold = |threshold| {
                let known = sizes.known.iter().cloned().flatten();
                let known = known.map(|at| (sizes.bytes[at], physical_bytes[at]));
                intervals_below(threshold, known)
            };
            let thresholds = Threshold::all(parameters);
            thresholds
                .map(|t| (!sizes.known.is_empty()).then(|| of_threshold(t)))
                .map(|count| count.into_iter().collect())
                .collect()
        };
        Ok(Self(
            requested_notions(parameters)
                .iter()
                .map(of_notion)
                .collect(),
        ))
    }

    fn merge(&mut self, other: &Self) {
        let pairs = self.0.iter_mut().zip(&other.0);
        for (mine, theirs) in pairs.flat_map(|(m, t)| m.iter_mut().zip(t)) {
            mine.extend(theirs);
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (&notion, thresholds) in Notion::ALL.iter().zip(&self.0) {
            for (threshold, hosts) in Threshold::all(parameters).zip(thresholds) {
                if hosts.is_empty() {
                    continue; // no host of the class has known sizes by the notion
                }
                let (threshold_bytes, threshold_share) = threshold.asked();
                let record = |at_least| DipHosts {
                    size_class: size_class.to_owned(),
                    notion,
                    threshold_bytes,
                    threshold_share,
                    minimum_intervals_count: at_least,
                    hosts_count: match at_least {
                        0 => hosts.iter().filter(|n| **n == 0).count(),
                        some => hosts.iter().filter(|n| **n >= some).count(),
                    } as i64,
                    known_hosts_count: hosts.len() as i64,
                };
                findings.dip_hosts.extend(INTERVALS.map(record));
            }
        }
    }
}
