//! Figures 8 to 10, which print no numbers: the statements of the paper's text about them, and whether
//! our simulations agree.

use super::cells::simulated::lost;
use super::name::Name;
use super::number::number;
use super::simulation::{Job, Simulation, Variant};
use gleaner_simulator::applications::Application::{self, Db2, Dmine, Hotcold, Lu, Random};

/// Minimum difference of two speedups at which they count as different.
const NOTHING: f64 = 0.05;
/// "Much smaller" means less than this fraction.
const MUCH: f64 = 0.5;

/// A statement of the paper's text about one curve.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) item: &'static str,
    pub(super) row: String,
    pub(super) quantity: &'static str,
    pub(super) paper: &'static str,
    /// Median of the quantity over the seeds.
    pub(super) ours: String,
    /// Minimum and maximum of the quantity over the seeds.
    pub(super) range: String,
    /// Number of seeds that agree with the statement.
    pub(super) so: usize,
    pub(super) seeds: usize,
}

#[cfg(test)]
impl Shape {
    /// Example for tests of the output.
    pub(super) fn example() -> Self {
        Self {
            item: "Figure 9",
            row: "dmine, 30 µs".to_owned(),
            quantity: "speedup",
            paper: "negligible impact",
            ours: "1.01".to_owned(),
            range: "1.00 to 1.02".to_owned(),
            so: 2,
            seeds: 3,
        }
    }
}

/// Function that returns a quantity of a simulation, and true if the quantity agrees with the paper's text.
type ShapeTest = Box<dyn Fn(&Simulation) -> Option<(f64, bool)>>;

/// All shapes, evaluated on the simulations.
pub(super) fn shapes(simulations: &[Simulation]) -> Vec<Shape> {
    figure_8()
        .into_iter()
        .chain(figure_9())
        .chain(figure_10())
        .filter_map(|said| said.shape(simulations))
        .collect()
}

/// A statement of the paper's text, with its test.
struct PaperStatement {
    item: &'static str,
    row: String,
    quantity: &'static str,
    paper: &'static str,
    look: ShapeTest,
}

impl PaperStatement {
    fn shape(self, simulations: &[Simulation]) -> Option<Shape> {
        let found: Vec<(f64, bool)> = simulations.iter().filter_map(|s| (self.look)(s)).collect();
        let mut values: Vec<f64> = found.iter().map(|(value, _)| *value).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (least, most) = (values.first()?, values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Shape {
            item: self.item,
            row: self.row,
            quantity: self.quantity,
            paper: self.paper,
            ours: number(median),
            range: format!("{} to {}", number(*least), number(*most)),
            so: found.iter().filter(|(_, is_so)| *is_so).count(),
            seeds: found.len(),
        })
    }
}

fn figure_8() -> Vec<PaperStatement> {
    const QUANTITY: &str = "speedup by hour, 95th over 5th percentile";
    let said = |application: Application, cluster: Name, paper, is_so: fn(f64, f64) -> bool| {
        PaperStatement {
            item: "Figure 8",
            row: format!("{application}, {}", cluster.row()),
            quantity: QUANTITY,
            paper,
            look: Box::new(move |s| {
                let (ours, dmine) = (swing(application, cluster, s)?, swing(Dmine, Name::A, s)?);
                Some((ours, is_so(ours - 1.0, dmine - 1.0)))
            }),
        }
    };
    let (a, b) = (Name::A, Name::B);
    vec![
        said(Lu, a, "no variation", |ours, _| ours < NOTHING),
        said(Lu, b, "no variation", |ours, _| ours < NOTHING),
        said(
            Hotcold,
            a,
            "little variation: less than dmine's",
            |ours, dmine| ours < dmine,
        ),
        said(
            Random,
            a,
            "little variation: less than dmine's",
            |ours, dmine| ours < dmine,
        ),
        said(Dmine, a, "significant variation", |ours, _| ours > NOTHING),
        said(Db2, a, "much less variation than dmine's", |ours, dmine| {
            ours < MUCH * dmine
        }),
    ]
}

fn figure_9() -> Vec<PaperStatement> {
    let at = |application: Application,
              variant,
              network: &str,
              quantity,
              paper,
              is_so: fn(f64) -> bool| PaperStatement {
        item: "Figure 9",
        row: format!("{application}, {network}"),
        quantity,
        paper,
        look: Box::new(move |s| {
            let ours = speedup(application, variant, s)?;
            let ours = match variant {
                Variant::Latency => ours / speedup(application, Variant::None, s)?,
                _ => ours,
            };
            Some((ours, is_so(ours)))
        }),
    };
    let latency = |of| {
        let is_so = |ratio: f64| (ratio - 1.0).abs() < NOTHING;
        at(
            of,
            Variant::Latency,
            "30 µs",
            "speedup, over that at 7.4 µs",
            "negligible impact",
            is_so,
        )
    };
    let bandwidth = |of, paper, is_so| {
        at(
            of,
            Variant::Bandwidth,
            "10 MB/s and 30 µs",
            "speedup",
            paper,
            is_so,
        )
    };
    vec![
        latency(Dmine),
        latency(Random),
        bandwidth(Dmine, "a slowdown", |speedup| speedup < 1.0 - NOTHING),
        bandwidth(Random, "a speedup", |speedup| speedup > 1.0 + NOTHING),
    ]
}

