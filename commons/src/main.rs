//! The `gleaner-commons` command.

mod args;

use anyhow::Context;
use args::{Args, CheckConfigArgs, Command, MountArgs, SealArgs, StatusArgs, VerifyArgs};
use clap::Parser;
use gleaner_commons::catalog::Catalog;
use gleaner_commons::config::{Config, DAEMON};
use gleaner_commons::mount::{self, MountOptions};
use gleaner_commons::source::BlockSource;
use gleaner_commons::verify::verify;
use gleaner_commons::{run, seal, status};
use gleaner_daemon::config::check;
use gleaner_daemon::{causes, folders};
use gleaner_schemas::units::Bytes;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

/// Exit code of `verify` if a file differs.
const DIFFERS: u8 = 3;
/// Number of threads that hash files, at most: disks gain nothing from more.
const MOST_THREADS: usize = 8;
/// Number of threads that read a source for `verify`.
const VERIFY_THREADS: usize = 16;

fn main() -> ExitCode {
    match dispatch(Args::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("gleaner-commons: {}", causes::told(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Seal(args) => run_seal(&args)?,
        Command::Verify(args) => return run_verify(&args),
        Command::Mount(args) => run_mount(args)?,
        Command::Run(args) => run::run(args.config.as_deref())?,
        Command::RemoveMounts => mount::remover::run()?,
        Command::CheckConfig(args) => return check_config(&args),
        Command::Status(args) => run_status(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_seal(args: &SealArgs) -> anyhow::Result<()> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(cpus.min(MOST_THREADS), usize::from);
    let bar = gleaner_terminal::bar("sealing", 0);
    let sealed = seal::seal(&args.folder, &args.output, threads, &mut |all, bytes| {
        bar.set_length(all);
        bar.set_position(bytes);
        bar.set_message(format!("{} of {}", Bytes::from(bytes), Bytes::from(all)));
    });
    bar.finish_and_clear();
    seal::print(&mut stdout(), &args.output, &sealed?)?;
    Ok(())
}

fn run_verify(args: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let sealed = &args.sealed;
    let catalog = Catalog::open(&sealed.catalog.path, sealed.catalog.pinned)?;
    let catalog = Arc::new(catalog);
    let source = BlockSource::open(&sealed.source, Arc::clone(&catalog), sealed.source_timeout)?;
    let all_bytes = catalog.totals().bytes;
    let bar = gleaner_terminal::bar("verifying", all_bytes);
    let report = verify(
        &catalog,
        &source,
        sealed.source_timeout,
        VERIFY_THREADS,
        &mut |bytes| {
            bar.set_position(bytes);
            bar.set_message(format!(
                "{} of {}",
                Bytes::from(bytes),
                Bytes::from(all_bytes)
            ));
        },
    );
    bar.finish_and_clear();
    let report = report?;
    if args.json {
        writeln!(stdout(), "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        stdout().write_all(report.text().as_bytes())?;
    }
    Ok(if report.faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(DIFFERS)
    })
}

fn run_mount(args: MountArgs) -> anyhow::Result<()> {
    let options = MountOptions {
        catalog: args.sealed.catalog.path,
        pinned: args.sealed.catalog.pinned,
        mount_point: args.mount_point,
        source: args.sealed.source,
        local_bytes: args.local,
        kernel_cache: args.kernel_cache,
        source_timeout: args.sealed.source_timeout,
        allows_others: args.allow_other,
        socket: socket(args.socket)?,
    };
    Ok(mount::run(&options)?)
}

fn check_config(args: &CheckConfigArgs) -> anyhow::Result<ExitCode> {
    let loaded = Config::load(args.config.as_deref());
    let found = loaded.as_ref().map(|loaded| &loaded.origin);
    Ok(check(DAEMON, found).tell(args.json)?)
}

fn run_status(args: &StatusArgs) -> anyhow::Result<()> {
    let socket = socket(args.socket.clone())?;
    let asked = status::ask(&socket).with_context(|| {
        let at = socket.display();
        format!("ask the mount or service at {at}: is it running (gleaner-commons mount or run), and are you its user or root?")
    });
    let (status, document) = asked?;
    let text = if args.json { document } else { status.text() };
    stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// The named socket, or the default one.
fn socket(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let default = || folders::runtime().map(|folder| folder.join("commons.sock"));
    named
        .or_else(default)
        .context("XDG_RUNTIME_DIR is not set: name the socket with --socket")
}
