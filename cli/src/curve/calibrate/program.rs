//! Cost of a fault of the user's own program: its extra time with little local memory, divided by its faults.

use super::super::args::{CalibrateArgs, FaultSource};
use super::super::limited::LimitedRun;
use super::super::runs::{ProgramRuns, limit_bytes};
use super::super::swaps;
use super::costs::{FaultMeans, FaultTimes};
use anyhow::{Context, bail};
use gleaner_schemas::curve::NativeRun;
use gleaner_schemas::units::{Bytes, thousands};
use gleaner_simulator::references::read_curve;

/// Fewer faults cost less than two runs of a program differ by themselves.
const LEAST_FAULTS: u64 = 1_000;

/// Costs of the faults of a user's program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProgramCosts {
    /// Name of the program, without folders.
    pub(super) program: String,
    /// Local memory of the limited runs.
    pub(super) local_bytes: u64,
    /// Run without a limit.
    pub(super) native: NativeRun,
    /// Mean duration of the limited runs.
    pub(super) wall_s: f64,
    /// Number of limited runs.
    pub(super) runs_count: usize,
    pub(super) times: FaultTimes,
}

/// Runs the program without a limit and with little local memory. Returns also the kinds of swap.
pub(super) fn measured(args: &CalibrateArgs) -> anyhow::Result<(ProgramCosts, String)> {
    if args.by == FaultSource::File {
        bail!(
            "--by file measures with a file of its own, and runs no program: leave the program out, or choose \
             --by swap or --by zram"
        );
    }
    let curve = args.curve.as_deref().map(read_curve).transpose()?;
    let local_bytes = limit_bytes(args.local, curve.as_ref())?;
    let kinds = swaps::kinds(args.by == FaultSource::Zram)?;
    let program = ProgramRuns::new(&args.program, curve.as_ref())?;
    let native = program.native(args.runs)?;
    let (limited, _) = program.limited(local_bytes, args.runs)?;
    let costs = ProgramCosts::of(program.name, local_bytes, native, &limited)?;
    Ok((costs, kinds))
}

impl ProgramCosts {
    /// Costs of a fault in these limited runs.
    ///
    /// # Errors
    /// A run has too few faults, or lacks a figure, or the runs took no more time than the one without a limit.
    fn of(
        program: String,
        local_bytes: u64,
        native: NativeRun,
        limited: &[LimitedRun],
    ) -> anyhow::Result<Self> {
        let local = Bytes::from(local_bytes);
        let parts: Vec<FaultMeans> = limited
            .iter()
            .map(|run| means(native, run).with_context(|| format!("{program} with {local}")))
            .collect::<Result<_, _>>()?;
        let times = FaultTimes::of(&parts).context("the program had no limited run")?;
        let wall_s = limited.iter().map(|run| run.wall_s).sum::<f64>() / limited.len() as f64;
        // One fast run counts as a cost of 0, which is the low end. Fast runs on average have no cost.
        if wall_s <= native.wall_s {
            bail!(
                "{program} with {local}: not slower ({wall_s:.2} s) than without a limit ({:.2} s) in spite of {} page \
                 faults, so their cost cannot be measured: repeat the measurement (a first run reads its files from \
                 the disk), or choose a smaller --local",
                native.wall_s,
                thousands(times.faults),
            );
        }
        Ok(Self {
            program,
            local_bytes,
            native,
            wall_s,
            runs_count: limited.len(),
            times,
        })
    }

    /// Number of limited runs in words.
    pub(super) fn runs(&self) -> String {
        match self.runs_count {
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        }
    }
}

