//! `cargo run --release -p gleaner-simulator --example compute_times`: the times that dmine, db2 and lu compute between two requests,
//! found from their ideal speedups in the study's Table 5 and from nothing else, beside those that are built in; and what the
//! ideal speedups of hotcold and random then are, which were not fitted to.

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
        let [without_ns, ideal_ns] = reference(&scenario, &application.thinking(think_ns))?;
        let found = if application.is_calibrated() {
            match calibrate(application, paper, &scenario)? {
                Some(found_ns) => found_ns.to_string(),
                None => "none gives it".to_owned(),
            }
        } else {
            "given".to_owned()
        };
        let ours = without_ns as f64 / ideal_ns as f64;
        println!("{application:<8} {paper:>12.2} {ours:>5.3} {think_ns:>24}  {found}");
    }
    Ok(())
}
