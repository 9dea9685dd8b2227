//! The `gleaner` command for users. Every subcommand has its own module.
//!
//! Rooms, from the top; each uses only those after it: `man`, `args`, `cache`, `collect`,
//! `demo`, `explain`, `import`, `pki`, `schema`, `simulate`, `synth`, `doctor`, `export`,
//! `report`, `merge`, `analyze`, `owner`, `top`, `tables`, `values`.

mod analyze;
mod args;
mod cache;
mod collect;
mod demo;
mod doctor;
mod explain;
mod export;
mod import;
mod man;
mod merge;
mod owner;
mod pki;
mod report;
mod schema;
mod simulate;
mod synth;
mod tables;
mod top;
mod values;

use args::{Args, Command};
use clap::Parser;
use gleaner_daemon::causes;
use std::io::Write;
use std::process::ExitCode;
use tables::plain;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        // The reader closed the pipe, as in `gleaner analyze … | head`: this is not an error.
        Err(e) if is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) if e.is::<report::EmptyReport>() => {
            let _ = writeln!(
                std::io::stderr(),
                "gleaner: {}",
                plain(&causes::told(e.as_ref()))
            );
            ExitCode::from(report::NOTHING_TO_REPORT)
        }
        Err(e) => {
            // If standard error is closed, nothing can be reported.
            let _ = writeln!(
                std::io::stderr(),
                "gleaner: {}",
                plain(&causes::told(e.as_ref()))
            );
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    let done = match args.command {
        Command::Doctor(args) => return doctor::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Analyze(args) => analyze::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Synth(args) => synth::run(&args),
        Command::Fidelity(args) => print(&gleaner_fidelity::run(&args)?),
        Command::Lab(args) => print(&gleaner_lab::run(&args)?),
        Command::Top(args) => top::run(&args),
        Command::Owner(args) => owner::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Pki(args) => pki::run(&args),
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::pages(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
