//! Arguments of `gleaner pki`.

use clap::Subcommand;
use std::path::PathBuf;
use std::time::Duration;

/// Make, list and revoke the certificates of a deployment (docs/trust.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki init --name collector.example      an authority, and the collector's certificate
  gleaner pki token                              for a new host, which then runs what is printed
  gleaner pki issue --reader ada -o ada          a certificate for somebody who reads the dataset
  gleaner pki issue --client pager -o pager      for a program that leases memory
  gleaner pki list
  gleaner pki revoke 0123456789abcdef0123456789abcdef

A PKI of your own replaces all of this: docs/trust.md.")]
pub(crate) struct Pki {
    #[command(subcommand)]
    pub(crate) command: PkiCommand,
}

#[derive(Subcommand)]
pub(crate) enum PkiCommand {
    Init(Init),
    Issue(Issue),
    Token(Token),
    Revoke(Revoke),
    List(List),
}

/// Folder of the authority.
#[derive(clap::Args)]
pub(crate) struct Folder {
    /// Folder of the authority.
    #[arg(
        long = "pki",
        value_name = "FOLDER",
        env = "GLEANER_PKI",
        default_value = "/etc/gleaner/pki"
    )]
    pub(crate) path: PathBuf,
}

/// Make an authority and the collector's certificate.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki init --name collector.example --name 10.0.0.5
  gleaner pki init ./pki --name localhost --json

Each --name is a name by which hosts reach the collector. The folder holds authority.key, and whoever reads
it can make certificates: only the collector's user should have access, and a backup should exist.")]
pub(crate) struct Init {
    /// Folder for the new authority.
    #[arg(env = "GLEANER_PKI", default_value = "/etc/gleaner/pki")]
    pub(crate) folder: PathBuf,
    /// DNS name or IP address of the collector (repeatable).
    #[arg(long = "name", value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Issue one certificate and its key.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki issue --reader ada -o ada                     ada.crt and ada.key
  gleaner pki issue --host 0123456789abcdef0123456789abcdef -o host
  gleaner pki issue --collector --name collector.example -o /etc/gleaner/pki/collector
  gleaner pki issue --recruiter recruiter.example 10.0.0.6 -o /etc/gleaner/pki/recruiter
  gleaner pki issue --client pager -o pager               a program that leases memory
  gleaner pki issue --admin grace -o grace                renews and ends anybody's leases

Existing files are replaced; collectors, recruiters and agents load the new ones without a restart.
If root runs this, the files get the owner of their folder. The group gleaner-recruiter may read a recruiter's key;
--group names the group of another service. A key that replaces another keeps its group.
For a host, a token does instead (gleaner pki token): the host's key then never leaves the host.")]
pub(crate) struct Issue {
    #[command(flatten)]
    pub(crate) holder: Holder,
    /// DNS name or IP address of the collector (repeatable).
    #[arg(long = "name", value_name = "NAME", conflicts_with_all = ["host", "reader", "client", "admin", "recruiter"])]
    pub(crate) names: Vec<String>,
    /// Validity of the certificate in days, 1 to 3650 (default: 90 for hosts, 365 for others).
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub(crate) days: Option<u32>,
    /// Prefix of the two files written: PREFIX.crt and PREFIX.key.
    #[arg(long, short, value_name = "PREFIX")]
    pub(crate) output: PathBuf,
    /// Group that may read the key, such as gleaner-clerk.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Holder of a certificate.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Holder {
    /// Host, by its id (`gleaner-agent status` shows it).
    #[arg(long, value_name = "ID")]
    pub(crate) host: Option<String>,
    /// User who may read the dataset and the hosts' quotas.
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// Program that leases memory.
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// User who may read everything, and renew and end anybody's leases.
    #[arg(long, value_name = "NAME")]
    pub(crate) admin: Option<String>,
    /// Recruiter, by its DNS names or IP addresses.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) recruiter: Option<Vec<String>>,
    /// Collector, by the names that --name gives.
    #[arg(long, requires = "names")]
    pub(crate) collector: bool,
}

/// Make a one-time token with which a new host enrols itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki token
  gleaner pki token --valid 1h --host 0123456789abcdef0123456789abcdef
  ssh host7 sudo $(gleaner pki token --json | jq -r .command)

A token without --host is for any host that has no certificate yet. A host that was enrolled before
and lost its key needs a token made with --host.")]
pub(crate) struct Token {
    /// Validity of the token, like 30m, 24h or 7d; at most 366d.
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = length)]
    pub(crate) valid: Duration,
    /// Restrict the token to this host.
    #[arg(long, value_name = "ID")]
    pub(crate) host: Option<String>,
    /// Address of the collector (default: the first name in its newest certificate, port 7443).
    #[arg(long, value_name = "URL")]
    pub(crate) collector: Option<String>,
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print token and command as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke certificates: collector and recruiter refuse them within seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki revoke 0123456789abcdef0123456789abcdef      all certificates of a host
  gleaner pki revoke ada                                   all of a reader, client or admin
  gleaner pki revoke 5f3c09e1b64e4d0f8d3f6f8c34a1be77      one, by its serial number
  gleaner pki revoke lost-laptop.crt                       one, by its file

A revocation is final; a host may be enrolled again with a new token.")]
pub(crate) struct Revoke {
    /// Host id, name of a reader, client or admin, serial number, or certificate file.
    #[arg(value_name = "SERIAL|HOST|NAME|FILE")]
    pub(crate) which: String,
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List all issued certificates.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki list
  gleaner pki list --json | jq '.[] | select(.state == \"valid\")'")]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print the list as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses the validity of a token. 0 and anything longer than a leap year are rejected as typing errors.
fn length(text: &str) -> Result<Duration, String> {
    let length = gleaner_schemas::interval::parse(text)?;
    if length.is_zero() || length > Duration::from_secs(366 * 86_400) {
        return Err("a token is valid for up to a year".to_owned());
    }
    Ok(length)
}
