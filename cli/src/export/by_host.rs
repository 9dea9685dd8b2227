//! `gleaner export --to availability|fta|simgrid`: the analysis' results for each host, in the traces crate's
//! formats.

use super::args::{Export, ExportScope, Format};
use gleaner_dataset::Dataset;
use gleaner_schemas::availability::AvailabilityQuestion;
use gleaner_schemas::column::Row;
use gleaner_schemas::findings::{Parameters, Scope};
use gleaner_schemas::rows::SampleRow;
use gleaner_traces::ExportSummary;
use gleaner_traces::export::ByHost;
use gleaner_traces::export::availability::Availability;
use gleaner_traces::export::fta::Fta;
use gleaner_traces::export::simgrid::SimGrid;

pub(super) fn run(
    args: &Export,
    dataset: &Dataset,
    region_bytes: i64,
) -> anyhow::Result<ExportSummary> {
    let question = question(args, dataset, region_bytes)?;
    let hosts_count = match &question.hosts {
        Some(hosts) => hosts.len(),
        None => dataset.hosts()?.len(),
    };
    let bar = gleaner_terminal::bar("export", hosts_count as u64);
    let mut left_out = 0;
    // The writer is created with the first host's results: if the request is invalid, the analysis fails
    // before, and no folder is created.
    let mut begun: Option<Box<dyn ByHost>> = None;
    gleaner_analysis::availability(dataset, &question, |host| -> anyhow::Result<()> {
        left_out += u64::from(!host.is_told);
        bar.inc(1);
        let writer = match &mut begun {
            Some(writer) => writer,
            none => none.insert(writer(args, dataset, &question)?),
        };
        Ok(writer.add(&host)?)
    })?;
    bar.finish_and_clear();
    if left_out > 0 {
        eprintln!("hosts without periods, because their idle state was never known: {left_out}");
    }
    let writer = match begun {
        Some(writer) => writer,
        None => writer(args, dataset, &question)?,
    };
    Ok(writer.finish()?)
}

fn question(
    args: &Export,
    dataset: &Dataset,
    region_bytes: i64,
) -> anyhow::Result<AvailabilityQuestion> {
    let asked = &args.availability;
    let paper = Parameters::default();
    let headroom_share = asked.headroom.map(|percent| percent / 100.0);
    let minimum_period_ms = asked.minimum_period.map(|period| period.as_millis());
    Ok(AvailabilityQuestion {
        region_bytes,
        scope: match asked.scope {
            None | Some(ExportScope::All) => Scope::All,
            Some(ExportScope::Idle) => Scope::Idle,
        },
        minimum_period_ms: i64::try_from(minimum_period_ms.unwrap_or(0)).unwrap_or(i64::MAX),
        idle_after_s: asked
            .idle_after
            .map_or(paper.idle_after_s, |time| time.as_secs_f64()),
        load_limit: asked.load_limit.unwrap_or(paper.load_limit),
        headroom_share: headroom_share.unwrap_or(paper.headroom_share),
        hosts: super::hosts(args, dataset)?,
        from_ms: args.from,
        until_ms: args.until,
        has_samples: args.to != Format::Fta,
    })
}

fn writer(
    args: &Export,
    dataset: &Dataset,
    question: &AvailabilityQuestion,
) -> anyhow::Result<Box<dyn ByHost>> {
    let to = &args.output;
    Ok(match args.to {
        Format::Fta => Box::new(Fta::create(to, question)?),
        Format::Simgrid => Box::new(SimGrid::create(to, question, origin_ms(dataset, question))?),
        _ => {
            let format = super::column_format(args.availability.columns_as);
            Box::new(Availability::create(
                to,
                question,
                format,
                !args.uncompressed,
            )?)
        }
    })
}

/// Time of the first sample of any host, or the start of the requested time.
fn origin_ms(dataset: &Dataset, question: &AvailabilityQuestion) -> i64 {
    let files = dataset.manifest().files.iter();
    let samples = files.filter(|file| file.table == SampleRow::TABLE.name);
    let first_ms = samples.map(|file| file.first_time_ms).min().unwrap_or(0);
    question
        .from_ms
        .map_or(first_ms, |from_ms| from_ms.max(first_ms))
}
