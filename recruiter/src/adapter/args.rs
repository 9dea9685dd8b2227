//! Command line of `gleaner-recruiter follow`.

use gleaner_schemas::{interval, units};
use std::path::PathBuf;
use std::time::Duration;

/// Keep the memory limit of a memcached or Redis at what a host may lend
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner-recruiter follow --file /run/gleaner/quotas.json --memcached 127.0.0.1:11211
  gleaner-recruiter follow --recruiter http://127.0.0.1:7484 --host 4f1d… --redis 127.0.0.1:6379 --share 0.5
  gleaner-recruiter follow --recruiter https://recruiter.example:7444 --certificate reader.crt --key reader.key \\
      --authority authority.crt --host 4f1d… --memcached /run/memcached.sock --json

Without news of the quota, without a quota, and on ending, the limit is --minimum.

Exit codes: 0 ended, or set once; 1 failed; 2 wrong usage.")]
#[command(group(clap::ArgGroup::new("source").required(true)))]
#[command(group(clap::ArgGroup::new("server").required(true)))]
pub struct FollowArgs {
    /// Follow a file of quotas, which its writer replaces
    #[arg(long, group = "source", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Follow a recruiter, like https://recruiter.example:7444
    #[arg(long, group = "source", value_name = "URL")]
    pub recruiter: Option<String>,
    /// Certificate to show to the recruiter
    #[arg(long, value_name = "FILE", requires_all = ["recruiter", "key", "authority"])]
    pub certificate: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// The authority that the recruiter's certificate leads to
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub authority: Option<PathBuf>,
    /// The host that the server runs on [default: the only one there is]
    #[arg(long, value_name = "ID")]
    pub host: Option<String>,
    /// A memcached, as ADDRESS:PORT or the path of its socket
    #[arg(long, group = "server", value_name = "ADDRESS")]
    pub memcached: Option<String>,
    /// A Redis or Valkey, as ADDRESS:PORT or the path of its socket
    #[arg(long, group = "server", value_name = "ADDRESS")]
    pub redis: Option<String>,
    /// User of Redis
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,
    /// File with the password of Redis
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub password_file: Option<PathBuf>,
    /// Never less than this
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::parse_size)]
    pub minimum: u64,
    /// Share of the quota to use
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    pub share: f64,
    /// The quota holds what the server uses now: the agent counts it among its `guest_processes`
    #[arg(long)]
    pub quota_includes_use: bool,
    /// Without news for so long the limit is --minimum
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = interval::parse)]
    pub quota_timeout: Duration,
    /// Set it once, and end
    #[arg(long)]
    pub once: bool,
    /// Print each change as a line of JSON
    #[arg(long)]
    pub json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "no share: a number from 0 to 1".to_owned())
}
