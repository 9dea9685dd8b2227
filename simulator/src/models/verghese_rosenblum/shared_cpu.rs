//! Processes that share a CPU and a link, event by event; and the same by mean values.

use crate::event::Queue;
use crate::queueing::{
    Centre, ClosedChain, Discipline, Network, QueueingError, Stage, exact_solution,
};
use std::collections::VecDeque;

/// Computing of processes between their page faults, and the times of their pages.
pub trait SharedCpuLoad {
    /// Failure of the load.
    type Error;

    /// Lets a process compute until it faults, ends, or its time slice is over.
    ///
    /// # Errors
    /// Those of the load.
    fn run(&mut self, process: usize) -> Result<Burst, Self::Error>;

    /// Times of the page that a process has just faulted for.
    fn fetch(&mut self) -> PageFetch;
}

/// Computing of a process without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Duration of the burst.
    pub cpu_ns: u64,
    /// Reason of the end.
    pub end: BurstEnd,
}

/// Reason why a process stops computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstEnd {
    /// Reference to a page that is not local.
    Fault,
    /// End of the time slice.
    Slice,
    /// End of the process.
    Finished,
}

/// Times of a page from remote memory, without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageFetch {
    /// Delay, in which nothing queues.
    pub delay_ns: u64,
    /// Time on the link, which serves one page at a time; 0 without a link.
    pub link_ns: u64,
}

impl PageFetch {
    /// Time of a page that does not wait.
    #[must_use]
    pub const fn total_ns(self) -> u64 {
        self.delay_ns.saturating_add(self.link_ns)
    }
}

/// Use of CPU and link in a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Time until the last process ended.
    pub elapsed_ns: u64,
    /// Time in which the CPU computed.
    pub busy_ns: u64,
    /// Time in which the link sent pages.
    pub link_ns: u64,
    /// Number of page faults.
    pub faults: u64,
}

impl CpuUse {
    /// Time in which no process could compute.
    #[must_use]
    pub const fn idle_ns(&self) -> u64 {
        self.elapsed_ns.saturating_sub(self.busy_ns)
    }

    /// Duration as a multiple of the CPU time; 1 if nothing was computed.
    #[must_use]
    pub fn slowdown(&self) -> f64 {
        match self.busy_ns {
            0 => 1.0,
            busy_ns => self.elapsed_ns as f64 / busy_ns as f64,
        }
    }
}

/// Simulates processes on one CPU until all have ended. At most `at_once` of them have begun and not ended: when one
/// ends, the next begins. The CPU serves those that are ready in the order in which they became ready.
///
/// # Errors
/// Those of the load.
pub fn share_cpu<L: SharedCpuLoad>(
    load: &mut L,
    processes: usize,
    at_once: usize,
) -> Result<CpuUse, L::Error> {
    let first = processes.min(at_once.max(1));
    let mut turns = Turns {
        load,
        events: Queue::default(),
        ready: (0..first).collect(),
        unstarted: first..processes,
        link: VecDeque::new(),
        is_computing: false,
        is_sending: false,
        usage: CpuUse::default(),
    };
    turns.compute()?;
    while let Some((_, event)) = turns.events.pop() {
        match event {
            Event::Stopped { process, end } => turns.stopped(process, end),
            Event::Sent { process, delay_ns } => turns.sent(process, delay_ns),
            Event::Arrived { process } => turns.ready.push_back(process),
        }
        turns.compute()?;
    }
    turns.usage.elapsed_ns = turns.events.now_ns();
    Ok(turns.usage)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A process stops computing.
    Stopped { process: usize, end: BurstEnd },
    /// The link has sent a page.
    Sent { process: usize, delay_ns: u64 },
    /// A page is there, and its process can go on.
    Arrived { process: usize },
}

/// State of a simulation.
struct Turns<'a, L> {
    load: &'a mut L,
    events: Queue<Event>,
    /// Processes that can compute, in the order in which they became ready.
    ready: VecDeque<usize>,
    /// Processes that have not begun.
    unstarted: std::ops::Range<usize>,
    /// Pages that wait for the link, with their processes.
    link: VecDeque<(usize, PageFetch)>,
    is_computing: bool,
    is_sending: bool,
    usage: CpuUse,
}

