//! Simulates a network event by event, with exponential service times. It is the check of the analytic solutions: it
//! shares nothing with them but the network.

use super::error::{QueueingError, check};
use super::network::{Discipline, Network, Stage};
use super::solution::CentreMeans;
use crate::event::Queue;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

const NS_PER_S: f64 = 1e9;
/// Longest simulated time, in years.
const MOST_YEARS: u64 = 200;
const YEAR_NS: u64 = 365 * crate::event::DAY;
/// Cycles before the counted ones, as a part of them: a tenth.
const WARM_UP: u64 = 10;
/// Most cycles of a simulation.
const MOST_CYCLES: f64 = 1e9;

/// Observed mean values of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Cycles of each closed chain in a second.
    pub closed_per_s: Vec<f64>,
    /// Customers of each open chain that left in a second.
    pub open_per_s: Vec<f64>,
    /// Centres, in the network's order.
    pub centres: Vec<CentreMeans>,
}

/// Simulates `network` until its closed chains together have completed `cycles` cycles; without a closed chain, until
/// that many customers of open chains have left. A tenth as many cycles come first and are not counted.
///
/// # Errors
/// [`QueueingError::Parameter`]: `cycles` is 0 or too large. [`QueueingError::TooLong`].
pub fn simulate(network: &Network, seed: u64, cycles: u64) -> Result<Observation, QueueingError> {
    check("cycles", cycles as f64, 1.0..=MOST_CYCLES)?;
    let mut run = Run::new(network, seed);
    run.advance(cycles / WARM_UP)?;
    run.forget();
    run.advance(cycles)?;
    Ok(run.observation())
}

/// A customer on its route.
#[derive(Clone, Copy, Debug)]
struct Customer {
    chain: Chain,
    /// Index of the present stage.
    stage: usize,
}

/// Index of a chain among the closed or the open ones.
#[derive(Clone, Copy, Debug)]
enum Chain {
    Closed(usize),
    Open(usize),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The next customer of an open chain arrives.
    Arrival { chain: usize },
    /// A centre has served a customer.
    Departure { centre: usize, customer: Customer },
}

/// State of a centre.
#[derive(Clone, Debug)]
struct Station {
    discipline: Discipline,
    /// Customers that wait for the server; always empty at a delay centre.
    waiting: VecDeque<Customer>,
    /// Number of customers, waiting and in service.
    present: u64,
    /// Time up to which the sums below count.
    counted_until_ns: u64,
    /// Number of busy servers, summed over time.
    busy_ns: f64,
    /// Number of customers, summed over time.
    present_ns: f64,
}

impl Station {
    const fn new(discipline: Discipline) -> Self {
        Self {
            discipline,
            waiting: VecDeque::new(),
            present: 0,
            counted_until_ns: 0,
            busy_ns: 0.0,
            present_ns: 0.0,
        }
    }

    fn count_until(&mut self, now_ns: u64) {
        let elapsed_ns = (now_ns - self.counted_until_ns) as f64;
        let busy = match self.discipline {
            Discipline::Fcfs => self.present.min(1),
            Discipline::Delay => self.present,
        };
        self.busy_ns += busy as f64 * elapsed_ns;
        self.present_ns += self.present as f64 * elapsed_ns;
        self.counted_until_ns = now_ns;
    }
}

struct Run<'a> {
    network: &'a Network,
    queue: Queue<Event>,
    stations: Vec<Station>,
    dice: ChaCha8Rng,
    /// Begin of the counted time.
    begun_ns: u64,
    /// Completed cycles of each closed chain since then.
    closed: Vec<u64>,
    /// Departures of each open chain since then.
    open: Vec<u64>,
}

impl<'a> Run<'a> {
    /// The closed chains' customers enter their first stages at time 0.
    fn new(network: &'a Network, seed: u64) -> Self {
        let stations = network.centres().iter().map(|c| Station::new(c.discipline));
        let mut run = Self {
            network,
            queue: Queue::default(),
            stations: stations.collect(),
            dice: ChaCha8Rng::seed_from_u64(seed),
            begun_ns: 0,
            closed: vec![0; network.closed().len()],
            open: vec![0; network.open().len()],
        };
        for (at, chain) in network.closed().iter().enumerate() {
            for _ in 0..chain.customers {
                run.enter(Customer {
                    chain: Chain::Closed(at),
                    stage: 0,
                });
            }
        }
        for chain in 0..network.open().len() {
            run.await_arrival(chain);
        }
        run
    }

    /// Simulates until `cycles` more cycles are complete.
    fn advance(&mut self, cycles: u64) -> Result<(), QueueingError> {
        let target = self.completed() + cycles;
        while self.completed() < target {
            let Some((now_ns, event)) = self.queue.pop() else {
                break; // cannot happen: a closed chain always has an event, and an open one its next arrival
            };
            if now_ns > MOST_YEARS * YEAR_NS {
                return Err(QueueingError::TooLong { years: MOST_YEARS });
            }
            match event {
                Event::Arrival { chain } => {
                    self.await_arrival(chain);
                    self.enter(Customer {
                        chain: Chain::Open(chain),
                        stage: 0,
                    });
                }
                Event::Departure { centre, customer } => self.depart(centre, customer),
            }
        }
        Ok(())
    }

