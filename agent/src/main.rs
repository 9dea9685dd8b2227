//! The `gleaner-agent` command.

use clap::Parser;
use gleaner_agent::args::{Args, Command};
use gleaner_agent::config::{Config, DAEMON};
use gleaner_agent::live::watch;
use gleaner_agent::trace::{export, vacuum};
use gleaner_agent::{inspect, print, run, session, ship, status};
use gleaner_daemon::causes;
use gleaner_daemon::config::check;
use std::io::Read;
use std::process::ExitCode;

/// Exit code of `status` if no sample was written lately.
const NOT_HEALTHY: u8 = 3;

/// Exit code of `export` if a damaged database could not be read completely.
const NOT_ALL_READ: u8 = 4;

/// Maximum length of a token on standard input: 97 bytes, and a line's end.
const LONGEST_TOKEN: u64 = 4096;

fn main() -> ExitCode {
    match dispatch(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-agent: {}", causes::told(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: Args) -> anyhow::Result<ExitCode> {
    let config = match args.command {
        Command::Run { samples } => {
            run::serve(args.global, samples)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::CheckConfig { json } => {
            let loaded = Config::load(args.global);
            let found = loaded.as_ref().map(|loaded| &loaded.origin);
            return Ok(check(DAEMON, found).tell(json)?);
        }
        _ => Config::resolve(args.global)?,
    };
    match args.command {
        Command::Run { .. } | Command::CheckConfig { .. } => {} // handled before
        Command::Sample {
            json,
            settle,
            before,
        } => {
            let sample = run::sample_once(&config, settle, before.as_deref())?;
            print(if json {
                print::json(&sample)
            } else {
                print::text(&sample)
            })?;
        }
        Command::Watch { json } => watch::run(config.socket.as_deref(), json)?,
        Command::Session { every } => session::run(every)?,
        Command::Status { json } => {
            let status = status::read(
                &config.database,
                config.sample_interval_ms(),
                gleaner_agent::clock::Moment::now().time_ms,
            )?;
            print(if json {
                print::document(&status)
            } else {
                status.text()
            })?;
            if !status.is_healthy() {
                return Ok(ExitCode::from(NOT_HEALTHY));
            }
        }
        Command::Inspect { last, json } => {
            let now_ms = gleaner_agent::clock::Moment::now().time_ms;
            let last_ms = last.map_or(i64::MAX, |l| {
                i64::try_from(l.as_millis()).unwrap_or(i64::MAX)
            });
            let from_ms = now_ms.saturating_sub(last_ms);
            let found = inspect::read(&config.database, from_ms, now_ms, &config.limits)?;
            print(if json {
                print::document(&found)
            } else {
                found.text()
            })?;
        }
        Command::Vacuum { json } => {
            let vacuumed = vacuum::vacuum(&config.database)?;
            print(if json {
                print::document(&vacuumed)
            } else {
                vacuumed.text()
            })?;
        }
        Command::Export { dataset, json } => {
            let exported = export::export(&config.database, &dataset)?;
            print(if json {
                print::document(&exported)
            } else {
                exported.text()
            })?;
            if exported.unreadable_records_count > 0 {
                return Ok(ExitCode::from(NOT_ALL_READ));
            }
        }
        Command::Enroll {
            collector,
            token,
            json,
        } => {
            let token = match token.as_str() {
                "-" => std::io::read_to_string(std::io::stdin().take(LONGEST_TOKEN))?,
                _ => token,
            };
            let enrolled = ship::grant::enroll(&config, &collector, &token)?;
            print(if json {
                print::document(&enrolled)
            } else {
                enrolled.text()
            })?;
        }
        Command::Ship { once: false, .. } => ship::run(&config)?,
        Command::Ship { once: true, json } => {
            let summary = ship::ship_once(&config)?;
            print(if json {
                print::document(&summary)
            } else {
                summary.text()
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a text; a closed pipe (`| head`) is no failure.
fn print(text: String) -> std::io::Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
