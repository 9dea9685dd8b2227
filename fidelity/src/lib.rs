//! `gleaner fidelity`: a paper's printed figures next to ours. Those of Acharya & Setia come from synthetic clusters
//! modelled on theirs, those of Felten & Zahorjan from their queueing model, those of Feeley et al. from simulations of
//! their cluster, those of Verghese & Rosenblum from their models on recorded programs, and those of Anemone from the
//! benches (`models`).
//!
//! ```text
//! traces/published ─► figures ─────────────────────────────────┐
//! seeds ─► clusters (made, analysed, simulated on) ─► cells ─► record ─► text, markdown, JSON
//!                                  simulation ─► shapes ─┐      └──► aims, contradictions, gains
//!                                                        └──────────► text, markdown, aims
//! ```
//!
//! Rooms, from the top; each uses only those after it: `models`, `markdown`, `text`, `aims`, `contradictions`, `wording`,
//! `gains`, `shapes`, `record`, `cells`, `clusters`, `simulation`, `name`, `number`, `args`, `error`.

mod aims;
mod args;
mod cells;
mod clusters;
mod contradictions;
mod error;
mod gains;
mod markdown;
mod models;
mod name;
mod number;
mod record;
mod shapes;
mod simulation;
mod text;
mod wording;

pub use args::Fidelity;
use args::Paper;
use clusters::SeedWork;
pub use error::FidelityError;
use error::Result;
use gleaner_traces::published::{PublishedWork, acharya_setia};
use gleaner_traces::synth::Cluster;
use name::Name;
use record::{Record, Values};
use shapes::Shape;

/// Computes the figures that `args` request, and returns the comparison for standard output.
///
/// # Errors
/// [`FidelityError`].
pub fn run(args: &Fidelity) -> std::result::Result<String, FidelityError> {
    args.refuse_results()?;
    args.refuse_workloads()?;
    match args.paper {
        Paper::AcharyaSetia => synthetic(args),
        Paper::FeltenZahorjan => models::felten_zahorjan(args),
        Paper::Gms => models::global_memory(args),
        Paper::VergheseRosenblum => models::remote_memory_access(args),
        Paper::Anemone => models::anemone(args),
    }
}

/// Makes the clusters that `args` request, and returns the comparison for standard output.
fn synthetic(args: &Fidelity) -> Result<String> {
    let published = acharya_setia()?;
    args.refuse_unknown_items(&published, &simulation::ITEMS)?;
    let (mut records, mut shapes) = measured(args, &published)?;
    if let Some(file) = &args.markdown {
        let page = markdown::markdown(&records, &shapes, &told(args));
        std::fs::write(file, page).map_err(|source| FidelityError::Page {
            path: file.clone(),
            source,
        })?;
    }
    records.retain(|r| args.requests(&r.item));
    shapes.retain(|s| args.requests(s.item));
    Ok(if args.json {
        serde_json::to_string_pretty(&records)? + "\n"
    } else {
        text::text(&records, &shapes)
    })
}

/// Computes a record for each figure, over all seeds, and the shapes of the figures without numbers.
fn measured(args: &Fidelity, published: &PublishedWork) -> Result<(Vec<Record>, Vec<Shape>)> {
    let work = args.work.clone().unwrap_or_else(std::env::temp_dir);
    let bar = gleaner_terminal::bar("fidelity", 1);
    let (seeds, simulated) = (seeds(args)?, args.simulate.unwrap_or(0));
    let mut wanted = SeedWork {
        analysis: wants_analysis(args),
        jobs: simulation::jobs(&args.item),
        simulated_hours: args.simulated_hours,
    };
    let mut of_seeds: Vec<Values> = Vec::new();
    let mut simulations = Vec::new();
    for done in 0..seeds {
        let seed = args.first_seed.wrapping_add(done);
        let cluster = |name| clusters::cluster(name, seed, args.days);
        let both: [Cluster; 2] = [cluster(Name::A)?, cluster(Name::B)?];
        let host_days = |c: &Cluster| c.parameters().hosts as u64 * u64::from(c.parameters().days);
        let steps: u64 = both.iter().map(host_days).sum();
        let steps_simulated = simulation::STEPS * simulation::jobs(&args.item).len() as u64;
        bar.set_length(steps * seeds + steps_simulated * simulated.min(seeds));
        bar.set_message(format!("seed {seed}, {} of {seeds}", done + 1));
        if done >= simulated {
            wanted.jobs.clear();
        }
        let observed = clusters::observe(&both, &wanted, &work, &bar);
        let observed = observed.map_err(|error| FidelityError::Seed {
            seed,
            source: Box::new(error),
        })?;
        of_seeds.push(record::values(&published.figures, &observed));
        simulations.extend(observed.simulation);
    }
    bar.finish_and_clear();
    let records = record::records(&published.figures, &of_seeds);
    Ok((records, shapes::shapes(&simulations)))
}

/// Returns true if a figure was requested that needs the analysis.
fn wants_analysis(args: &Fidelity) -> bool {
    let is_simulated = |item: &String| simulation::ITEMS.contains(&&**item);
    args.item.is_empty() || !args.item.iter().all(is_simulated)
}

/// Number of seeds to run.
fn seeds(args: &Fidelity) -> Result<u64> {
    match args.simulate {
        _ if wants_analysis(args) => Ok(args.seeds),
        Some(simulated) => Ok(simulated),
        None => Err(FidelityError::NeedsSimulation {
            items: args.item.join(", "),
        }),
    }
}

/// Origin of the page, as stated on the page.
fn told(args: &Fidelity) -> markdown::PageOrigin {
    let seeds = |count: u64| match count {
        1 => format!("the seed {}", args.first_seed),
        many => {
            let last = args.first_seed.wrapping_add(many - 1);
            format!("{many} seeds ({} to {last})", args.first_seed)
        }
    };
    let simulated = args.simulate.map(|simulated| simulated.min(args.seeds));
    markdown::PageOrigin {
        command: command(args),
        seeds: seeds(args.seeds),
        simulated: simulated.map(|simulated| (seeds(simulated), args.simulated_hours)),
    }
}

/// The command line that repeats this run.
fn command(args: &Fidelity) -> String {
    let mut line = format!(
        "gleaner fidelity --seeds {} --first-seed {}",
        args.seeds, args.first_seed
    );
    if args.days != 14 {
        line += &format!(" --days {}", args.days);
    }
    if let Some(simulated) = args.simulate {
        line += &format!(" --simulate={simulated}");
        if args.simulated_hours != 168 {
            line += &format!(" --simulated-hours {}", args.simulated_hours);
        }
    }
    if let Some(file) = &args.markdown {
        line += &format!(" --markdown {}", file.display());
    }
    line
}
