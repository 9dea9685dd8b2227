//! `cargo run --release -p gleaner-simulator --example compute_times` prints the compute times between two
//! requests of dmine, db2 and lu, found only from their ideal speedups in the study's Table 5, next to the
//! built-in times. It also prints the resulting ideal speedups of hotcold and random, which were not fitted.

use gleaner_simulator::applications::Application;
use gleaner_simulator::calibrate;
use gleaner_simulator::dodo::{Scenario, reference};
use gleaner_traces::published;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let published = published::acharya_setia()?;
    let scenario = Scenario::default();
    println!("program  ideal: paper  ours   computes (ns): built in  found");
    for application in Application::STUDY {
        let paper = published
            .get("Table 5", application.name(), "ideal")
            .map_or(f64::NAN, |figure| figure.paper);
        let think_ns = application.think_ns();
        let [baseline_ns, ideal_ns] = reference(&scenario, &application.thinking(think_ns))?;
        let found = if application.is_calibrated() {
            match calibrate(application, paper, &scenario)? {
                Some(found_ns) => found_ns.to_string(),
                None => "none gives it".to_owned(),
            }
        } else {
            "given".to_owned()
        };
        let ours = baseline_ns as f64 / ideal_ns as f64;
        println!("{application:<8} {paper:>12.2} {ours:>5.3} {think_ns:>24}  {found}");
    }
    Ok(())
}
