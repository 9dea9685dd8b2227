//! Parameters of an analysis: checked, and with defaults for sizes left open.

use crate::cluster::grid;
use crate::error::{AnalysisError, Result};
use crate::sizes::{default_dip_thresholds, default_regions};
use crate::trace::inventory::descriptions;
use crate::trace::reader::HostReader;
use crate::trace::span::Span;
use gleaner_dataset::{Dataset, Selection};
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::SampleRow;

/// The parameters that the findings use. If sizes are left open, reads each host's memory size.
pub(crate) fn resolved(datasets: &[&Dataset], asked: &Parameters) -> Result<Parameters> {
    let span = Span::of(asked);
    check(asked)?;
    check_measures(asked)?;
    let mut parameters = asked.clone();
    if parameters.region_bytes.is_empty() || parameters.dip_threshold_bytes.is_empty() {
        let mut largest = 0;
        for dataset in datasets {
            largest = largest_physical_bytes(dataset, span)?.max(largest);
        }
        if parameters.region_bytes.is_empty() {
            parameters.region_bytes = default_regions(largest);
        }
        if parameters.dip_threshold_bytes.is_empty() {
            parameters.dip_threshold_bytes = default_dip_thresholds(largest);
        }
    }
    for sizes in [
        &mut parameters.region_bytes,
        &mut parameters.dip_threshold_bytes,
    ] {
        sizes.sort_unstable();
        sizes.dedup();
    }
    let in_span = Selection {
        from_ms: span.from_ms,
        until_ms: span.until_ms,
        ..Selection::default()
    };
    let days = (datasets.iter()).map(|d| d.dates_selected(&SampleRow::TABLE, &in_span).len());
    let days = days.max().unwrap_or(0);
    parameters.cluster_cell_s = grid::cell_s(parameters.cluster_cell_s, days);
    Ok(parameters)
}

/// Checks that each requested measure is a key of the findings.
fn check_measures(asked: &Parameters) -> Result<()> {
    let keys = Findings::keys();
    match asked.measures.iter().find(|m| !keys.contains(m)) {
        Some(unknown) => Err(AnalysisError::UnknownMeasure {
            measure: unknown.clone(),
            known: keys.join(", "),
        }),
        None => Ok(()),
    }
}

pub(crate) fn check(asked: &Parameters) -> Result<()> {
    if let (Some(from_ms), Some(until_ms)) = (asked.from_time_ms, asked.until_time_ms)
        && from_ms >= until_ms
    {
        return Err(AnalysisError::EmptySpan { from_ms, until_ms });
    }
    let not_negative = "a number of seconds, 0 or more";
    let size = "1 byte or more";
    let seconds = |s: f64| s.is_finite() && s >= 0.0;
    let share = |s: &f64| (0.0..=1.0).contains(s);
    let sizes = |all: &[i64]| all.iter().all(|&bytes| bytes > 0);
    let checks = [
        (
            "minimum_period_s",
            seconds(asked.minimum_period_s),
            asked.minimum_period_s.to_string(),
            not_negative,
        ),
        (
            "idle_after_s",
            seconds(asked.idle_after_s),
            asked.idle_after_s.to_string(),
            not_negative,
        ),
        (
            "load_limit",
            asked.load_limit.is_finite() && asked.load_limit > 0.0,
            asked.load_limit.to_string(),
            "a load above 0",
        ),
        (
            "headroom_share",
            share(&asked.headroom_share),
            asked.headroom_share.to_string(),
            "a share from 0 to 1",
        ),
        (
            "return_window_s",
            seconds(asked.return_window_s),
            asked.return_window_s.to_string(),
            not_negative,
        ),
        (
            "cluster_cell_s",
            asked.cluster_cell_s == 0.0 || (1.0..=86_400.0).contains(&asked.cluster_cell_s),
            asked.cluster_cell_s.to_string(),
            "0, or from 1 to 86400 seconds",
        ),
        (
            "dip_threshold_shares",
            asked.dip_threshold_shares.iter().all(share),
            format!("{:?}", asked.dip_threshold_shares),
            "shares from 0 to 1",
        ),
        (
            "size_class_bytes",
            sizes(&asked.size_class_bytes),
            format!("{:?}", asked.size_class_bytes),
            size,
        ),
        (
            "region_bytes",
            sizes(&asked.region_bytes),
            format!("{:?}", asked.region_bytes),
            size,
        ),
        (
            "dip_threshold_bytes",
            sizes(&asked.dip_threshold_bytes),
            format!("{:?}", asked.dip_threshold_bytes),
            size,
        ),
    ];
    let shares = asked.region_shares.iter();
    let checks = checks.into_iter().chain([(
        "region_shares",
        shares.copied().all(|s| s > 0.0 && s <= 1.0),
        format!("{:?}", asked.region_shares),
        "shares above 0, up to 1",
    )]);
    match checks.into_iter().find(|(_, holds, _, _)| !holds) {
        Some((name, _, value, allowed)) => Err(AnalysisError::Parameter {
            name,
            value,
            allowed,
        }),
        None => Ok(()),
    }
}

fn largest_physical_bytes(dataset: &Dataset, span: Span) -> Result<i64> {
    let mut largest = 0;
    let hosts = dataset.hosts().map_err(AnalysisError::Hosts)?;
    let dataset = &dataset.read_ahead(&hosts);
    for host in hosts {
        // The size is in the host's last description of itself, which takes only a few rows; otherwise in its
        // last sample.
        let mut reader = HostReader::new(dataset, &host, span);
        let said = descriptions(&mut reader, &["physical_bytes"])?;
        let said = said.integers("physical_bytes")?.iter().flatten().last();
        let bytes = match said {
            Some(bytes) => bytes,
            None => {
                let rows = reader.read(&SampleRow::TABLE, &["physical_bytes"])?;
                rows.present("physical_bytes")?.last().copied().unwrap_or(0)
            }
        };
        largest = largest.max(bytes);
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_nothing_could_rest_on_are_refused_by_name() {
        let good = Parameters::default;
        let bad = [
            Parameters {
                minimum_period_s: f64::NAN,
                ..good()
            },
            Parameters {
                idle_after_s: -1.0,
                ..good()
            },
            Parameters {
                load_limit: 0.0,
                ..good()
            },
            Parameters {
                headroom_share: 1.5,
                ..good()
            },
            Parameters {
                return_window_s: f64::INFINITY,
                ..good()
            },
            Parameters {
                cluster_cell_s: 0.5,
                ..good()
            },
            Parameters {
                dip_threshold_shares: vec![0.1, 1.1],
                ..good()
            },
            Parameters {
                size_class_bytes: vec![0],
                ..good()
            },
            Parameters {
                region_bytes: vec![1, 0],
                ..good()
            },
            Parameters {
                dip_threshold_bytes: vec![-1],
                ..good()
            },
            Parameters {
                region_shares: vec![0.5, 0.0],
                ..good()
            },
        ];
        let names = [
            "minimum_period_s",
            "idle_after_s",
            "load_limit",
            "headroom_share",
            "return_window_s",
            "cluster_cell_s",
            "dip_threshold_shares",
            "size_class_bytes",
            "region_bytes",
            "dip_threshold_bytes",
            "region_shares",
        ];
        for (parameters, name) in bad.iter().zip(names) {
            let error = check(parameters).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(check(&good()).is_ok());
    }
}
