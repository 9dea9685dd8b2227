//! Arguments of `gleaner report`.

use super::week::{Week, week};
use crate::analyze::Measures;
use crate::values::{instant, size_bytes};
use clap::ValueEnum;
use lettre::message::Mailbox;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Write the report that people open on Monday: one HTML page, figures inside, no network needed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner report                                 of what the agent of this host has recorded
  gleaner report out/demo/dataset -o report.html
  gleaner report DATASET --week 2026-W47 --time-zone Europe/Berlin
  gleaner report DATASET --week last --also md,csv,json --pdf -o week.html
  gleaner report DATASET --from 2026-11-16 --until 2026-11-19 -o - > three-days.html
  gleaner report DATASET --week last --folder /var/lib/gleaner/reports --keep 52
  gleaner report DATASET --week last --anonymous --mail lab@example.org
  gleaner report --mail lab@example.org --mail-test

Times are dates (UTC), RFC 3339, or ms since 1970-01-01 UTC.
Exit codes: 0 made, 1 failed, 2 wrong usage, 3 nothing was recorded in that time.
Reading it, every week by itself, mail: docs/report.md.")]
pub(crate) struct Report {
    /// Folder of the dataset [default: the trace of this host's agent].
    pub(crate) dataset: Option<PathBuf>,
    /// The page to write (`-` for standard output) [default: 2026-W47.html for a week, else report.html].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Heading of the page.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Hosts go by numbers instead of names and ids, in every file.
    #[arg(long)]
    pub(crate) anonymous: bool,
    #[command(flatten, next_help_heading = "Time")]
    pub(crate) time: Time,
    #[command(flatten, next_help_heading = "Companions")]
    pub(crate) companions: Companions,
    #[command(flatten, next_help_heading = "Every week")]
    pub(crate) habit: Habit,
    #[command(flatten, next_help_heading = "Mail")]
    pub(crate) mail: Mail,
    #[command(flatten, next_help_heading = "Measures")]
    pub(crate) measures: Measures,
}

/// Time of the report; by default all of it.
#[derive(clap::Args)]
pub(crate) struct Time {
    /// An ISO week of the fleet's time zone, such as 2026-W47, or `last`: the last that is over.
    #[arg(long, value_name = "WEEK", value_parser = week, conflicts_with_all = ["from", "until"])]
    pub(crate) week: Option<Week>,
    /// Only what was recorded at this time and after it.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Only what was recorded before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// Leave out the comparison with the time before.
    #[arg(long)]
    pub(crate) no_comparison: bool,
}

#[derive(clap::Args)]
pub(crate) struct Companions {
    /// Write these files beside the page: NAME.md, NAME-tables/TABLE.csv, NAME.json.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    pub(crate) also: Vec<Companion>,
    /// Write NAME.pdf, and NAME-figures/FIGURE.png of every figure, by Chromium.
    #[arg(long)]
    pub(crate) pdf: bool,
    /// The Chromium to use [default: chromium, chromium-browser or google-chrome in PATH].
    #[arg(long, env = "CHROMIUM", value_name = "PROGRAM", hide_env_values = true)]
    pub(crate) chromium: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Companion {
    /// The short form for mail or chat.
    Md,
    /// Every table as CSV.
    Csv,
    /// Sentences and tables for programs.
    Json,
}

#[derive(clap::Args)]
pub(crate) struct Habit {
    /// Write the week's page and its companions into this folder, and renew its index.html.
    #[arg(long, value_name = "DIR", requires = "week", conflicts_with_all = ["output", "also"])]
    pub(crate) folder: Option<PathBuf>,
    /// Remove from the folder all but its N newest weeks.
    #[arg(long, value_name = "N", requires = "folder")]
    pub(crate) keep: Option<NonZeroUsize>,
}

#[derive(clap::Args)]
pub(crate) struct Mail {
    /// Hand a message to the local mail system for this address (repeatable).
    #[arg(id = "mail", long = "mail", value_name = "ADDRESS")]
    pub(crate) to: Vec<Mailbox>,
    /// Send a test message instead of a report: it shows whether mail from here arrives.
    #[arg(id = "mail-test", long = "mail-test", requires = "mail")]
    pub(crate) is_test: bool,
    /// Sender of the message [default: gleaner@ and this machine's name].
    #[arg(id = "mail-from", long = "mail-from", value_name = "ADDRESS")]
    pub(crate) from: Option<Mailbox>,
    /// Attach the page when it is no larger than this.
    #[arg(id = "mail-limit", long = "mail-limit", value_name = "SIZE", value_parser = size_bytes, default_value = "8MiB")]
    pub(crate) limit_bytes: i64,
    /// URL of the page, or with --folder of the folder, named in the message.
    #[arg(id = "mail-link", long = "mail-link", value_name = "URL")]
    pub(crate) link: Option<String>,
    /// The program that takes messages.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/sbin/sendmail")]
    pub(crate) sendmail: PathBuf,
}
