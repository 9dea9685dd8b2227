//! Speedups and their cost to owners, from the study's Tables 5 and 6 and the only number of its Figure 10.

use super::{CellResult, MissingFigure, NO_SUCH, NOT_SIMULATED};
use crate::clusters::SeedResults;
use crate::name::Name;
use crate::simulation::{Job, Simulation, SimulationResult, Variant};
use gleaner_simulator::applications::Application;
use gleaner_traces::published::Figure;

/// Our value, or the reason why there is none.
pub(super) fn of(figure: &Figure, observed: &SeedResults) -> CellResult {
    let simulation = observed.simulation.as_ref().ok_or(NOT_SIMULATED)?;
    match &*figure.item {
        "Table 5" => speedup(figure, simulation),
        "Table 6" => cost(figure, simulation),
        "Figure 10" => Ok(lost(application(figure)?, simulation)),
        _ => Err(NO_SUCH),
    }
}

fn speedup(figure: &Figure, simulation: &Simulation) -> CellResult {
    let application = application(figure)?;
    if figure.column == "ideal" {
        // The ideal is the same on both clusters, since it does not use them.
        return Ok(on(Name::A, application, simulation).map(|s| s.ideal_speedup));
    }
    let cluster = cluster(&figure.column)?;
    Ok(on(cluster, application, simulation).map(|s| s.speedup))
}

fn cost(figure: &Figure, simulation: &Simulation) -> CellResult {
    let (name, column) = figure.column.split_once(", ").ok_or(NO_SUCH)?;
    let cluster = cluster(name)?;
    if figure.row == "upper bound" {
        return Ok(upper_bound(cluster, simulation));
    }
    let found = on(cluster, application(figure)?, simulation);
    match column {
        "reclaims per host and day" => Ok(found.map(|s| s.reclaims_per_host_day)),
        "memory context, mean" => Ok(found.and_then(|s| s.mean_context_bytes)),
        "memory context, median" => Ok(found.and_then(|s| s.median_context_bytes)),
        _ => Err(NO_SUCH),
    }
}

/// Upper bound of the memory context: the mean over the programs, since the study prints one figure for all
/// of them.
fn upper_bound(cluster: Name, simulation: &Simulation) -> Option<f64> {
    let all = Application::STUDY.map(|application| on(cluster, application, simulation));
    let bounds = all.map(|found| found.and_then(|s| s.upper_bound_bytes));
    let sum = bounds.iter().copied().sum::<Option<f64>>();
    sum.map(|sum| sum / bounds.len() as f64)
}

/// Share of its speedup that a program loses if a day lies between its runs.
pub(crate) fn lost(application: Application, simulation: &Simulation) -> Option<f64> {
    let speedup = |variant| {
        simulation
            .get(&Job::on_a(application, variant))
            .map(|s| s.speedup)
    };
    Some(1.0 - speedup(Variant::Pause)? / speedup(Variant::None)?)
}

fn on(
    cluster: Name,
    application: Application,
    simulation: &Simulation,
) -> Option<&SimulationResult> {
    simulation.get(&Job {
        cluster,
        application,
        variant: Variant::None,
    })
}

fn application(figure: &Figure) -> Result<Application, MissingFigure> {
    let mut all = Application::STUDY.into_iter();
    all.find(|a| a.name() == figure.row).ok_or(NO_SUCH)
}

fn cluster(name: &str) -> Result<Name, MissingFigure> {
    let mut both = Name::BOTH.into_iter();
    both.find(|cluster| cluster.row() == name).ok_or(NO_SUCH)
}

#[cfg(test)]
mod tests {
    use super::super::ours;
    use super::*;
    use crate::simulation::jobs;
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn each_figure_is_taken_from_its_own_program_and_cluster() {
        // Every simulation gets different figures.
        let simulated = |(at, job): (usize, Job)| {
            let n = at as f64 + 1.0;
            let simulated = SimulationResult {
                speedup: 1.0 + n / 100.0,
                ideal_speedup: 2.0 + n / 100.0,
                reclaims_per_host_day: n,
                mean_context_bytes: Some(n * 1024.0),
                median_context_bytes: Some(0.0),
                upper_bound_bytes: Some(n * 2048.0),
                hours: [1.0, 2.0],
            };
            (job, simulated)
        };
        let all: Vec<Job> = jobs(&[]);
        let simulation: Simulation = all.iter().copied().enumerate().map(simulated).collect();
        let number = |cluster, application, variant| {
            let job = Job {
                cluster,
                application,
                variant,
            };
            all.iter().position(|j| *j == job).unwrap() as f64 + 1.0
        };
        let observed = SeedResults {
            simulation: Some(simulation),
            ..SeedResults::default()
        };
        let published = acharya_setia().unwrap();
        let cell = |item: &str, row: &str, column: &str| {
            let figure = published.get(item, row, column).unwrap();
            ours(figure, &observed).unwrap().unwrap()
        };
        let (a, b) = (Name::A, Name::B);
        let lu_on_b = number(b, Application::Lu, Variant::None);
        assert_eq!(cell("Table 5", "lu", "cluster B"), 1.0 + lu_on_b / 100.0);
        let lu_on_a = number(a, Application::Lu, Variant::None);
        assert_eq!(cell("Table 5", "lu", "ideal"), 2.0 + lu_on_a / 100.0);
        let of_6 = |column: &str| cell("Table 6", "lu", &format!("cluster B, {column}"));
        assert_eq!(of_6("reclaims per host and day"), lu_on_b);
        assert_eq!(of_6("memory context, mean"), lu_on_b);
        assert_eq!(of_6("memory context, median"), 0.0);
        let of_all = Application::STUDY.map(|application| number(a, application, Variant::None));
        let mean = of_all.iter().sum::<f64>() / 5.0;
        let bound = cell("Table 6", "upper bound", "cluster A, memory context, mean");
        assert!((bound - 2.0 * mean).abs() < 1e-9);
        let speedup = |variant| 1.0 + number(a, Application::Dmine, variant) / 100.0;
        let lost = 100.0 * (1.0 - speedup(Variant::Pause) / speedup(Variant::None));
        let found = cell("Figure 10", "dmine", "speedup lost to a day between runs");
        assert!((found - lost).abs() < 1e-9);
    }
}
