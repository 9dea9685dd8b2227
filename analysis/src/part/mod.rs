//! Parts of an analysis: merged results of some of a dataset's hosts, which can be stored, sent and merged.
//!
//! A part holds *segments*: ranges of hosts, by their positions in the plan's order, each with the merged
//! results of its hosts. Two segments become one as soon as they touch, so that hosts are always merged in the
//! plan's order: that of ids, or by groups ([`Plan::by_groups`]). The findings are therefore the same to the
//! byte, whatever the parts and the order in which they are merged; a part that is merged twice counts once.
//! They do not depend on the plan's order either.

mod plan;
mod stored;

use crate::error::{AnalysisError, PartError, Result};
use crate::fleet::Fleet;
use crate::host::HostFindings;
use crate::measure::Pass;
use crate::sizes::Classes;
use crate::trace::calendar::Calendar;
use crate::{in_order, measures, sources};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Finding, Findings, Parameters, TraceSource};
use gleaner_schemas::rows::SampleRow;
pub use plan::Plan;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::Range;

/// Progress of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Number of hosts done.
    pub hosts_done: usize,
    /// Number of hosts in all.
    pub hosts_count: usize,
    is_cancelled: &'a Cell<bool>,
}

impl Progress<'_> {
    /// Ends the analysis: it returns [`AnalysisError::Cancelled`].
    pub fn cancel(&self) {
        self.is_cancelled.set(true);
    }
}

/// Part of an analysis: the merged results of some of the hosts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    analysis: Analysis,
    /// Segments in the order of their hosts; no two of them touch.
    segments: Vec<Segment>,
}

/// Properties that all parts of one analysis share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Analysis {
    /// Parameters with all defaults chosen.
    parameters: Parameters,
    /// Number of hosts of the datasets.
    hosts_count: usize,
    /// Hash of the hosts' ids.
    hosts_hash: String,
    /// Sources that the datasets describe.
    sources: Vec<TraceSource>,
    /// Times of the first and the last sample in the datasets, ms since 1970-01-01 UTC.
    samples_ms: Option<(i64, i64)>,
}

/// Merged results of hosts that follow each other.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Segment {
    /// Positions of the hosts in the plan's order.
    hosts: Range<usize>,
    fleet: Fleet,
}

impl Part {
    /// Analyses the hosts of `plan`, each in the dataset that has it. `points_count` is the maximum number of
    /// points over time per host.
    pub(crate) fn of_hosts(
        datasets: &[&Dataset],
        plan: &Plan,
        dataset_of: impl Fn(usize) -> usize + Sync,
        points_count: usize,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Self> {
        let parameters = &plan.parameters;
        let hosts: Vec<(usize, &String)> = plan.hosts().iter().enumerate().collect();
        let ahead = datasets.iter().map(|d| d.read_ahead(plan.hosts()));
        let ahead: Vec<Dataset> = ahead.collect();
        let classes = Classes::new(&parameters.size_class_bytes);
        let pass = Pass {
            parameters,
            classes: &classes,
            calendar: &Calendar::new(&parameters.time_zone)?,
            reads: measures::reads(parameters),
            wants_returns: measures::wants_returns(parameters),
            points_count,
        };
        let mut fleet = Fleet::default();
        let (mut hosts_done, hosts_count) = (0, hosts.len());
        let is_cancelled = Cell::new(false);
        in_order::each(
            &hosts,
            |&(at, host)| HostFindings::of(&ahead[dataset_of(at)], host, &pass),
            |found| {
                fleet.add(found, &classes);
                hosts_done += 1;
                progress(Progress {
                    hosts_done,
                    hosts_count,
                    is_cancelled: &is_cancelled,
                });
                if is_cancelled.get() {
                    return Err(AnalysisError::Cancelled);
                }
                Ok(())
            },
        )?;
        let segment = Segment {
            hosts: plan.range(),
            fleet,
        };
        Ok(Self {
            analysis: Analysis::of(datasets, plan),
            segments: (!segment.hosts.is_empty())
                .then_some(segment)
                .into_iter()
                .collect(),
        })
    }

    /// This part with the hosts of another part of the same analysis. Hosts that both have count once. `origin`
    /// names the other part's file, for errors.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] with [`PartError::OtherAnalysis`], or with [`PartError::Overlap`] if each of two
    /// ranges of hosts has only some of the other's hosts.
    pub fn merge(self, other: Self, origin: &str) -> Result<Self> {
        let merged = self.with(other);
        merged.map_err(|source| AnalysisError::Part {
            origin: origin.to_owned(),
            source,
        })
    }

    fn with(self, other: Self) -> Result<Self, PartError> {
        if let Some(difference) = self.analysis.difference(&other.analysis) {
            return Err(PartError::OtherAnalysis { difference });
        }
        let mut all = self.segments;
        all.extend(other.segments);
        // Of segments with the same start the longest comes first, and holds the others.
        all.sort_by_key(|segment| (segment.hosts.start, Reverse(segment.hosts.end)));
        let mut segments: Vec<Segment> = Vec::new();
        for segment in all {
            match segments.last_mut() {
                Some(last) if last.hosts.end == segment.hosts.start => {
                    last.fleet.merge(segment.fleet);
                    last.hosts.end = segment.hosts.end;
                }
                Some(last) if last.holds(&segment.hosts) => {}
                Some(last) if last.hosts.end > segment.hosts.start => {
                    return Err(PartError::Overlap {
                        first: last.hosts.clone(),
                        second: segment.hosts,
                    });
                }
                _ => segments.push(segment),
            }
        }
        Ok(Self {
            analysis: self.analysis,
            segments,
        })
    }

    /// Keeps only the records of type `F` for which `is_kept` returns true. Only records of single hosts are
    /// affected: figures of several hosts are computed later.
    pub fn retain_records<F: Finding>(&mut self, mut is_kept: impl FnMut(&F) -> bool) {
        for segment in &mut self.segments {
            F::list_mut(&mut segment.fleet.findings).retain(&mut is_kept);
        }
    }

    /// Positions of the hosts that the part has, in the plan's order, from 0.
    pub fn hosts(&self) -> impl Iterator<Item = Range<usize>> {
        self.segments.iter().map(|segment| segment.hosts.clone())
    }

    /// Number of hosts in the whole analysis.
    #[must_use]
    pub fn hosts_count(&self) -> usize {
        self.analysis.hosts_count
    }

    /// Parameters of the analysis, with all defaults chosen.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.analysis.parameters
    }