impl<L: SharedCpuLoad> Turns<'_, L> {
    /// Lets the next ready process compute, if the CPU is free.
    fn compute(&mut self) -> Result<(), L::Error> {
        if self.is_computing {
            return Ok(());
        }
        let Some(process) = self.ready.pop_front() else {
            return Ok(());
        };
        let Burst { cpu_ns, end } = self.load.run(process)?;
        self.is_computing = true;
        self.usage.busy_ns = self.usage.busy_ns.saturating_add(cpu_ns);
        self.after(cpu_ns, Event::Stopped { process, end });
        Ok(())
    }

    fn stopped(&mut self, process: usize, end: BurstEnd) {
        self.is_computing = false;
        match end {
            BurstEnd::Slice => self.ready.push_back(process),
            BurstEnd::Finished => self.ready.extend(self.unstarted.next()),
            BurstEnd::Fault => {
                self.usage.faults += 1;
                let fetch = self.load.fetch();
                if fetch.link_ns == 0 {
                    self.after(fetch.delay_ns, Event::Arrived { process });
                } else {
                    self.link.push_back((process, fetch));
                    self.send();
                }
            }
        }
    }

    /// Sends the next waiting page, if the link is free.
    fn send(&mut self) {
        if self.is_sending {
            return;
        }
        if let Some((process, fetch)) = self.link.pop_front() {
            let PageFetch { delay_ns, link_ns } = fetch;
            self.is_sending = true;
            self.usage.link_ns = self.usage.link_ns.saturating_add(link_ns);
            self.after(link_ns, Event::Sent { process, delay_ns });
        }
    }

    fn sent(&mut self, process: usize, delay_ns: u64) {
        self.is_sending = false;
        self.after(delay_ns, Event::Arrived { process });
        self.send();
    }

    fn after(&mut self, delay_ns: u64, event: Event) {
        let at_ns = self.events.now_ns().saturating_add(delay_ns);
        self.events.put(at_ns, event);
    }
}

