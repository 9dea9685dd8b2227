//! `cargo run --release -p gleaner-simulator --example queueing_speed` prints solutions per second of Felten and
//! Zahorjan's model on one core, and simulated events per second of the same networks. One solution is a bisection over
//! some 45 exact mean value analyses.

use gleaner_simulator::queueing::{RemotePaging, simulate};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Least time that is measured for each row.
const MEASURED: Duration = Duration::from_secs(1);
/// Simulated page-ins of each row.
const CYCLES: u64 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "clients  servers  work units/s  solutions/s  simulated  difference  thousand page-ins/s"
    );
    for (clients, servers) in [(5, 5), (50, 5), (50, 50)] {
        let model = RemotePaging {
            clients,
            servers,
            ..RemotePaging::default()
        };
        let begun = Instant::now();
        let mut solutions = 0_u32;
        while begun.elapsed() < MEASURED {
            black_box(black_box(model).solve()?);
            solutions += 1;
        }
        let per_s = f64::from(solutions) / begun.elapsed().as_secs_f64();
        let solved = model.solve()?.work_units_per_s;
        let network = model.network(solved)?;
        let begun = Instant::now();
        let observed = simulate(&network, 1, CYCLES)?;
        let page_ins_per_s = CYCLES as f64 / begun.elapsed().as_secs_f64();
        let sum: f64 = observed.closed_per_s.iter().sum();
        let simulated = sum / f64::from(clients) / model.page_ins_per_work_unit;
        let difference = (simulated / solved - 1.0) * 100.0;
        println!(
            "{clients:>7} {servers:>8} {solved:>13.6} {per_s:>12.0} {simulated:>10.4} {difference:>+9.2} % {:>20.0}",
            page_ins_per_s / 1e3
        );
    }
    Ok(())
}
