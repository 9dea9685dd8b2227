//! `gleaner curve`: slowdown of a program with less local memory, predicted and measured.
//!
//! ```text
//! record: program ─► native run, run under QEMU ─► gleaner_simulator::references ─► curve (JSON)
//!         stream of another program ─────────────────────┘
//! show: curve ─► table, JSON, page        predict: curve, technologies ─► gleaner_simulator::models ─► the same
//! measure: program ─► native run, runs by gleaner-clerk (limited) ─► table, JSON, beside the curve's predictions
//! calibrate: touch, a child of gleaner-clerk ─► times of faults ─► technology (TOML)
//!            program ─► runs as for measure ───────────┘
//! watch: /proc/PID ─► working sets
//! ```

pub(crate) mod args;
mod calibrate;
mod limited;
mod measure;
mod native;
mod page;
mod predict;
mod record;
mod runs;
mod show;
mod shown;
mod swaps;
mod watch;

use args::{Curve, Step};
use std::io::Write;

pub(crate) fn run(args: &Curve, output: &mut dyn Write) -> anyhow::Result<()> {
    match &args.step {
        Step::Record(args) => record::run(args, output),
        Step::Show(args) => show::run(args, output),
        Step::Predict(args) => predict::run(args, output),
        Step::Measure(args) => measure::run(args, output),
        Step::Calibrate(args) => calibrate::run(args, output),
        Step::Watch(args) => watch::run(args, output),
        Step::Touch(args) => calibrate::touch(args, output),
    }
}
