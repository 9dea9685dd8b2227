//! The part of the load average that is not the owner's: a memory server that answers its clients is at work, and would
//! else end by its own load the idle period that it lends in.

/// Time constant of the 5-minute load average (`kernel/sched/loadavg.c`).
const LOAD5_MS: f64 = 300_000.0;

/// Load by processes that are not the owner's. The kernel counts runnable tasks; known of these processes is their CPU
/// time, which is less where they wait for a CPU: the rest stays with the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuestLoad {
    load5: f64,
}

impl GuestLoad {
    /// Takes in the CPU time that they used in `passed_ms`, and returns their part of the 5-minute load average, decayed
    /// as the kernel decays it. Nothing is known of the time before the first step: it counts as the owner's.
    pub fn step(&mut self, cpu_ms: u64, passed_ms: i64) -> f64 {
        if passed_ms > 0 {
            let passed_ms = passed_ms as f64;
            let kept = (-passed_ms / LOAD5_MS).exp();
            self.load5 = self.load5 * kept + cpu_ms as f64 / passed_ms * (1.0 - kept);
        }
        self.load5
    }
}

/// The owner's part of the 5-minute load average: that of the idle rule. Without a figure for the rest, all of it.
#[must_use]
pub fn owner_load5(load5: Option<f64>, guest_load5: Option<f64>) -> Option<f64> {
    let guest_load5 = guest_load5.filter(|load| *load > 0.0).unwrap_or(0.0);
    let owner = |load5: f64| {
        if load5.is_nan() {
            load5
        } else {
            (load5 - guest_load5).max(0.0)
        }
    };
    load5.map(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Beside the kernel's own sum, a step every 5 s.
        #[test]
        fn it_is_the_kernels_average_of_what_ran(
            spans in prop::collection::vec((1..40_i64, 0.0..4.0_f64), 1..30),
        ) {
            let (mut guest, mut kernel, mut found) = (GuestLoad::default(), 0.0, 0.0);
            for (steps, running) in spans {
                let decay = (-5000.0 / LOAD5_MS).exp();
                for _ in 0..steps {
                    kernel = kernel * decay + running * (1.0 - decay);
                }
                let passed_ms = steps * 5000;
                found = guest.step((running * passed_ms as f64).round() as u64, passed_ms);
            }
            prop_assert!((found - kernel).abs() < 1e-3, "{found} {kernel}");
        }
    }

    #[test]
    fn a_busy_memory_server_alone_leaves_no_load_to_the_owner() {
        let mut guest = GuestLoad::default();
        for _ in 0..40 {
            guest.step(90_000, 90_000);
        }
        assert!(owner_load5(Some(1.02), Some(guest.load5)).unwrap() < 0.03);
        // A clock that stands still, and a figure that is more than all of it, change nothing.
        let before = guest;
        assert_eq!(guest.step(500, 0), before.load5);
        assert_eq!(owner_load5(Some(0.5), Some(2.0)), Some(0.0));
        assert_eq!(owner_load5(Some(0.5), None), Some(0.5));
        assert_eq!(owner_load5(Some(0.5), Some(f64::NAN)), Some(0.5));
        assert_eq!(owner_load5(None, Some(2.0)), None);
        assert!(owner_load5(Some(f64::NAN), Some(2.0)).unwrap().is_nan());
    }
}