/// Estimated duration of processes on one CPU, as a multiple of their CPU time: CPU and link serve one process at a
/// time, in the order of arrival, and a page has a delay besides. All times in seconds.
///
/// # Errors
/// A time outside the ranges of the queueing model.
pub fn shared_cpu_slowdown(
    processes: u32,
    cpu_between_faults_s: f64,
    link_s: f64,
    delay_s: f64,
) -> Result<f64, QueueingError> {
    let centre = |name: &str, discipline| Centre {
        name: name.to_owned(),
        discipline,
    };
    let centres = vec![
        centre("CPU", Discipline::Fcfs),
        centre("link", Discipline::Fcfs),
        centre("delay", Discipline::Delay),
    ];
    let times = [cpu_between_faults_s, link_s, delay_s]
        .into_iter()
        .enumerate();
    let chain = ClosedChain {
        name: "processes".to_owned(),
        customers: processes,
        route: times
            .map(|(at, service_s)| Stage::at(at, service_s))
            .collect(),
    };
    let solution = exact_solution(&Network::new(centres, vec![chain], Vec::new())?)?;
    let faults_per_s = solution
        .closed
        .first()
        .map_or(0.0, |chain| chain.throughput_per_s);
    Ok(1.0 / (faults_per_s * cpu_between_faults_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;
    use std::convert::Infallible;

    #[test]
    fn processes_on_one_cpu() {
        // CPU time between faults / 80 / 20 µs; two processes of 100 µs were worked by hand: X = 1/200, queues of 0.5
        // and 0.4, then 150 + 112 + 20 = 282 µs for two.
        for (processes, cpu_us, expected) in [
            (1, 100.0, 2.0),
            (2, 200.0, 1.137),
            (2, 100.0, 1.410),
            (2, 50.0, 2.093),
            (4, 100.0, 1.151),
        ] {
            let found = shared_cpu_slowdown(processes, cpu_us * 1e-6, 80e-6, 20e-6).unwrap();
            assert!(
                (found - expected).abs() < 6e-4,
                "{processes}, {cpu_us}: {found}, not {expected}"
            );
        }
    }

    /// Processes with exponentially distributed times, each with this number of faults.
    struct Exponential {
        dice: ChaCha8Rng,
        faults_left: Vec<u32>,
        cpu_ns: f64,
        fetch: PageFetch,
    }

    impl Exponential {
        fn draw_ns(&mut self, mean_ns: f64) -> u64 {
            let uniform = ((self.dice.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            (-uniform.ln() * mean_ns).round() as u64
        }
    }

    impl SharedCpuLoad for Exponential {
        type Error = Infallible;

        fn run(&mut self, process: usize) -> Result<Burst, Infallible> {
            let cpu_ns = self.draw_ns(self.cpu_ns);
            let left = &mut self.faults_left[process];
            let end = match *left {
                0 => BurstEnd::Finished,
                _ => BurstEnd::Fault,
            };
            *left = left.saturating_sub(1);
            Ok(Burst { cpu_ns, end })
        }

        fn fetch(&mut self) -> PageFetch {
            PageFetch {
                delay_ns: self.draw_ns(self.fetch.delay_ns as f64),
                link_ns: self.draw_ns(self.fetch.link_ns as f64).max(1),
            }
        }
    }

    #[test]
    fn simulated_processes_take_the_estimated_time() {
        for (processes, cpu_us) in [(1, 100.0), (2, 200.0), (2, 100.0), (2, 50.0), (4, 100.0)] {
            let mut load = Exponential {
                dice: ChaCha8Rng::seed_from_u64(1),
                faults_left: vec![60_000 / processes; processes as usize],
                cpu_ns: cpu_us * 1e3,
                fetch: PageFetch {
                    delay_ns: 20_000,
                    link_ns: 80_000,
                },
            };
            let Ok(found) = share_cpu(&mut load, processes as usize, processes as usize);
            let estimated = shared_cpu_slowdown(processes, cpu_us * 1e-6, 80e-6, 20e-6).unwrap();
            let ratio = found.slowdown() / estimated;
            assert!((ratio - 1.0).abs() < 0.03, "{processes}, {cpu_us}: {ratio}");
            assert_eq!(found.faults, 60_000);
        }
    }

    /// Processes whose bursts are given.
    struct FixedBursts {
        bursts: Vec<VecDeque<Burst>>,
        fetch: PageFetch,
    }

    impl SharedCpuLoad for FixedBursts {
        type Error = Infallible;

        fn run(&mut self, process: usize) -> Result<Burst, Infallible> {
            let end = Burst {
                cpu_ns: 0,
                end: BurstEnd::Finished,
            };
            Ok(self.bursts[process].pop_front().unwrap_or(end))
        }

        fn fetch(&mut self) -> PageFetch {
            self.fetch
        }
    }

    fn faults(cpu_ns: &[u64]) -> VecDeque<Burst> {
        let end = BurstEnd::Fault;
        cpu_ns.iter().map(|&cpu_ns| Burst { cpu_ns, end }).collect()
    }

    fn simulated(cpu_ns: &[&[u64]], at_once: usize, fetch: PageFetch) -> CpuUse {
        let bursts: Vec<_> = cpu_ns.iter().map(|of| faults(of)).collect();
        let processes = bursts.len();
        let Ok(found) = share_cpu(&mut FixedBursts { bursts, fetch }, processes, at_once);
        found
    }

    #[test]
    fn turns_by_hand() {
        let fetch = PageFetch {
            delay_ns: 20,
            link_ns: 80,
        };
        // Both fault, at 50 and 100; the link is free again at 130 and 210, and the second page is there at 230.
        let both = simulated(&[&[50], &[50]], 2, fetch);
        let expected = CpuUse {
            elapsed_ns: 230,
            busy_ns: 100,
            link_ns: 160,
            faults: 2,
        };
        assert_eq!(both, expected);
        assert_eq!((both.idle_ns(), both.slowdown()), (130, 2.3));
        // One after the other.
        assert_eq!(simulated(&[&[50], &[50]], 1, fetch).elapsed_ns, 300);
        // A delay does not queue: 50, 100, and the second page at 200.
        let delay = PageFetch {
            delay_ns: 100,
            link_ns: 0,
        };
        let delayed = simulated(&[&[50], &[50]], 2, delay);
        assert_eq!((delayed.elapsed_ns, delayed.link_ns), (200, 0));
        assert_eq!(simulated(&[], 2, delay), CpuUse::default());
        assert_eq!(CpuUse::default().slowdown(), 1.0);
    }

    proptest! {
        /// The CPU idles only while pages are on their way, and never is faster than its work.
        #[test]
        fn durations_lie_between_bounds(
            cpu_ns in prop::collection::vec(prop::collection::vec(1u64..1000, 0..30), 1..5), at_once in 1usize..5,
            delay_ns in 0u64..1000, link_ns in 0u64..1000,
        ) {
            let fetch = PageFetch { delay_ns, link_ns };
            let of: Vec<&[u64]> = cpu_ns.iter().map(Vec::as_slice).collect();
            let found = simulated(&of, at_once, fetch);
            let faults: u64 = cpu_ns.iter().map(|of| of.len() as u64).sum();
            let busy_ns: u64 = cpu_ns.iter().flatten().sum();
            prop_assert_eq!((found.faults, found.busy_ns), (faults, busy_ns));
            prop_assert_eq!(found.link_ns, faults * link_ns);
            prop_assert!(found.elapsed_ns >= busy_ns.max(faults * link_ns));
            prop_assert!(found.elapsed_ns <= busy_ns + faults * fetch.total_ns());
            if cpu_ns.len() == 1 || at_once == 1 {
                prop_assert_eq!(found.elapsed_ns, busy_ns + faults * fetch.total_ns());
            }
        }
    }
}
