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

People who have a PKI need none of this: docs/trust.md.")]
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

Names are those by which hosts reach the collector. The folder holds authority.key: whoever reads it
can make certificates, so it belongs to the collector's user alone and into a backup.")]
pub(crate) struct Init {
    /// Folder to make the authority in.
    #[arg(env = "GLEANER_PKI", default_value = "/etc/gleaner/pki")]
    pub(crate) folder: PathBuf,
    /// DNS name or IP address of the collector (repeatable).
    #[arg(long = "name", value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print what was made as JSON.
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

Files that are there are replaced: collectors, recruiters and agents take up the new ones without a restart.
Run by root, they become the folder's owner's. The group gleaner-recruiter may read a recruiter's key; --group names
the group of another service. A key that replaces one keeps that group.
Hosts can be given a token instead (gleaner pki token): their keys then never leave them.")]
pub(crate) struct Issue {
    #[command(flatten)]
    pub(crate) holder: Holder,
    /// DNS name or IP address of the collector (repeatable).
    #[arg(long = "name", value_name = "NAME", conflicts_with_all = ["host", "reader", "client", "admin", "recruiter"])]
    pub(crate) names: Vec<String>,
    /// Days for which it is valid (default: hosts 90, others 365).
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
    /// Print what was made as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Holder of a certificate.
#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Holder {
    /// A host, by its id (`gleaner-agent status` shows it).
    #[arg(long, value_name = "ID")]
    pub(crate) host: Option<String>,
    /// User who may read the dataset, and the quotas of hosts.
    #[arg(long, value_name = "NAME")]
    pub(crate) reader: Option<String>,
    /// A program that leases memory.
    #[arg(long, value_name = "NAME")]
    pub(crate) client: Option<String>,
    /// Somebody who may read all, and renew and end anybody's leases.
    #[arg(long, value_name = "NAME")]
    pub(crate) admin: Option<String>,
    /// A recruiter, by its DNS names or IP addresses.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) recruiter: Option<Vec<String>>,
    /// A collector, by its names.
    #[arg(long, requires = "names")]
    pub(crate) collector: bool,
}

/// Make a one-time token with which a new host enrols itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki token
  gleaner pki token --valid 1h --host 0123456789abcdef0123456789abcdef
  ssh host7 sudo $(gleaner pki token --json | jq -r .command)

A token without --host is for any host that has no certificate yet. One that was enrolled before
and lost its key needs a token of its own.")]
pub(crate) struct Token {
    /// Time for which the token may be used: 30m, 24h, 7d.
    #[arg(long, value_name = "LENGTH", default_value = "24h", value_parser = length)]
    pub(crate) valid: Duration,
    /// Restrict the token to this host.
    #[arg(long, value_name = "ID")]
    pub(crate) host: Option<String>,
    /// The collector's address (default: the first name in its newest certificate, port 7443).
    #[arg(long, value_name = "URL")]
    pub(crate) collector: Option<String>,
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print token and command as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take back certificates: collector and recruiter refuse them within seconds.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner pki revoke 0123456789abcdef0123456789abcdef      all certificates of a host
  gleaner pki revoke ada                                   all of a reader, client or admin
  gleaner pki revoke 5f3c09e1b64e4d0f8d3f6f8c34a1be77      one, by its serial number
  gleaner pki revoke lost-laptop.crt                       one, by its file

What is revoked stays revoked; the host may be enrolled again with a new token.")]
pub(crate) struct Revoke {
    /// Host id, name of a reader, client or admin, serial number, or a certificate's file.
    #[arg(value_name = "SERIAL|HOST|NAME|FILE")]
    pub(crate) which: String,
    #[command(flatten)]
    pub(crate) folder: Folder,
    /// Print what was revoked as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List every certificate that was issued.
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
