//! `gleaner top`: current use of memory on this host or in the cluster. Each view consists of lines,
//! which are drawn on a terminal or printed once.

pub(crate) mod args;
mod cluster;
mod draw;
#[cfg(test)]
mod frames;
mod host;
mod ink;
mod terminal;

use args::Top;
use ink::Ink;
use std::io::{IsTerminal, Write};

/// Width of output to a pipe.
const COLUMNS: usize = 100;

pub(crate) fn run(args: &Top) -> anyhow::Result<()> {
    let ink = Ink::of_environment();
    let is_once = args.once || args.json || !std::io::stdout().is_terminal();
    match (args.asked(), is_once) {
        (Some(url), false) => cluster::watch(args, url, ink),
        (None, false) => host::watch(args, ink),
        (Some(url), true) => print(&cluster::once(args, url, columns(), ink.without_colours())?),
        (None, true) => {
            let (text, lost) = host::once(args, columns(), ink.without_colours())?;
            print(&text)?;
            lost.map_or(Ok(()), |reason| Err(anyhow::Error::msg(reason)))
        }
    }
}

/// Returns true if the environment states that the terminal has colours.
pub(crate) fn has_colours() -> bool {
    Ink::of_environment().has_colours()
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// Width of a printed frame: the environment variable `COLUMNS`, else the width of the terminal, else that of
/// output to a pipe.
pub(crate) fn columns() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|v| v.parse().ok());
    let terminal = || {
        let size = ratatui::crossterm::terminal::size().ok()?;
        std::io::stdout()
            .is_terminal()
            .then_some(usize::from(size.0))
    };
    set.or_else(terminal).unwrap_or(COLUMNS).clamp(20, 500)
}
