//! Clients that request leases at a given rate, keep each lease for a while, and end it.

use crate::Args;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use ureq::Agent;

#[derive(Default)]
struct SwarmResults {
    granted_us: Vec<u64>,
    refused: u64,
    released: u64,
    failures: u64,
    last_failure: String,
}

/// Runs all clients until the time is over, and returns their results.
pub(crate) fn run(args: &Args) -> Value {
    let found = Mutex::new(SwarmResults::default());
    let end = Instant::now() + Duration::from_secs(args.seconds);
    std::thread::scope(|scope| {
        for n in 0..args.clients {
            let found = &found;
            scope.spawn(move || client(args, n, end, found));
        }
    });
    let mut found = found.into_inner().unwrap();
    found.granted_us.sort_unstable();
    let quantile = |q: f64| {
        let at = ((found.granted_us.len() as f64 - 1.0) * q).round() as usize;
        found.granted_us.get(at).map(|&us| us as f64 / 1000.0)
    };
    json!({
        "asked_per_second": args.rate,
        "granted": found.granted_us.len(),
        "refused": found.refused,
        "released": found.released,
        "failures": found.failures,
        "last_failure": found.last_failure,
        "granted_ms": { "p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1.0) },
    })
}

/// A client with its own name and connection. It sends requests on schedule, however long answers take.
fn client(args: &Args, n: usize, end: Instant, found: &Mutex<SwarmResults>) {
    let every = Duration::from_secs_f64(args.clients as f64 / args.rate);
    let mut due = Instant::now() + every.mul_f64(n as f64 / args.clients as f64);
    let agent: Agent = Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .build()
        .into();
    let url = format!("http://{}/v1/leases", args.local);
    let name = format!("client-{n}");
    let mut kept: VecDeque<(Instant, String)> = VecDeque::new();
    let mut count = 0_u64;
    while due < end {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let asked = json!({ "key": format!("{count}"), "bytes": args.bytes, "term_ms": 600_000 });
        count += 1;
        // A delay against the schedule counts as part of the answer's time. A client on schedule would have
        // waited as long.
        let answer = agent
            .post(&url)
            .header("Gleaner-Client", &name)
            .send_json(&asked);
        let took = due.elapsed();
        let outcome = answer.and_then(|mut answer| {
            Ok((
                answer.status().as_u16(),
                answer.body_mut().read_json::<Value>()?,
            ))
        });
        let mut sums = found.lock().unwrap();
        match outcome {
            Ok((200 | 201, body)) => {
                sums.granted_us
                    .push(u64::try_from(took.as_micros()).unwrap());
                for lease in body["leases"].as_array().unwrap() {
                    let id = lease["lease_id"].as_str().unwrap().to_owned();
                    kept.push_back((Instant::now() + args.keep, id));
                }
            }
            Ok((_, body)) if body["retry_in_ms"].is_number() => {
                sums.refused += 1;
                sums.last_failure = body["detail"].to_string();
            }
            Ok((status, body)) => failed(&mut sums, format!("{status}: {body}")),
            Err(error) => failed(&mut sums, error.to_string()),
        }
        drop(sums);
        while kept
            .front()
            .is_some_and(|(until, _)| *until < Instant::now())
        {
            let (_, id) = kept.pop_front().unwrap();
            let ended = agent
                .delete(format!("{url}/{id}"))
                .header("Gleaner-Client", &name)
                .call();
            let mut sums = found.lock().unwrap();
            match ended {
                Ok(answer) if answer.status().as_u16() == 204 => sums.released += 1,
                Ok(answer) => failed(&mut sums, format!("release: {}", answer.status())),
                Err(error) => failed(&mut sums, error.to_string()),
            }
        }
        due += every;
    }
}

fn failed(sums: &mut SwarmResults, why: String) {
    sums.failures += 1;
    sums.last_failure = why;
}
