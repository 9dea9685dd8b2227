//! Arguments of `gleaner report`.

use super::week::{Week, week};
use crate::analyze::Measures;
use crate::values::{instant, size_bytes};
use clap::ValueEnum;
use lettre::message::Mailbox;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Write a report as one HTML page with its figures inside; reading it needs no network.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner report                                 the trace of this host's agent
  gleaner report out/demo/dataset -o report.html
  gleaner report DATASET --week 2026-W47 --time-zone Europe/Berlin
  gleaner report DATASET --week last --also md,csv,json --pdf -o week.html
  gleaner report DATASET --from 2026-11-16 --until 2026-11-19 -o - > three-days.html
  gleaner report DATASET --week last --folder /var/lib/gleaner/reports --keep 52
  gleaner report DATASET --week last --anonymous --mail lab@example.org
  gleaner report DATASET --week last --sites sites.toml --folder reports
  gleaner report --mail lab@example.org --mail-test

--from and --until take a date (UTC), an RFC 3339 time, or ms since 1970-01-01 UTC.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing was recorded in that time.
Reading the page, weekly reports, mail: docs/report.md.")]
pub(crate) struct Report {
    /// Folder of the dataset, or s3://bucket/prefix [default: the trace of this host's agent].
    pub(crate) dataset: Option<PathBuf>,
    /// HTML file to write (`-`: standard output) [default: for a week, its name, like 2026-W47.html; else
    /// report.html].
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Heading of the page.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Replace names and ids of hosts by numbers, in every file.
    #[arg(long)]
    pub(crate) anonymous: bool,
    #[command(flatten, next_help_heading = "Time")]
    pub(crate) time: Time,
    #[command(flatten, next_help_heading = "Companions")]
    pub(crate) companions: Companions,
    #[command(flatten, next_help_heading = "Every week")]
    pub(crate) habit: Habit,
    #[command(flatten, next_help_heading = "Sites")]
    pub(crate) sites: Sites,
    #[command(flatten, next_help_heading = "Mail")]
    pub(crate) mail: Mail,
    #[command(flatten, next_help_heading = "Measures")]
    pub(crate) measures: Measures,
}

/// Time of the report; by default all of it.
#[derive(clap::Args)]
pub(crate) struct Time {
    /// ISO week in the fleet's time zone, like 2026-W47, or `last` for the last complete week.
    #[arg(long, value_name = "WEEK", value_parser = week, conflicts_with_all = ["from", "until"])]
    pub(crate) week: Option<Week>,
    /// Use only records from this time on.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Use only records before this time.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// Leave out the comparison with the preceding period.
    #[arg(long)]
    pub(crate) no_comparison: bool,
}

#[derive(clap::Args)]
pub(crate) struct Companions {
    /// Also write these files beside the page: NAME.md, NAME-tables/TABLE.csv, NAME.json.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "KINDS")]
    pub(crate) also: Vec<Companion>,
    /// Also write NAME.pdf, and NAME-figures/FIGURE.png of every figure, with Chromium.
    #[arg(long)]
    pub(crate) pdf: bool,
    /// Chromium program to use [default: chromium, chromium-browser or google-chrome in PATH].
    #[arg(long, env = "CHROMIUM", value_name = "PROGRAM", hide_env_values = true)]
    pub(crate) chromium: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Companion {
    /// Short form for mail or chat.
    Md,
    /// Every table as CSV.
    Csv,
    /// Sentences and tables as JSON.
    Json,
}

impl Companion {
    pub(crate) const ALL: [Self; 3] = [Self::Md, Self::Csv, Self::Json];
}

#[derive(clap::Args)]
pub(crate) struct Habit {
    /// Write the week's page and its companion files into this folder, and update its index.html.
    #[arg(long, value_name = "DIR", requires = "week", conflicts_with_all = ["output", "also"])]
    pub(crate) folder: Option<PathBuf>,
    /// Number of newest weeks to keep in the folder; older ones are removed.
    #[arg(long, value_name = "N", requires = "folder")]
    pub(crate) keep: Option<NonZeroUsize>,
}

#[derive(clap::Args)]
pub(crate) struct Sites {
    /// Divide the hosts into the sites of this TOML file: a page for each site, and a page of all hosts with a table of the sites.
    #[arg(
        id = "sites",
        long = "sites",
        value_name = "FILE",
        requires = "dataset"
    )]
    pub(crate) file: Option<PathBuf>,
    /// Make only the page of this site, and keep the site's part for --fleet (repeatable).
    #[arg(id = "site", long = "site", value_name = "NAME", requires = "sites", conflicts_with_all = ["is_fleet", "mail"])]
    pub(crate) only: Vec<String>,
    /// Make only the page of all hosts, from the parts that --site kept, which are then removed.
    #[arg(id = "is_fleet", long = "fleet", requires = "sites")]
    pub(crate) is_fleet: bool,
}

#[derive(clap::Args)]
pub(crate) struct Mail {
    /// Mail the report to this address, by the local mail system (repeatable).
    #[arg(id = "mail", long = "mail", value_name = "ADDRESS")]
    pub(crate) to: Vec<Mailbox>,
    /// Send a test message instead of a report, to check that mail from this machine arrives.
    #[arg(id = "mail-test", long = "mail-test", requires = "mail")]
    pub(crate) is_test: bool,
    /// Sender of the message [default: gleaner@ and this machine's name].
    #[arg(id = "mail-from", long = "mail-from", value_name = "ADDRESS")]
    pub(crate) from: Option<Mailbox>,
    /// Maximum size of the attached page; a larger page is not attached.
    #[arg(id = "mail-limit", long = "mail-limit", value_name = "SIZE", value_parser = size_bytes, default_value = "8MiB")]
    pub(crate) limit_bytes: i64,
    /// URL of the page (with --folder: of the folder) to include in the message.
    #[arg(id = "mail-link", long = "mail-link", value_name = "URL")]
    pub(crate) link: Option<String>,
    /// Program that sends messages, compatible with sendmail.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/sbin/sendmail")]
    pub(crate) sendmail: PathBuf,
}
