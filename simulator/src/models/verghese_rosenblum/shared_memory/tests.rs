use super::super::share_cpu;
use super::super::shared_cpu::CpuUse;
use super::*;
use crate::references::StackDistances;
use proptest::prelude::*;
use std::collections::HashMap;

/// Pages in a process's list. The recorder's has 32; the model does not depend on the number.
const LISTED: usize = 3;

/// Order of references to these pages: those of a list of [`LISTED`] pages. Each reference counts once.
fn steps(asked: &[u32]) -> Vec<OrderStep> {
    let mut numbers = HashMap::new();
    let mut list: Vec<(u32, u64)> = Vec::new();
    let mut steps = Vec::new();
    let leave = |(page, references): (u32, u64)| OrderStep::Leave { page, references };
    for page in asked {
        let next = numbers.len() as u32;
        let page = *numbers.entry(*page).or_insert(next);
        let there = list.iter().position(|(listed, _)| *listed == page);
        let before = there.map_or(0, |at| list.remove(at).1);
        if there.is_none() {
            steps.push(OrderStep::Enter { page });
            if list.len() == LISTED {
                steps.push(leave(list.remove(0)));
            }
        }
        list.push((page, before + 1));
    }
    steps.extend(list.into_iter().map(leave));
    steps
}

type Blocks = std::vec::IntoIter<Result<OrderBlock, ReferencesError>>;

/// A process with these references, and 300 instructions for each step: 1 µs.
fn process(asked: &[u32]) -> Blocks {
    let blocks: Vec<_> = steps(asked)
        .chunks(7)
        .map(|steps| {
            Ok(OrderBlock {
                instructions: 300 * steps.len() as u64,
                steps: steps.to_vec(),
            })
        })
        .collect();
    blocks.into_iter()
}

fn shared(asked: &[&[u32]], local_pages: u32, fetch: PageFetch) -> SharedMemory<Blocks> {
    SharedMemory::new(asked.iter().map(|of| process(of)), local_pages, fetch)
}

fn simulated(memory: &mut SharedMemory<Blocks>, at_once: usize) -> CpuUse {
    let processes = memory.processes();
    share_cpu(memory, processes, at_once).unwrap()
}

const DELAY: PageFetch = PageFetch {
    delay_ns: 100_000,
    link_ns: 0,
};

/// Computing of these references: 1 µs for each step, and 300 ns for each miss.
fn computing_ns(asked: &[u32]) -> f64 {
    steps(asked).len() as f64 * 1000.0 + asked.len() as f64 * 300.0
}

proptest! {
    /// The faults of one process are those of its stack distances, with a warm start.
    #[test]
    fn one_process_faults_as_its_curve_says(asked in prop::collection::vec(0u32..20, 1..400), local in 4u32..24) {
        let (mut numbers, mut stack) = (HashMap::new(), StackDistances::default());
        for page in &asked {
            let next = numbers.len() as u32;
            stack.reference(*numbers.entry(*page).or_insert(next), false);
        }
        let footprint = stack.cold();
        let reuse = stack.finish().at(&[u64::from(local)])[0].reuse;
        let faults = reuse + footprint.saturating_sub(u64::from(local)) as f64;
        let mut memory = shared(&[&asked], local, DELAY);
        let found = simulated(&mut memory, 1);
        prop_assert_eq!(found.faults as f64, faults);
        prop_assert_eq!(u64::from(memory.footprint_pages()), footprint);
        prop_assert_eq!(memory.references_count(), asked.len() as u64);
        prop_assert_eq!(memory.references().to_first(&[footprint]), [asked.len() as u64]);
        prop_assert!((found.busy_ns as f64 - computing_ns(&asked)).abs() <= 2.0);
        prop_assert_eq!(found.elapsed_ns, found.busy_ns + found.faults * DELAY.delay_ns);
    }

    /// Processes that all fit never wait; those that run one after the other, with memory of their own, fault alike.
    #[test]
    fn processes_share_the_memory(
        asked in prop::collection::vec(prop::collection::vec(0u32..20, 1..200), 1..4), local in 12u32..80,
        at_once in 1usize..4,
    ) {
        let of: Vec<&[u32]> = asked.iter().map(Vec::as_slice).collect();
        let mut all = shared(&of, u32::MAX, DELAY);
        let found = simulated(&mut all, at_once);
        prop_assert_eq!((found.faults, found.idle_ns()), (0, 0));
        let alone: Vec<u32> = of.iter().map(|of| {
            let mut memory = shared(&[of], u32::MAX, DELAY);
            simulated(&mut memory, 1);
            memory.footprint_pages()
        }).collect();
        let largest = alone.iter().copied().max().unwrap();
        let sum: u32 = alone.iter().sum();
        prop_assert!((largest..=sum).contains(&all.footprint_pages()));
        if at_once == 1 {
            prop_assert_eq!(all.footprint_pages(), largest);
        }
        let mut few = shared(&of, local, DELAY);
        let found = simulated(&mut few, at_once);
        prop_assert!(found.elapsed_ns <= found.busy_ns + found.faults * DELAY.delay_ns);
        let is_enough = few.footprint_pages() <= local;
        prop_assert!(!is_enough || found.faults == 0);
        prop_assert!(few.pages.local <= local);
        let local = few.pages.frames.iter().filter(|place| !matches!(place, Place::New | Place::Remote)).count();
        prop_assert_eq!(local as u32, few.pages.local);
    }
}

#[test]
fn two_processes_hide_each_others_delays() {
    // Each cycles through 30 pages of its own, of which 12 are local: all references but the first 12 fault.
    let cycle: Vec<u32> = (0..390).map(|at| at % 30).collect();
    let one = simulated(&mut shared(&[&cycle], 12, DELAY), 1);
    let two = simulated(&mut shared(&[&cycle, &cycle], 24, DELAY), 2);
    assert_eq!((one.faults, two.faults), (390 - 12, 2 * (390 - 12)));
    assert!(two.slowdown() < 0.6 * one.slowdown());
    // The link sends one page at a time, so that little is hidden.
    let link = PageFetch {
        delay_ns: 0,
        link_ns: 100_000,
    };
    let linked = simulated(&mut shared(&[&cycle, &cycle], 24, link), 2);
    assert!(linked.slowdown() > 0.9 * one.slowdown());
    assert_eq!(linked.link_ns, linked.faults * 100_000);
}

#[test]
fn pages_of_an_ended_process_pass_to_the_next() {
    let ten: Vec<u32> = (0..10).collect();
    let mut memory = shared(&[&ten, &ten, &ten], 10, DELAY);
    let found = simulated(&mut memory, 1);
    assert_eq!((found.faults, memory.footprint_pages()), (0, 10));
    assert_eq!(memory.references().to_first(&[5, 10]), [15, 30]);
}

#[test]
fn a_damaged_order_ends_the_simulation() {
    let error = ReferencesError::TooManyPages { most: 1 };
    let blocks: Vec<Result<OrderBlock, ReferencesError>> = vec![Err(error)];
    let mut memory = SharedMemory::new([blocks.into_iter()], 10, DELAY);
    assert!(share_cpu(&mut memory, 1, 1).is_err());
}
