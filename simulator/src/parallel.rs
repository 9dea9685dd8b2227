//! Runs work on several threads. The order of results does not depend on the number of threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Returns the result of `work` for each item, in the items' order. After an error no more items are begun.
/// If several items fail, the first item's error is returned. This error is the same for any number of
/// threads, because all items before the failed one were begun earlier and are finished.
///
/// # Errors
/// Those of `work`.
pub fn each<T: Sync, R: Send, E: Send>(
    threads: NonZeroUsize,
    items: &[T],
    work: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let has_failed = AtomicBool::new(false);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        while !has_failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            if result.is_err() {
                has_failed.store(true, Ordering::Relaxed);
            }
            // No code panics while it holds the lock.
            done.lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.get().min(items.len()) {
            scope.spawn(worker);
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