    /// Findings of the whole analysis.
    ///
    /// # Errors
    /// [`AnalysisError::Part`] with [`PartError::Incomplete`] if hosts are missing;
    /// [`AnalysisError::NoSamples`] and [`AnalysisError::NoSamplesInSpan`] if no host had samples.
    pub fn finish(self) -> Result<Findings> {
        let hosts_count = self.analysis.hosts_count;
        let mut end = 0;
        for hosts in (self.segments.iter().map(|s| &s.hosts)).chain([&(hosts_count..hosts_count)]) {
            if hosts.start > end {
                return Err(AnalysisError::Part {
                    origin: "the merged parts".to_owned(),
                    source: PartError::Incomplete {
                        missing: end..hosts.start,
                        hosts_count,
                    },
                });
            }
            end = hosts.end;
        }
        self.finish_alone()
    }

    /// Findings of the part's hosts alone, as of a dataset without other hosts. Sizes that were chosen from the
    /// hosts' memory are those of the whole analysis, so that parts can be compared.
    ///
    /// # Errors
    /// [`AnalysisError::NoSamples`] and [`AnalysisError::NoSamplesInSpan`] if no host of the part had samples.
    pub fn finish_alone(self) -> Result<Findings> {
        let hosts_count = self.hosts().map(|hosts| hosts.len()).sum();
        let Analysis {
            parameters,
            sources,
            samples_ms,
            ..
        } = self.analysis;
        let (from_ms, until_ms) = (parameters.from_time_ms, parameters.until_time_ms);
        let fleets = self.segments.into_iter().map(|segment| segment.fleet);
        let fleet = fleets.reduce(|mut fleet, next| {
            fleet.merge(next);
            fleet
        });
        if let Some(mut findings) = fleet.and_then(|fleet| fleet.finish(parameters)) {
            findings.sources = sources::of(&sources, &findings.hosts);
            return Ok(findings);
        }
        Err(match samples_ms {
            Some((first_ms, last_ms)) => AnalysisError::NoSamplesInSpan {
                from_ms,
                until_ms,
                first_ms,
                last_ms,
            },
            None => AnalysisError::NoSamples { hosts_count },
        })
    }
}

impl Analysis {
    fn of(datasets: &[&Dataset], plan: &Plan) -> Self {
        let (hosts_count, hosts_hash) = plan.whole();
        let files = datasets.iter().flat_map(|d| &d.manifest().files);
        let samples = files.filter(|file| file.table == SampleRow::TABLE.name);
        let times = samples.map(|file| (file.first_time_ms, file.last_time_ms));
        Self {
            parameters: plan.parameters.clone(),
            hosts_count,
            hosts_hash: hosts_hash.to_owned(),
            sources: sources::described_in(datasets),
            samples_ms: times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
        }
    }

    /// First difference between two analyses, in words; `None` if they are the same.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        if self.parameters != other.parameters {
            Some("its parameters differ")
        } else if (self.hosts_count, &self.hosts_hash) != (other.hosts_count, &other.hosts_hash) {
            Some("its dataset had other hosts")
        } else {
            (self.sources != other.sources).then_some("its dataset describes other sources")
        }
    }
}

impl Segment {
    /// Returns true if all of these hosts are in the segment.
    fn holds(&self, hosts: &Range<usize>) -> bool {
        self.hosts.start <= hosts.start && hosts.end <= self.hosts.end
    }
}
