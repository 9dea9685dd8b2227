//! Hints to the CPU about memory that is read soon. They change no result.
//!
//! The tables of a simulated cluster are larger than the caches. Its driver knows which memory a node will read: when it
//! schedules a message for the node, and while it handles the event before.

/// Stage of a prefetch: a page's place is known only when the index's line has been loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchStage {
    /// Line of the index that leads to the page; long before the event.
    Index,
    /// Frame or directory entry of the page; during the event before.
    Page,
}

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Asks the CPU to load the cache lines of a value, without what it refers to. Does nothing on other CPUs than x86-64.
#[inline]
#[allow(unsafe_code)]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let begin = std::ptr::from_ref(value).cast::<i8>();
        for at in (0..size_of::<T>()).step_by(LINE_BYTES) {
            // SAFETY: every x86-64 CPU has SSE, and a prefetch has no effect that a program could see.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(begin.wrapping_add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
