//! `gleaner curve predict`: durations with less local memory, for each technology.

use super::args::Predict;
use super::page;
use super::shown::{SlowdownLine, local_bytes};
use crate::report;
use crate::simulate::refuse_folder;
use crate::tables::plain;
use anyhow::{Context, bail};
use gleaner_schemas::curve::{CURVE_VERSION, Curve, Prediction, Predictions};
use gleaner_simulator::models::{
    ProgramCurve, SHIPPED_TECHNOLOGIES, Technology, Unpredictable, predict,
};
use gleaner_simulator::references::read_curve;
use std::io::Write;
use std::path::Path;

/// Name that stands for all shipped technologies.
const ALL: &str = "all";
/// Local memory in the figure of slowdowns, in percent of the footprint.
const FIGURE_PERCENT: std::ops::RangeInclusive<u32> = 5..=100;

pub(super) fn run(args: &Predict, output: &mut dyn Write) -> anyhow::Result<()> {
    if args.list {
        return Ok(output.write_all(list()?.as_bytes())?);
    }
    if let Some(name) = &args.print {
        let text = Technology::shipped_text(name).with_context(|| unknown(name))?;
        return Ok(output.write_all(text.as_bytes())?);
    }
    refuse_folder(args.page.as_deref())?;
    let path = args.curve.as_ref().context("the curve is missing")?;
    let curve = read_curve(path)?;
    let technologies = technologies(&args.technology)?;
    let is_named = !args.technology.iter().any(|name| name == ALL);
    let (document, left_out) = predictions(args, &curve, &technologies, is_named)?;
    if let Some(to) = &args.page {
        let lines = lines(args, &curve, &technologies);
        report::write(to, page::html(&curve, &lines)?)?;
    }
    let text = match args.json {
        true => format!("{:#}\n", serde_json::to_value(&document)?),
        false => plain(&text(&curve, &document, &left_out)),
    };
    Ok(output.write_all(text.as_bytes())?)
}

/// Every prediction, and the reasons why technologies are left out.
fn predictions(
    args: &Predict,
    curve: &Curve,
    technologies: &[Technology],
    is_named: bool,
) -> anyhow::Result<(Predictions, Vec<String>)> {
    let program = ProgramCurve(curve);
    let mut all: Vec<Prediction> = Vec::new();
    let mut left_out = Vec::new();
    for local in &args.local {
        let local_bytes = local_bytes(*local, curve);
        for technology in technologies {
            match predict(program, technology, local_bytes, args.processes) {
                Ok(prediction) => all.push(prediction),
                // Among all technologies, those for which the curve was not recorded are left out.
                Err(error @ Unpredictable::NoMisses { .. }) if !is_named => {
                    let reason = error.to_string();
                    if !left_out.contains(&reason) {
                        left_out.push(reason);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let document = Predictions {
        curve_version: CURVE_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: curve.program.clone(),
        processes_count: args.processes,
        predictions: all,
    };
    Ok((document, left_out))
}

fn text(curve: &Curve, document: &Predictions, left_out: &[String]) -> String {
    let mut text = String::new();
    for prediction in &document.predictions {
        text += &format!("{}: {}.\n", document.program, prediction.sentence);
    }
    for reason in left_out {
        text += &format!("No prediction: {reason}.\n");
    }
    if let Some(cut) = &curve.cut {
        text += &format!("The curve is cut: {cut}.\n");
    }
    text
}

/// Slowdowns over memory, a line for each technology.
fn lines(args: &Predict, curve: &Curve, technologies: &[Technology]) -> Vec<SlowdownLine> {
    let program = ProgramCurve(curve);
    let line = |technology: &Technology| {
        let points = FIGURE_PERCENT.filter_map(|percent| {
            let pages = program.share_pages(f64::from(percent) / 100.0);
            let local_bytes = (pages * curve.page_bytes as f64) as u64;
            let predicted = predict(program, technology, local_bytes, args.processes).ok()?;
            Some((local_bytes as f64, predicted.slowdown))
        });
        (
            technology.label.clone(),
            points.collect::<Vec<(f64, f64)>>(),
        )
    };
    let lines = technologies.iter().map(line);
    lines.filter(|(_, points)| !points.is_empty()).collect()
}

/// Technologies with these names, in order.
pub(super) fn technologies(names: &[String]) -> anyhow::Result<Vec<Technology>> {
    let mut technologies = Vec::new();
    for name in names {
        if name == ALL {
            for (name, text) in SHIPPED_TECHNOLOGIES {
                technologies.push(Technology::parse(name, text)?);
            }
        } else if let Some(text) = Technology::shipped_text(name) {
            technologies.push(Technology::parse(name, text)?);
        } else if Path::new(name)
            .extension()
            .is_some_and(|ending| ending == "toml")
        {
            let text =
                std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
            technologies.push(Technology::parse(name, &text)?);
        } else {
            bail!("{}", unknown(name));
        }
    }
    Ok(technologies)
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = SHIPPED_TECHNOLOGIES.iter().map(|(name, _)| *name).collect();
    format!(
        "there is no technology {name}: write {}, or a file that ends in .toml",
        names.join(", ")
    )
}

/// Table of the shipped technologies.
fn list() -> anyhow::Result<String> {
    let mut table = gleaner_terminal::table(&["technology", "memory", "figures"], 3);
    for technology in technologies(&[ALL.to_owned()])? {
        table.add_row([technology.name, technology.about, technology.source]);
    }
    Ok(table.trim_fmt() + "\n")
}
