//! Command line of the recruiter.

use crate::adapter::FollowArgs;
use clap::{CommandFactory, Parser, Subcommand};
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  gleaner-recruiter run                                configured by /etc/gleaner/recruiter.toml
  gleaner-recruiter run --listen 127.0.0.1:7484        for programs of this machine alone
  gleaner-recruiter status                             hosts, quotas, leases
  gleaner-recruiter openapi > recruiter.json           description of its HTTP interface
  gleaner-recruiter follow --file quotas.json --memcached 127.0.0.1:11211

Exit codes:
  0  done
  1  failed; standard error says why
  2  wrong usage
  3  status: the recruiter does not answer";

/// Knows every host's quota, and finds memory servers for requested leases.
#[derive(Clone, Debug, Parser)]
#[command(name = "gleaner-recruiter", version, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    #[allow(missing_docs)] // a doc comment would become the program's help
    pub command: Command,
}

/// Commands of the recruiter.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Serve hosts, clients and readers, until interrupted
    #[command(after_help = "\
Examples:
  gleaner-recruiter run --listen 127.0.0.1:7484 --local-access all
  gleaner-recruiter run --config /etc/gleaner/recruiter.toml --forecasts findings.json

Without certificates in the configuration only programs of this machine are served, on a loopback address.

Exit codes: 0 ended by SIGTERM or SIGINT; 1 cannot start; 2 wrong usage.")]
    Run(RunArgs),
    /// Check the configuration, and list the environment variables that override it
    #[command(after_help = gleaner_daemon::config::CHECK_HELP)]
    CheckConfig(CheckConfig),
    /// Print hosts, quotas and leases of a running recruiter
    #[command(after_help = "\
Examples:
  gleaner-recruiter status
  gleaner-recruiter status --url http://127.0.0.1:7484 --json | jq '.hosts[].quota.unleased_bytes'

Exit codes: 0 it answers; 1 failed; 2 wrong usage; 3 it does not answer.")]
    Status(Status),
    /// Print the OpenAPI document of the HTTP interface
    Openapi,
    /// Keep the memory limit of a memcached or Redis server at its host's quota
    Follow(FollowArgs),
}

/// Arguments of `run`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct RunArgs {
    /// Configuration in TOML [default: /etc/gleaner/recruiter.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on: with TLS if the configuration names certificates, otherwise a loopback address
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Rights of programs on this machine that connect without TLS
    #[arg(long, value_name = "ACCESS")]
    pub local_access: Option<LocalAccess>,
    /// File of findings of `gleaner analyze --json`, used to forecast how long memory stays available
    #[arg(long, value_name = "FILE")]
    pub forecasts: Option<PathBuf>,
}

/// Rights over plain HTTP from this machine itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LocalAccess {
    /// Read quotas, hosts and metrics.
    #[default]
    Status,
    /// Everything: any program here may act as any host or client, and as an administrator.
    All,
}

/// Arguments of `check-config`.
#[derive(Clone, Debug, clap::Args)]
pub struct CheckConfig {
    /// Configuration in TOML [default: /etc/gleaner/recruiter.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print as JSON, with all set keys and their values
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `status`.
#[derive(Clone, Debug, clap::Args)]
pub struct Status {
    /// Configuration in TOML [default: /etc/gleaner/recruiter.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// URL of the recruiter's plain-HTTP listener [default: `local_listen` of the configuration]
    #[arg(long)]
    pub url: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Description of the command line, for man pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}
