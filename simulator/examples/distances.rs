//! `distances exact|sampled FILE` computes the faults of every memory size from a stream in oracleGeneral: exactly, or from
//! a sample of 8,192 objects. Prints one line of JSON: objects, requests, CPU time from opening the file, and the miss
//! ratio at each hundredth of the objects (bench/models.py).

use gleaner_simulator::references::{Shards, StackDistances};
use gleaner_simulator::streams::Objects;
use gleaner_simulator::streams::read::{Format, open};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: distances exact|sampled FILE";
    let (how, path) = (args.next().ok_or(usage)?, args.next().ok_or(usage)?);
    let stream = || open(path.as_ref(), &Format::OracleGeneral, 0);
    let mut objects = Objects::default();
    // A sample does not know the number of all objects.
    if how == "sampled" {
        for read in stream()? {
            objects
                .number(read?.request.object)
                .ok_or("too many objects")?;
        }
    }
    let began_s = cpu_s();
    let mut requests = 0_u64;
    let (mut stack, mut shards) = (StackDistances::default(), Shards::new(1));
    for read in stream()? {
        let request = read?.request;
        requests += 1;
        match how.as_str() {
            "exact" => {
                let number = objects.number(request.object).ok_or("too many objects")?;
                stack.reference(number, request.is_write);
            }
            "sampled" => shards.reference(request.object, request.is_write),
            _ => return Err(usage.into()),
        }
    }
    let count = u64::from(objects.len());
    let sizes: Vec<u64> = (1..=100)
        .map(|percent| (count * percent / 100).max(1))
        .collect();
    let faults = match how.as_str() {
        "exact" => stack.finish().at(&sizes),
        _ => shards.finish(&sizes),
    };
    let seconds = cpu_s() - began_s;
    let misses = faults
        .iter()
        .map(|faults| (faults.reuse + count as f64) / requests as f64);
    let misses: Vec<String> = misses.map(|ratio| ratio.to_string()).collect();
    println!(
        r#"{{"objects":{count},"requests":{requests},"seconds":{seconds},"miss_ratios":[{}]}}"#,
        misses.join(",")
    );
    Ok(())
}

/// CPU time that this process has used so far.
fn cpu_s() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
