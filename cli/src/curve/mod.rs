//! `gleaner curve`: what a program would lose with less local memory.
//!
//! ```text
//! record: program ─► native run, run under QEMU ─► gleaner_simulator::references ─► curve (JSON)
//!         stream of another program ─────────────────────┘
//! show: curve ─► table, JSON, page        predict: curve, technologies ─► gleaner_simulator::models ─► the same
//! ```

pub(crate) mod args;
mod page;
mod predict;
mod record;
mod show;
mod shown;

use args::{Curve, Step};
use std::io::Write;

pub(crate) fn run(args: &Curve, output: &mut dyn Write) -> anyhow::Result<()> {
    match &args.step {
        Step::Record(args) => record::run(args, output),
        Step::Show(args) => show::run(args, output),
        Step::Predict(args) => predict::run(args, output),
    }
}
