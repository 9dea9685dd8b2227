//! Calibrates the fleet `acharya-setia` to Tables 2 to 4 of the paper (Table 1, the list of hosts, is an input):
//!
//! `cargo run --release -p gleaner-traces --example calibrate -- [--rounds N] [--hop FAR] [--write traces/presets/acharya-setia.toml]`
//!
//! Method: Levenberg–Marquardt least squares over the tables' cells (`error.rs`), with slopes from finite
//! differences. The parameters of one class are fitted at a time. Every trial uses the same random numbers
//! (each part of a host has its own stream), so that a difference is mostly due to the parameter. Most rounds
//! begin with random hops, to leave a local minimum. Classes are fitted to hosts of cluster A; only the 32 MB
//! class is fitted to hosts of B, the only cluster that has such hosts. The report then covers the other
//! cluster's hosts and seeds that the fit did not use.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod cells;
mod error;
mod least_squares;
mod parameters;

use cells::Cells;
use error::{Target, report, terms};
use gleaner_traces::published;
use gleaner_traces::synth::{Cluster, Fleet, Parameters, Preset};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;
use std::time::Instant;

/// Minimum number of hosts to which a class is fitted. `SEEDS`: first seed of the fit, and of the report.
const HOSTS_AT_LEAST: usize = 400;
const SEEDS: (u64, u64) = (1, 1001);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)
    };
    let rounds: usize = value("--rounds").map_or(0, |n| n.parse().expect("--rounds N"));
    let hop: f64 = value("--hop").map_or(0.0, |far| far.parse().expect("--hop FAR"));
    let path = value("--fleet").map(PathBuf::from);
    let mut fleet = match &path {
        Some(path) => Fleet::open(path).unwrap(),
        None => Preset::AcharyaSetia.fleet().unwrap(),
    };
    let target = Target::of(&published::acharya_setia().unwrap());
    let mut measured: Vec<Cells> = (0..fleet.classes.len())
        .map(|class| measure(&fleet, class, fitted_to, SEEDS.0))
        .collect();
    let counts = counts(&fleet);
    if rounds > 0 {
        fit(
            &mut fleet,
            &mut measured,
            &counts,
            &target,
            rounds,
            hop,
            |fleet| {
                if let Some(path) = value("--write") {
                    std::fs::write(path, written(fleet)).unwrap();
                }
            },
        );
    }
    let parameters: usize = fleet
        .classes
        .iter()
        .map(|c| parameters::of_class(&c.name).len())
        .sum();
    println!(
        "{parameters} parameters, {} cells fitted\n",
        target.cells_count()
    );
    println!("hosts fitted to:");
    report(&fleet, &measured, &counts, &target);
    let both = |_: &str| "both";
    let again: Vec<Cells> = (0..fleet.classes.len())
        .map(|class| measure(&fleet, class, both, SEEDS.1))
        .collect();
    println!("\nboth clusters, other seeds:");
    report(&fleet, &again, &counts, &target);
    let held_out = |name: &str| if fitted_to(name) == "a" { "b" } else { "a" };
    println!("\nthe other cluster's hosts alone (64, 128 and 256 MB):");
    let other: Vec<Cells> = (0..fleet.classes.len())
        .map(|class| {
            let name = fleet.classes[class].name.as_str();
            match name {
                "64 MB" | "128 MB" | "256 MB" => measure(&fleet, class, held_out, SEEDS.1),
                _ => again[class].clone(),
            }
        })
        .collect();
    report(&fleet, &other, &counts, &target);
}

/// Cluster whose hosts a class is fitted to.
fn fitted_to(class: &str) -> &'static str {
    if class == "32 MB" { "b" } else { "a" }
}

/// Number of hosts of each class, in both clusters together.
fn counts(fleet: &Fleet) -> Vec<f64> {
    let both = fleet.cluster(Some("both")).unwrap();
    let of = |name: &str| {
        both.hosts
            .iter()
            .filter(|s| s.class == name)
            .map(|s| s.count)
            .sum::<usize>()
    };
    fleet.classes.iter().map(|c| of(&c.name) as f64).collect()
}

