//! Forecasts for a simulation, learnt by the analysis from records before the simulation's start only.

use crate::analyze;
use anyhow::{Context, bail};
use gleaner_dataset::instant_ms;
use gleaner_policy::forecast::table::Table;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::Parameters;
use gleaner_schemas::rows::SampleRow;
use gleaner_simulator::hosts::physical_bytes;
use gleaner_simulator::sweep::{Cluster, ForecastInputs, Plan};
use std::f64::consts::FRAC_1_SQRT_2;

const DAY_MS: i64 = 86_400_000;

/// Measures from which a forecast table is computed.
const MEASURES: [&str; 4] = [
    "forecast_table",
    "forecast_habits",
    "forecast_weights",
    "forecast_table_size",
];

/// The smallest region that is learnt must not exceed this share of the smallest host's memory.
const SMALLEST_SHARE: f64 = 0.125;
/// Maximum number of region sizes.
const MOST_SIZES: usize = 40;

/// Learns the forecasts that these runs of the plan need.
pub(super) fn learn(plan: &Plan, runs: &[usize], clusters: &mut [Cluster]) -> anyhow::Result<()> {
    for (at, by) in plan.forecasts(runs) {
        let Some(cluster) = clusters.get_mut(at) else {
            continue;
        };
        let table = table(cluster, &by)
            .with_context(|| format!("cannot learn forecasts from dataset {}", cluster.name))?;
        cluster.learnt(by, table);
    }
    Ok(())
}

fn table(cluster: &Cluster, by: &ForecastInputs) -> anyhow::Result<Table> {
    let days = cluster.dataset.dates(&SampleRow::TABLE);
    let first = days.first().map_or("", String::as_str);
    let has_day = |first_ms: i64| first_ms.saturating_add(DAY_MS) <= cluster.from_ms;
    if !instant_ms(first).is_some_and(has_day) {
        bail!(
            "its samples begin on {first}, and recruitment.expected_for_s takes at least a day before the simulation's begin to learn from: choose a later begin (--from)"
        );
    }
    let parameters = Parameters {
        until_time_ms: Some(cluster.from_ms),
        idle_after_s: by.idle.idle_after_ms as f64 / 1000.0,
        load_limit: by.idle.load_limit,
        time_zone: by.time_zone.to_string(),
        region_bytes: region_bytes(&physical_bytes(&cluster.dataset, cluster.from_ms)?),
        measures: MEASURES.map(str::to_owned).to_vec(),
        ..Parameters::default()
    };
    let findings = analyze::findings_of(&cluster.dataset, &parameters, "learning forecasts")?;
    Table::of(&findings).context("the analysis gave no table; that is a fault of Gleaner's")
}

/// Sizes of the regions to learn: from the largest host's memory down, each smaller than the one before by
/// the factor √2.
fn region_bytes(physical_bytes: &[u64]) -> Vec<i64> {
    let known = || physical_bytes.iter().copied();
    let (Some(least), Some(most)) = (known().min(), known().max()) else {
        return Vec::new();
    };
    let smallest = least as f64 * SMALLEST_SHARE;
    let size = |step: i32| (most as f64 * FRAC_1_SQRT_2.powi(step)).round();
    // One more size, so that the last does not exceed `smallest`.
    let above = (0..).take_while(|step| size(*step) > smallest).count();
    let steps = (0..).take((above + 1).min(MOST_SIZES));
    let mut sizes: Vec<i64> = steps.map(|step| (size(step) as i64).max(1)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_dataset::{Dataset, Writer};
    use gleaner_schemas::arrow::schema;
    use gleaner_schemas::rows::DATASET_TABLES;
    use gleaner_simulator::dodo::Recruitment;
    use gleaner_simulator::event::HOUR;
    use gleaner_traces::synth::{self, Preset};
    use std::path::Path;

    #[test]
    fn sizes_go_from_the_largest_host_down_to_an_eighth_of_the_smallest() {
        let mib = |sizes: Vec<i64>| -> Vec<i64> { sizes.iter().map(|b| b >> 20).collect() };
        let host = |mib: u64| mib << 20;
        let study = region_bytes(&[host(64), host(256), host(128)]);
        assert_eq!(mib(study), [8, 11, 16, 22, 32, 45, 64, 90, 128, 181, 256]);
        assert_eq!(
            mib(region_bytes(&[host(100)])),
            [12, 17, 25, 35, 50, 70, 100]
        );
        assert!(region_bytes(&[]).is_empty());
        let odd = region_bytes(&[1, u64::MAX]);
        assert!(odd.len() <= MOST_SIZES && odd.iter().all(|bytes| *bytes > 0));
    }

    const HOUR_MS: i64 = 3_600_000;

    fn learnt(folder: &Path, from_ms: i64) -> anyhow::Result<Table> {
        let cluster = Cluster::open("A", folder, Some(&from_ms.to_string()), 6 * HOUR)?;
        let recruitment = Recruitment {
            expected_for_s: 3600.0,
            ..Recruitment::default()
        };
        table(&cluster, &ForecastInputs::of(&recruitment).unwrap())
    }

    #[test]
    fn nothing_from_the_begin_on_is_learnt_from() {
        let folder = tempfile::tempdir().unwrap();
        let [whole, other] = ["whole", "other"].map(|name| folder.path().join(name));
        let parameters = synth::Parameters {
            days: 3,
            hosts: 3,
            ..synth::Parameters::of_preset(Preset::AcharyaSetiaB, 7).unwrap()
        };
        synth::write(&synth::Cluster::new(&parameters).unwrap(), &whole, |_| {}).unwrap();
        let begin_ms = parameters.start_ms + 2 * DAY_MS;
        // A second dataset: equal to the first until the simulation's start, but different afterwards. Its
        // first hours after the start are missing, and then only one host has records.
        let (dataset, mut writer) = (
            Dataset::open(&whole).unwrap(),
            Writer::open(&other).unwrap(),
        );
        let hosts = dataset.hosts().unwrap();
        for rows in &DATASET_TABLES {
            let columns: Vec<String> = (schema(rows).fields().iter())
                .map(|field| field.name().clone())
                .collect();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let mut copy = |host: &str, from_ms, until_ms| {
                let read = dataset.read_host_between(rows, host, &columns, from_ms, until_ms);
                writer.append(rows, read.unwrap()).unwrap();
            };
            hosts
                .iter()
                .for_each(|host| copy(host, None, Some(begin_ms)));
            copy(&hosts[0], Some(begin_ms + 8 * HOUR_MS), None);
        }
        writer.seal().unwrap();
        let at_begin = learnt(&whole, begin_ms).unwrap();
        assert!(at_begin == learnt(&other, begin_ms).unwrap());
        assert!(at_begin != Table::default());
        // All records before the start are used. With a start half a day later there are more of them, and
        // the two datasets differ in them.
        let later_ms = begin_ms + DAY_MS / 2;
        let later = learnt(&whole, later_ms).unwrap();
        assert!(later != at_begin && later != learnt(&other, later_ms).unwrap());
        // Forecasts need records before the start: a simulation may start on the second day, but not on the
        // first.
        assert!(learnt(&whole, parameters.start_ms + DAY_MS).is_ok());
        for early_ms in [0, DAY_MS - 1] {
            let error = learnt(&whole, parameters.start_ms + early_ms).unwrap_err();
            assert!(error.to_string().contains("--from"), "{error}");
        }
    }
}
