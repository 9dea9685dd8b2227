//! Command line of `gleaner-recruiter follow`.

use gleaner_schemas::{interval, units};
use std::path::PathBuf;
use std::time::Duration;

/// Keep the memory limit of a memcached or Redis server at its host's quota
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner-recruiter follow --file /run/gleaner/quotas.json --memcached 127.0.0.1:11211
  gleaner-recruiter follow --recruiter http://127.0.0.1:7484 --host 4f1d… --redis 127.0.0.1:6379 --share 0.5
  gleaner-recruiter follow --recruiter https://recruiter.example:7444 --certificate reader.crt --key reader.key \\
      --authority authority.crt --host 4f1d… --memcached /run/memcached.sock --json

The limit is --minimum without a quota, without recent news of it, and after this program has ended.

Exit codes: 0 ended, or set once; 1 failed; 2 wrong usage.")]
#[command(group(clap::ArgGroup::new("source").required(true)))]
#[command(group(clap::ArgGroup::new("server").required(true)))]
pub struct FollowArgs {
    /// File of quotas to follow; each new version must replace it
    #[arg(long, group = "source", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// URL of the recruiter to follow, like https://recruiter.example:7444
    #[arg(long, group = "source", value_name = "URL")]
    pub recruiter: Option<String>,
    /// Client certificate for the recruiter
    #[arg(long, value_name = "FILE", requires_all = ["recruiter", "key", "authority"])]
    pub certificate: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Certificate of the authority that issued the recruiter's
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub authority: Option<PathBuf>,
    /// Id of the host that the server runs on [default: the only host with a quota]
    #[arg(long, value_name = "ID")]
    pub host: Option<String>,
    /// Address of the memcached: ADDRESS:PORT or the path of its socket
    #[arg(long, group = "server", value_name = "ADDRESS")]
    pub memcached: Option<String>,
    /// Address of the Redis or Valkey: ADDRESS:PORT or the path of its socket
    #[arg(long, group = "server", value_name = "ADDRESS")]
    pub redis: Option<String>,
    /// User of Redis
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub user: Option<String>,
    /// File with the password of Redis
    #[arg(long, value_name = "FILE", requires = "redis")]
    pub password_file: Option<PathBuf>,
    /// Minimum limit of the server's memory
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::parse_size)]
    pub minimum: u64,
    /// Share of the quota to use, 0 to 1
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    pub share: f64,
    /// The quota includes the server's own use, because the agent's `guest_processes` name the server
    #[arg(long)]
    pub quota_includes_use: bool,
    /// Time without news of the quota after which the limit is --minimum
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = interval::parse)]
    pub quota_timeout: Duration,
    /// Set the limit once, and end
    #[arg(long)]
    pub once: bool,
    /// Print each change as one line of JSON
    #[arg(long)]
    pub json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok();
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "no share: a number from 0 to 1".to_owned())
}
