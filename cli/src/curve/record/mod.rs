//! `gleaner curve record`: runs and records a program, or reads a stream, and writes the curve.

mod program;
mod recorder;
mod stream;

use super::args::Record;
use super::native::interrupted;
use crate::report;
use crate::simulate::refuse_folder;
use crate::tables::plain;
use gleaner_schemas::curve::Curve;
use gleaner_schemas::units::{Bytes, thousands};
use std::io::Write;

pub(super) fn run(args: &Record, output: &mut dyn Write) -> anyhow::Result<()> {
    refuse_folder(Some(&args.output))?;
    refuse_folder(args.order.as_deref())?;
    let (curve, cost) = match args.program.is_empty() {
        true => stream::record(args)?,
        false => recorder::record(args, &*interrupted()?)?,
    };
    let json = serde_json::to_vec(&curve)?;
    report::write(&args.output, json)?;
    let text = format!("{}{cost}\n", summary(&curve, args));
    Ok(output.write_all(plain(&text).as_bytes())?)
}

fn summary(curve: &Curve, args: &Record) -> String {
    let footprint_bytes = curve.footprint_pages.saturating_mul(curve.page_bytes);
    let mut text = format!(
        "{}: {} pages ({}) in {} references; the curve is in {}\n",
        curve.program,
        thousands(curve.footprint_pages),
        Bytes::from(footprint_bytes),
        thousands(curve.references_count),
        args.output.display(),
    );
    if let Some(cut) = &curve.cut {
        text += &format!("The curve is cut: {cut}.\n");
    }
    text
}