/// Mean times of the faults of a limited run. CPU time and duration beyond those of the run without a limit are the
/// faults'.
fn means(native: NativeRun, run: &LimitedRun) -> anyhow::Result<FaultMeans> {
    let (Some(faults), Some(cpu_s)) = (run.major_faults, run.cpu_s) else {
        bail!(
            "gleaner-clerk's report has no page faults or no CPU time: this kernel does not count them"
        );
    };
    if faults < LEAST_FAULTS {
        bail!(
            "only {} page faults waited for a device, fewer than {}: choose a smaller --local",
            thousands(faults),
            thousands(LEAST_FAULTS),
        );
    }
    let us = |more_s: f64| more_s * 1e6 / faults as f64;
    let cost_us = us(run.wall_s - native.wall_s).max(0.0);
    let software_us = us(cpu_s - native.cpu_s).clamp(0.0, cost_us);
    Ok(FaultMeans {
        faults,
        software_us,
        latency_us: cost_us - software_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: NativeRun = NativeRun {
        wall_s: 2.0,
        cpu_s: 1.5,
        peak_bytes: 64 << 20,
        major_faults_count: 0,
    };

    fn run(wall_s: f64, cpu_s: f64, faults: u64) -> LimitedRun {
        LimitedRun {
            wall_s,
            cpu_s: Some(cpu_s),
            major_faults: Some(faults),
            ..LimitedRun::default()
        }
    }

    fn costs(runs: &[LimitedRun]) -> anyhow::Result<ProgramCosts> {
        ProgramCosts::of("perl".to_owned(), 32 << 20, NATIVE, runs)
    }

    /// Asserts that both are equal but for rounding.
    #[track_caller]
    fn near(found: [f64; 3], expected: [f64; 3]) {
        let is_near = |(found, expected): (f64, f64)| (found - expected).abs() < 1e-6;
        assert!(
            found.into_iter().zip(expected).all(is_near),
            "{found:?} {expected:?}"
        );
    }

    #[test]
    fn extra_time_is_divided_by_faults() {
        let one = costs(&[run(3.0, 2.0, 100_000)]).unwrap();
        near(one.times.software_us, [5.0; 3]);
        near(one.times.latency_us, [5.0; 3]);
        assert_eq!((one.runs_count, one.wall_s), (1, 3.0));
        let three = costs(&[
            run(3.0, 2.0, 100_000),
            run(5.0, 1.5, 100_000),
            run(4.0, 2.5, 200_000),
        ])
        .unwrap();
        // Means: 5, 0 and 5 us of CPU time; 5, 30 and 5 us of waiting.
        near(three.times.software_us, [3.75, 0.0, 5.0]);
        near(three.times.latency_us, [11.25, 5.0, 30.0]);
        assert_eq!((three.times.faults, three.runs_count), (400_000, 3));
        assert_eq!((three.wall_s, three.local_bytes), (4.0, 32 << 20));
    }

    #[test]
    fn cpu_time_is_within_the_cost() {
        // A program with several threads uses more CPU time than its duration grows.
        let threads = costs(&[run(2.5, 9.0, 100_000)]).unwrap();
        near(threads.times.software_us, [5.0; 3]);
        near(threads.times.latency_us, [0.0; 3]);
        let less = costs(&[run(2.5, 1.4, 100_000)]).unwrap();
        near(less.times.software_us, [0.0; 3]);
        near(less.times.latency_us, [5.0; 3]);
    }

    #[test]
    fn few_faults_are_refused_with_their_number() {
        assert!(costs(&[run(3.0, 2.0, 1_000)]).is_ok());
        let runs = [run(3.0, 2.0, 5_000), run(3.0, 2.0, 999)];
        let error = format!("{:#}", costs(&runs).unwrap_err());
        assert_eq!(
            error,
            "perl with 32.0 MiB: only 999 page faults waited for a device, fewer than 1,000: choose a smaller --local"
        );
    }

    #[test]
    fn absent_figures_are_refused() {
        for absent in [
            LimitedRun {
                cpu_s: None,
                ..run(3.0, 2.0, 5_000)
            },
            LimitedRun {
                major_faults: None,
                ..run(3.0, 2.0, 5_000)
            },
        ] {
            let error = format!("{:#}", costs(&[absent]).unwrap_err());
            assert!(error.contains("this kernel does not count"), "{error}");
        }
        assert!(costs(&[]).is_err());
    }

    #[test]
    fn runs_that_are_not_slower_have_no_cost() {
        let error = costs(&[run(2.0, 1.6, 5_000)]).unwrap_err().to_string();
        assert!(
            error.contains(
                "not slower (2.00 s) than without a limit (2.00 s) in spite of 5,000 page faults"
            ),
            "{error}"
        );
        assert!(costs(&[run(1.5, 1.5, 5_000), run(2.4, 1.6, 5_000)]).is_err());
        // One fast run of several is the low end.
        let found = costs(&[run(1.9, 1.6, 100_000), run(3.0, 1.5, 100_000)]).unwrap();
        near(found.times.software_us, [0.0; 3]);
        near(found.times.latency_us, [5.0, 0.0, 10.0]);
    }
}