/// Cells of the hosts of one class in a cluster, over as many seeds as `HOSTS_AT_LEAST` hosts need.
fn measure(
    fleet: &Fleet,
    class: usize,
    cluster: impl Fn(&str) -> &'static str,
    first_seed: u64,
) -> Cells {
    let name = cluster(&fleet.classes[class].name);
    let of = |seed| {
        let parameters = Parameters::of_fleet(fleet.clone(), Some(name), seed).unwrap();
        Cluster::new(&parameters).unwrap()
    };
    let one = of(first_seed);
    let hosts: Vec<usize> = (0..one.parameters().hosts)
        .filter(|h| one.class_of(*h) == class)
        .collect();
    let seeds = HOSTS_AT_LEAST.div_ceil(hosts.len().max(1)) as u64;
    let seeds: Vec<u64> = (first_seed..first_seed + seeds).collect();
    let some = |seeds: &[u64]| {
        let mut sum = Cells::default();
        for seed in seeds {
            let cluster = of(*seed);
            hosts
                .iter()
                .for_each(|host| sum += &Cells::of_host(&cluster, *host));
        }
        sum
    };
    let (first, second) = seeds.split_at(seeds.len() / 2);
    let (mut sum, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| some(second));
        (some(first), other.join().unwrap())
    });
    sum += &other;
    sum
}

fn fit(
    fleet: &mut Fleet,
    measured: &mut [Cells],
    counts: &[f64],
    target: &Target,
    rounds: usize,
    hop: f64,
    each: impl Fn(&Fleet),
) {
    let begun = Instant::now();
    let distances = |measured: &[Cells]| -> Vec<f64> {
        let terms = terms(measured, counts, target);
        terms
            .iter()
            .map(|t| t.error.sqrt().copysign(t.distance))
            .collect()
    };
    let squares = |distances: &[f64]| -> f64 { distances.iter().map(|d| d * d).sum() };
    let mut rng = ChaCha8Rng::seed_from_u64(rounds as u64);
    for round in 1..=rounds {
        for class in 0..fleet.classes.len() {
            let parameters = parameters::of_class(&fleet.classes[class].name);
            let before = (fleet.classes[class].clone(), measured[class].clone());
            let best = squares(&distances(measured));
            let of_class = &mut before.0.clone();
            let mut free: Vec<f64> = parameters.iter().map(|p| p.free(of_class)).collect();
            if round % HOPS > 0 && hop > 0.0 {
                free.iter_mut()
                    .for_each(|free| *free += hop * rng.random_range(-1.0..1.0));
            }
            let mut of = |free: &[f64]| {
                for (parameter, free) in parameters.iter().zip(free) {
                    parameter.set(&mut fleet.classes[class], *free);
                }
                measured[class] = measure(fleet, class, fitted_to, SEEDS.0);
                (distances(measured), measured[class].clone())
            };
            let (mut caution, mut cells) = (0.1, before.1.clone());
            for _ in 0..STEPS {
                (free, cells) = least_squares::step(&free, &mut caution, &mut of);
            }
            measured[class] = cells;
            for (parameter, free) in parameters.iter().zip(free) {
                parameter.set(&mut fleet.classes[class], free);
            }
            if squares(&distances(measured)) >= best {
                (fleet.classes[class], measured[class]) = before;
            }
        }
        each(fleet);
        let error = squares(&distances(measured));
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("round {round}: error {error:.2} after {seconds:.0} s");
    }
}

/// Number of least-squares steps per round. `HOPS`: with `--hop FAR`, all rounds except each `HOPS`-th begin
/// with a random change of each parameter's unbounded form by at most FAR. A round's result is kept only if
/// it is better.
const STEPS: usize = 1;
const HOPS: usize = 4;

/// Text of the fleet's file with the fitted classes; the part before the classes is unchanged.
fn written(fleet: &Fleet) -> String {
    let before = Preset::AcharyaSetia
        .text()
        .split("[[class]]")
        .next()
        .unwrap();
    let mut text = before.trim_end().to_owned();
    for class in &fleet.classes {
        let value = toml::Value::try_from(class).unwrap();
        text.push_str("\n\n[[class]]\n");
        let mut keys: Vec<_> = value.as_table().unwrap().iter().collect();
        keys.sort_by_key(|(key, _)| (*key != "name", *key));
        for (key, value) in keys {
            text.push_str(&format!("{key} = {}\n", inline(value)));
        }
    }
    text.push('\n');
    text.replace("\n\n\n", "\n\n")
}

/// TOML text of a value, with numbers rounded to four digits.
fn inline(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) => {
            let rounded: f64 = format!("{number:.3e}").parse().unwrap();
            format!("{rounded:?}")
        }
        toml::Value::Array(values) => format!(
            "[{}]",
            values.iter().map(inline).collect::<Vec<_>>().join(", ")
        ),
        toml::Value::Table(table) => {
            let pairs = table
                .iter()
                .map(|(key, value)| format!("{key} = {}", inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
