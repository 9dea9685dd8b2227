//! Size of the live file cache over samples, and the share of samples at which it fits into the headroom.
//! [`crate::derived::live_files`] computes the size at each sample.

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::statistics::distribution::Distribution;
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{self, Findings, Parameters};
use serde::{Deserialize, Serialize};

/// Unit in which shares are counted: one billionth.
const SHARE_PARTS: i64 = 1_000_000_000;

/// Sums over samples of the live file cache, and the number of samples at which it fits into the headroom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LiveFileCache {
    bytes: Distribution,
    /// Shares of physical memory, in billionths.
    shares: Distribution,
    within_headroom: i64,
    cut: i64,
}

impl Measure for LiveFileCache {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<findings::LiveFileCache>(
        ReadSet::SAMPLES.and_files(),
    )];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let live = &host.live_files;
        let sizes = live
            .file_cache_bytes
            .iter()
            .zip(&host.trace.samples.physical_bytes);
        let known: Vec<(i64, i64)> = sizes.filter_map(|(b, p)| Some(((*b)?, *p))).collect();
        let share = |&(bytes, physical): &(i64, i64)| bytes as f64 / physical.max(1) as f64;
        let parts = known
            .iter()
            .map(|of| (share(of) * SHARE_PARTS as f64) as i64);
        let within = known
            .iter()
            .filter(|of| share(of) <= parameters.headroom_share);
        let cut = live.file_cache_bytes.iter().zip(&live.is_cut);
        Ok(Self {
            bytes: Distribution::of(known.iter().copied()),
            shares: Distribution::of(parts.map(|parts| (parts, 0))),
            within_headroom: within.count() as i64,
            cut: cut.filter(|(b, cut)| b.is_some() && **cut).count() as i64,
        })
    }

    fn merge(&mut self, other: &Self) {
        self.bytes.merge(&other.bytes);
        self.shares.merge(&other.shares);
        self.within_headroom += other.within_headroom;
        self.cut += other.cut;
    }

    fn write(&self, size_class: &str, _: &Parameters, findings: &mut Findings) {
        findings.live_file_cache.extend(self.record(size_class));
    }
}

impl LiveFileCache {
    /// Finding of a class; `None` without a sample.
    fn record(&self, size_class: &str) -> Option<findings::LiveFileCache> {
        let part = |parts: f64| parts / SHARE_PARTS as f64;
        let mean_share = part(self.shares.mean()?);
        let sd_share = self.shares.deviation().map(part);
        Some(findings::LiveFileCache {
            size_class: size_class.to_owned(),
            hosts_count: self.bytes.hosts,
            samples_count: self.bytes.count,
            censored_samples_count: self.cut,
            mean_bytes: self.bytes.mean()?,
            sd_bytes: self.bytes.deviation(),
            median_bytes: self.bytes.median()?,
            max_bytes: self.bytes.max,
            mean_share,
            sd_share,
            mean_plus_sd_share: sd_share.map(|sd| mean_share + sd),
            p99_share: part(self.shares.quantile(0.99)?),
            within_headroom_share: self.within_headroom as f64 / self.bytes.count as f64,
        })
    }
}
