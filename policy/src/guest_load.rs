//! The part of the load average that is not the owner's: a memory server that serves its clients causes load,
//! which would otherwise end the idle period in which it lends.

/// Time constant of the 5-minute load average (`kernel/sched/loadavg.c`).
const LOAD5_MS: f64 = 300_000.0;

/// Load from processes that are not the owner's. The kernel counts runnable tasks, but only the CPU time of
/// these processes is known, which is less while they wait for a CPU: the difference counts as the owner's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuestLoad {
    load5: f64,
}

impl GuestLoad {
    /// Adds the CPU time that the processes that are not the owner's used in `passed_ms`. Returns their part
    /// of the 5-minute load average, decayed as the kernel decays it. The load before the first step is
    /// unknown and counts as the owner's.
    pub fn step(&mut self, cpu_ms: u64, passed_ms: i64) -> f64 {
        if passed_ms > 0 {
            let passed_ms = passed_ms as f64;
            let kept = (-passed_ms / LOAD5_MS).exp();
            self.load5 = self.load5 * kept + cpu_ms as f64 / passed_ms * (1.0 - kept);
        }
        self.load5
    }
}

/// The owner's part of the 5-minute load average, for the idle rule. If the guests' part is unknown, all of
/// the load is the owner's.
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
        /// Compares the result with the kernel's own recurrence, one step every 5 s.
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
        // A clock that does not advance, or a guests' part above the whole load, changes nothing.
        let before = guest;
        assert_eq!(guest.step(500, 0), before.load5);
        assert_eq!(owner_load5(Some(0.5), Some(2.0)), Some(0.0));
        assert_eq!(owner_load5(Some(0.5), None), Some(0.5));
        assert_eq!(owner_load5(Some(0.5), Some(f64::NAN)), Some(0.5));
        assert_eq!(owner_load5(None, Some(2.0)), None);
        assert!(owner_load5(Some(f64::NAN), Some(2.0)).unwrap().is_nan());
    }
}
