//! All decoders in one program, since it takes minutes to link a program. The environment variable
//! GLEANER_FUZZ_TARGET names the decoder to run.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// Maximum size of one allocation. A larger one is a fault of the decoder, since no input is longer than 64
/// KiB.
const MOST_BYTES: usize = 256 << 20;

struct BoundedAllocator;

// SAFETY: every call is passed to the system's allocator.
unsafe impl GlobalAlloc for BoundedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > MOST_BYTES {
            eprintln!("an allocation of {} bytes", layout.size());
            std::process::abort();
        }
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static BOUNDED: BoundedAllocator = BoundedAllocator;

static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();

fn find() {
    let name = std::env::var("GLEANER_FUZZ_TARGET").expect("GLEANER_FUZZ_TARGET names a decoder");
    let run = gleaner_tests::fuzz::target(&name).expect("GLEANER_FUZZ_TARGET is no decoder");
    TARGET.set(run).expect("set once");
    // The decoder of batches catches panics of Arrow. libFuzzer's own panic hook would end the program
    // before, and is therefore replaced. A panic that is not caught still ends the program.
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
}

libfuzzer_sys::fuzz_target!(init: find(), |bytes: &[u8]| {
    TARGET.get().expect("set at the start")(bytes);
});
