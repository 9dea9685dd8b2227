//! The `gleaner` command for users, as a library. Every subcommand has its own module. The program `gleaner` and
//! the Python package call this crate.
//!
//! Rooms, from the top; each uses only those after it: `man`, `args`, `cache`, `collect`, `curve`,
//! `demo`, `explain`, `import`, `merge`, `pki`, `schema`, `simulate`, `synth`, `doctor`,
//! `export`, `report`, `analyze`, `document`, `owner`, `top`, `tables`, `values`.

mod analyze;
mod args;
mod cache;
mod collect;
mod curve;
mod demo;
mod doctor;
mod document;
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
use document::Form;
use gleaner_daemon::causes;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use tables::plain;

/// Exit code if a command failed.
const FAILED: u8 = 1;

/// Runs a command as the program does: results go to standard output, an error's message to standard error.
/// `arguments` begin with the program's name. Returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let code = match Args::try_parse_from(arguments) {
        Ok(args) => {
            if analyses(&args.command) {
                analyze::keep_freed_memory();
            }
            let done = execute(args, &mut std::io::stdout());
            done.unwrap_or_else(|e| print_failure(&e))
        }
        Err(usage) => {
            // Help and version are printed to standard output, wrong usage to standard error.
            let _ = usage.print();
            u8::try_from(usage.exit_code()).unwrap_or(FAILED)
        }
    };
    // Rust flushes standard output at the end of its own `main`, which a Python process does not have.
    let _ = std::io::stdout().flush();
    code
}

/// Returns true if the command may analyse a dataset.
fn analyses(command: &Command) -> bool {
    matches!(
        command,
        Command::Analyze(_)
            | Command::Merge(_)
            | Command::Report(_)
            | Command::Simulate(_)
            | Command::Demo(_)
    )
}

/// Prints an error to standard error, and returns the exit code.
fn print_failure(error: &anyhow::Error) -> u8 {
    // The reader closed the pipe, as in `gleaner analyze … | head`: this is not an error.
    if is_broken_pipe(error) {
        return 0;
    }
    // If standard error is closed, nothing can be reported.
    let _ = writeln!(std::io::stderr(), "gleaner: {}", message(error.as_ref()));
    match error.is::<report::EmptyReport>() {
        true => report::NOTHING_TO_REPORT,
        false => FAILED,
    }
}

/// Runs a command and writes its result to `output`. `arguments` begin with the program's name. Returns the exit
/// code, which is not 0 if `doctor` found a fault.
///
/// Commands for terminals and daemons (`demo`, `collect`, `top`, `owner`, `pki`, `doctor`, `completions`) write to
/// standard output.
///
/// # Errors
/// The text that the program prints to standard error, without `gleaner: ` in front of it.
pub fn try_run(
    arguments: impl IntoIterator<Item = OsString>,
    output: &mut dyn Write,
) -> Result<u8, String> {
    match Args::try_parse_from(arguments) {
        Ok(args) => execute(args, output).map_err(|e| message(e.as_ref())),
        Err(usage) if usage.use_stderr() => Err(usage_text(&usage)),
        Err(help) => match write!(output, "{}", help.render()) {
            Ok(()) => Ok(0),
            Err(e) => Err(message(&e)),
        },
    }
}

/// Parameters that the arguments of `gleaner analyze` request. `arguments` begin with the program's name.
///
/// # Errors
/// The text that the program prints about wrong usage.
pub fn parameters(arguments: impl IntoIterator<Item = OsString>) -> Result<Parameters, String> {
    let args = Args::try_parse_from(arguments).map_err(|usage| usage_text(&usage))?;
    match args.command {
        Command::Analyze(args) => analyze::requested(&args).map_err(|e| message(e.as_ref())),
        _ => Err("only `gleaner analyze` has parameters".to_owned()),
    }
}

/// Parameters of an analysis in a JSON text, which may be findings. Absent keys have their defaults.
///
/// # Errors
/// The text that `gleaner analyze --parameters` prints about a text that has no parameters, or unknown ones.
pub fn parameters_of_json(text: &str) -> Result<Parameters, String> {
    analyze::from_json(text).map_err(|e| message(e.as_ref()))
}

/// Checks, before an analysis of `hosts_count` hosts, that [`findings_document`] can print its findings.
///
/// # Errors
/// The text that `gleaner analyze --json` prints about too many hosts, or about a folder `records` with files.
pub fn check_document(
    hosts_count: usize,
    parameters: &Parameters,
    records: Option<&Path>,
) -> Result<(), String> {
    let checked = Form::json(records).check(hosts_count, parameters);
    checked.map_err(|e| message(e.as_ref()))
}

/// Findings as the JSON document that `gleaner analyze --json` prints. With the folder `records`, the records of
/// single hosts are in Parquet files in this folder instead.
///
/// # Errors
/// The text that the command prints if it cannot write the folder.
pub fn findings_document(findings: Findings, records: Option<&Path>) -> Result<String, String> {
    let mut text = Vec::new();
    let printed = Form::json(records).print(findings, &mut text);
    printed.map_err(|e| message(e.as_ref()))?;
    String::from_utf8(text).map_err(|e| message(&e))
}

/// Ids of hosts of `dataset`, which are given by their ids or names.
///
/// # Errors
/// The text that `gleaner export` prints about a name that no host or several hosts have, or about an unreadable
/// file.
pub fn host_ids(hosts: &[String], dataset: &Dataset) -> Result<BTreeSet<String>, String> {
    export::host_ids(hosts, dataset).map_err(|e| message(e.as_ref()))
}

/// Text that the program prints about an error: the error and its causes, without control characters.
#[must_use]
pub fn message(error: &(dyn Error + 'static)) -> String {
    plain(&causes::told(error))
}

fn execute(args: Args, output: &mut dyn Write) -> anyhow::Result<u8> {
    let done = match args.command {
        Command::Doctor(args) => return doctor::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Collect(args) => collect::run(&args),
        Command::Analyze(args) => analyze::run(&args, output),
        Command::Merge(args) => merge::run(&args, output),
        Command::Explain(args) => explain::run(&args, output),
        Command::Report(args) => report::run(&args, output),
        Command::Export(args) => export::run(&args, output),
        Command::Import(args) => import::run(&args, output),
        Command::Simulate(args) => simulate::run(&args, output),
        Command::Cache(args) => cache::run(&args, output),
        Command::Curve(args) => curve::run(&args, output),
        Command::Synth(args) => synth::run(&args, output),
        Command::Fidelity(args) => print(&gleaner_fidelity::run(&args)?, output),
        Command::Lab(args) => print(&gleaner_lab::run(&args)?, output),
        Command::Top(args) => top::run(&args),
        Command::Owner(args) => owner::run(&args),
        Command::Schema(args) => schema::run(&args, output),
        Command::Pki(args) => pki::run(&args),
        Command::Completions(args) => man::completions(&args),
        Command::Man(args) => man::pages(&args),
    };
    done.map(|()| 0)
}

fn print(text: &str, output: &mut dyn Write) -> anyhow::Result<()> {
    Ok(output.write_all(text.as_bytes())?)
}

/// Text that clap prints about wrong usage, without the line's end.
fn usage_text(usage: &clap::Error) -> String {
    usage.render().to_string().trim_end().to_owned()
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