fn figure_10() -> Vec<PaperStatement> {
    let said = |row: Application, quantity, paper, look: ShapeTest| PaperStatement {
        item: "Figure 10",
        row: format!("{row}, a day between runs"),
        quantity,
        paper,
        look,
    };
    vec![
        said(
            Dmine,
            "speedup",
            "still some benefit",
            Box::new(|s| {
                let ours = speedup(Dmine, Variant::Pause, s)?;
                Some((ours, ours > 1.0 + NOTHING))
            }),
        ),
        said(
            Db2,
            "speedup lost, %",
            "much less than dmine",
            Box::new(|s| {
                let (ours, dmine) = (lost(Db2, s)?, lost(Dmine, s)?);
                Some((ours * 100.0, ours < MUCH * dmine))
            }),
        ),
    ]
}

fn speedup(application: Application, variant: Variant, simulation: &Simulation) -> Option<f64> {
    simulation
        .get(&Job::on_a(application, variant))
        .map(|s| s.speedup)
}

/// Ratio of the 95th to the 5th percentile of the speedups by hour.
fn swing(application: Application, cluster: Name, simulation: &Simulation) -> Option<f64> {
    let job = Job {
        cluster,
        ..Job::on_a(application, Variant::None)
    };
    simulation.get(&job).map(|s| s.hours[1] / s.hours[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{SimulationResult, jobs};

    /// A cluster like the study's: dmine's speedup swings by 40 % over the hours, and a day between runs
    /// costs 40 % of it.
    fn as_in_the_study() -> Simulation {
        let simulated = |job: Job| {
            let swing = match job.application {
                Lu => 1.0,
                Db2 => 1.1,
                Hotcold | Random => 1.2,
                _ => 1.4, // dmine's
            };
            let speedup = match (job.application, job.variant) {
                (Dmine, Variant::Bandwidth) => 0.5,
                (Dmine, Variant::Pause) => 1.2,
                (Dmine, _) => 2.0,
                (Db2, Variant::Pause) => 1.17,
                (Random, Variant::Bandwidth) => 1.3,
                _ => 1.3,
            };
            let simulated = SimulationResult {
                speedup,
                hours: [1.0, swing],
                ..SimulationResult::default()
            };
            (job, simulated)
        };
        jobs(&[]).into_iter().map(simulated).collect()
    }

    #[test]
    fn what_the_study_says_is_so_of_its_own_curves() {
        let found = shapes(&[as_in_the_study(), as_in_the_study()]);
        assert_eq!(found.len(), 6 + 4 + 2);
        assert!(
            found.iter().all(|s| (s.so, s.seeds) == (2, 2)),
            "{found:#?}"
        );
        assert!(shapes(&[]).is_empty() && shapes(&[Simulation::new()]).is_empty());
    }

    #[test]
    fn what_is_not_so_is_told_by_seed() {
        let mut other = as_in_the_study();
        for (job, simulated) in &mut other {
            // The speedups of all programs swing equally, nothing depends on the network, and a day between
            // runs costs all of the gain.
            simulated.hours = [1.0, 1.3];
            simulated.speedup = if job.variant == Variant::Pause {
                1.0
            } else {
                1.5
            };
        }
        let found = shapes(&[as_in_the_study(), other]);
        let of = |item, row: &str| {
            let shape = found
                .iter()
                .find(|s| s.item == item && s.row == row)
                .unwrap();
            (shape.ours.as_str(), shape.range.as_str(), shape.so)
        };
        assert_eq!(of("Figure 8", "lu, cluster A"), ("1.15", "1.00 to 1.30", 1));
        assert_eq!(of("Figure 8", "dmine, cluster A").2, 2);
        assert_eq!(of("Figure 8", "random, cluster A").2, 1);
        assert_eq!(of("Figure 8", "db2, cluster A").2, 1);
        assert_eq!(of("Figure 9", "dmine, 30 µs"), ("1.00", "1.00 to 1.00", 2));
        assert_eq!(
            of("Figure 9", "dmine, 10 MB/s and 30 µs"),
            ("1.00", "0.50 to 1.50", 1)
        );
        assert_eq!(
            of("Figure 10", "dmine, a day between runs"),
            ("1.10", "1.00 to 1.20", 1)
        );
        assert_eq!(of("Figure 10", "db2, a day between runs").2, 1);
    }
}