    /// Number of completed cycles; of departures, if all chains are open.
    fn completed(&self) -> u64 {
        let counts = if self.closed.is_empty() {
            &self.open
        } else {
            &self.closed
        };
        counts.iter().sum()
    }

    /// Starts the counted time.
    fn forget(&mut self) {
        self.begun_ns = self.queue.now_ns();
        self.closed.fill(0);
        self.open.fill(0);
        for station in &mut self.stations {
            station.count_until(self.begun_ns);
            (station.busy_ns, station.present_ns) = (0.0, 0.0);
        }
    }

    /// The customer's present stage; `None` after its last.
    fn stage(&self, customer: Customer) -> Option<&'a Stage> {
        let network = self.network;
        let route = match customer.chain {
            Chain::Closed(at) => &network.closed().get(at)?.route,
            Chain::Open(at) => &network.open().get(at)?.route,
        };
        route.get(customer.stage)
    }

    /// The customer arrives at a centre of its present stage.
    fn enter(&mut self, customer: Customer) {
        let Some(stage) = self.stage(customer) else {
            return; // cannot happen: every route has a stage
        };
        let choices = stage.centres.len() as u64;
        let drawn = (u64::from(self.dice.next_u32()) * choices) >> 32;
        let Some(&centre) = stage.centres.get(drawn as usize) else {
            return; // cannot happen: a draw is below the number of choices
        };
        let Some(station) = self.stations.get_mut(centre) else {
            return; // cannot happen: routes were checked
        };
        station.count_until(self.queue.now_ns());
        station.present += 1;
        if station.discipline == Discipline::Fcfs && station.present > 1 {
            station.waiting.push_back(customer);
        } else {
            self.serve(centre, customer);
        }
    }

    /// A server of the centre begins with the customer.
    fn serve(&mut self, centre: usize, customer: Customer) {
        if let Some(stage) = self.stage(customer) {
            self.after(stage.service_s, Event::Departure { centre, customer });
        }
    }

    /// The customer leaves the centre, and the next one there is served.
    fn depart(&mut self, centre: usize, customer: Customer) {
        let now_ns = self.queue.now_ns();
        if let Some(station) = self.stations.get_mut(centre) {
            station.count_until(now_ns);
            station.present = station.present.saturating_sub(1);
            if let Some(next) = station.waiting.pop_front() {
                self.serve(centre, next);
            }
        }
        let onward = Customer {
            stage: customer.stage + 1,
            ..customer
        };
        if self.stage(onward).is_some() {
            self.enter(onward);
            return;
        }
        let (counts, at) = match customer.chain {
            Chain::Closed(at) => (&mut self.closed, at),
            Chain::Open(at) => (&mut self.open, at),
        };
        if let Some(count) = counts.get_mut(at) {
            *count += 1;
        }
        if matches!(customer.chain, Chain::Closed(_)) {
            self.enter(Customer {
                stage: 0,
                ..customer
            });
        }
    }

    /// Schedules the next arrival of an open chain.
    fn await_arrival(&mut self, chain: usize) {
        if let Some(open) = self.network.open().get(chain) {
            self.after(1.0 / open.arrivals_per_s, Event::Arrival { chain });
        }
    }

    /// Schedules an event after an exponentially distributed time.
    fn after(&mut self, mean_s: f64, event: Event) {
        let delay_ns = exponential_ns(mean_s, &mut self.dice);
        let at_ns = self.queue.now_ns().saturating_add(delay_ns);
        self.queue.put(at_ns, event);
    }

    fn observation(mut self) -> Observation {
        let now_ns = self.queue.now_ns();
        let elapsed_ns = (now_ns - self.begun_ns).max(1) as f64;
        let rates = |counts: &[u64]| -> Vec<f64> {
            let rate = |count: &u64| *count as f64 / (elapsed_ns / NS_PER_S);
            counts.iter().map(rate).collect()
        };
        for station in &mut self.stations {
            station.count_until(now_ns);
        }
        let centres = self.stations.iter().map(|station| CentreMeans {
            utilization: station.busy_ns / elapsed_ns,
            customers: station.present_ns / elapsed_ns,
        });
        Observation {
            closed_per_s: rates(&self.closed),
            open_per_s: rates(&self.open),
            centres: centres.collect(),
        }
    }
}

/// Draws an exponentially distributed time.
fn exponential_ns(mean_s: f64, dice: &mut ChaCha8Rng) -> u64 {
    // 53 random bits, as a number above 0 and up to 1.
    let uniform = ((dice.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    (-uniform.ln() * mean_s * NS_PER_S).round() as u64
}
