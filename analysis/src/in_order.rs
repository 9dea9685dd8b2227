//! Concurrent work on a list of items, with the results in the list's order.

use crate::error::{AnalysisError, Result};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Calls `work` on each of `things`, on one thread per CPU, and `take` with each result, in the order
/// of `things`, on the caller's thread.
///
/// # Errors
/// The first error of `work` or `take`, in the order of `things`; `take` gets no result after it.
pub(crate) fn each<T: Sync, R: Send, E: From<AnalysisError>>(
    things: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        // Bounded: a slow `take` makes the workers wait instead of filling memory.
        let (done, results) = sync_channel(threads);
        for _ in 0..threads.min(things.len()) {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(thing) = things.get(at) else { return };
                    // After an error the receiver is closed.
                    if done.send((at, work(thing))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (at, result) in results {
            early.insert(at, result);
            while let Some(result) = early.remove(&wanted) {
                take(result?)?;
                wanted += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnalysisError;

    #[test]
    fn results_come_in_order_whatever_takes_long() {
        let things: Vec<u64> = (0..200).collect();
        let mut taken = Vec::new();
        let slow_first = |n: &u64| {
            let turns = if n.is_multiple_of(7) { 200_000 } else { 10 };
            let sum = (0..turns).fold(0_u64, |sum, i| std::hint::black_box(sum.wrapping_add(i)));
            Ok((*n, sum).0)
        };
        let all = each(&things, slow_first, |n| {
            taken.push(n);
            Ok::<(), AnalysisError>(())
        });
        all.unwrap();
        assert_eq!(taken, things);
        let nothing = |()| -> Result<()> { panic!("nothing to take") };
        each(&[], |(): &()| Ok(()), nothing).unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        let things: Vec<usize> = (0..100).collect();
        let fails = |n: &usize| match n {
            40.. => Err(AnalysisError::NoSamples { hosts_count: *n }),
            _ => Ok(*n),
        };
        let mut taken = 0;
        let mut take = |n: usize, most: usize| {
            taken += 1;
            match n {
                n if n < most => Ok(()),
                hosts_count => Err(AnalysisError::NoSamples { hosts_count }),
            }
        };
        for (most, ends_at) in [(100, 40), (7, 7)] {
            let error = each(&things, fails, |n| take(n, most)).unwrap_err();
            assert!(
                matches!(error, AnalysisError::NoSamples { hosts_count } if hosts_count == ends_at)
            );
        }
        // In the first call, `take` got 0 to 39; in the second, 0 to 7, of which it refused the last.
        assert_eq!(taken, 40 + 8);
    }
}
