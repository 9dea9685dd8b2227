//! `gleaner collect --local`: agent, shipper and collector in one process, on one machine.
//!
//! Nothing is simplified: the agent samples into its database, the shipper sends the records over loopback
//! with mutual TLS, and the collector acknowledges, seals and merges. Only the certificates are created
//! here.

use anyhow::{Context, anyhow, bail};
use gleaner_agent::args::GlobalArgs;
use gleaner_agent::config::Config as AgentConfig;
use gleaner_agent::run as agent;
use gleaner_agent::ship::{self, grant};
use gleaner_collector::config::Config as CollectorConfig;
use gleaner_collector::run::Collector;
use gleaner_trust::{AUTHORITY_DAYS, Authority, Role};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Trace this machine and collect its trace into a dataset, in one process without configuration.
///
/// Runs the agent, shipper and collector of a cluster, connected by mutual TLS over loopback, until Ctrl-C or
/// SIGTERM. The dataset then holds the whole trace.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner collect --local                          # into ~/.local/state/gleaner/local, or /var/lib as root
  gleaner collect --local --output /srv/trace --sample-interval 10s
  gleaner report ~/.local/state/gleaner/local/dataset -o report.html

Many hosts: `gleaner-collector run` on a server, `gleaner-agent enroll` on each of them.")]
pub(crate) struct Collect {
    /// Collect from this machine alone, in this process.
    #[arg(long)]
    pub(crate) local: bool,
    /// Folder of trace, journal and dataset [default: /var/lib/gleaner/local as root, else
    /// $XDG_STATE_HOME/gleaner/local].
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Time between samples [default: 90s].
    #[arg(long, value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) sample_interval: Option<std::time::Duration>,
    /// End after this number of samples.
    #[arg(long, value_name = "N")]
    pub(crate) samples: Option<u64>,
    /// Loopback address of the status page and the metrics, or `none`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480", value_parser = status_address)]
    pub(crate) status_listen: StatusAddress,
}

/// Address of the status page; `None`: no page.
#[derive(Clone, Copy)]
pub(crate) struct StatusAddress(pub(crate) Option<std::net::SocketAddr>);

fn status_address(text: &str) -> Result<StatusAddress, String> {
    if text == "none" {
        return Ok(StatusAddress(None));
    }
    let address = text.parse::<std::net::SocketAddr>();
    let wrong = |_| format!("`{text}` is no address: write 127.0.0.1:7480, or none");
    let address = address.map_err(wrong)?;
    if address.ip().is_loopback() {
        Ok(StatusAddress(Some(address)))
    } else {
        Err(format!("{address} is no loopback address"))
    }
}

/// The loopback address; no other machine can connect to it.
const LOOPBACK: &str = "127.0.0.1";
/// Validity of the enrolment token, which is used immediately.
const TOKEN: Duration = Duration::from_secs(300);
/// Interval between batches. The dataset is only read occasionally, so batches can be rare: shorter intervals
/// would make many small files.
const SHIPPED_EVERY: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &Collect) -> anyhow::Result<()> {
    if !args.local {
        bail!("add --local; a collector for many hosts is `gleaner-collector run`");
    }
    // The agent recognises Gleaner's daemons by this name and never counts them as the owner's work.
    rustix::thread::set_name(c"gleaner-collect").context("cannot take a name")?;
    let folder = args.output.clone().map_or_else(default_folder, Ok)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let authority = authority(&folder.join("pki"))?;
    let collector = Collector::start(&CollectorConfig::local(
        &folder,
        &folder.join("pki"),
        args.status_listen.0,
    ))?;
    let config = agent_config(args, &folder, &collector, &authority)?;
    if let Some(address) = collector.local {
        eprintln!("gleaner: status at http://{address}");
    }
    eprintln!(
        "gleaner: collecting into {}",
        folder.join("dataset").display()
    );

    let every = SHIPPED_EVERY.min(config.sample_interval * 10);
    let (stop, stopped) = channel::<()>();
    let shipping = config.clone();
    let shipper = thread::spawn(move || ship_until(&shipping, every, &stopped));
    let traced = agent::run(&config, args.samples);
    drop(stop);
    let shipped = shipper.join().map_err(|_| anyhow!("the shipper failed"))?;
    traced?;
    shipped?;
    collector
        .seal()
        .map_err(|reason| anyhow!("cannot seal: {reason}"))
}

/// Sends the agent's new records to the collector at each interval, and once more at the end.
fn ship_until(config: &AgentConfig, every: Duration, stopped: &Receiver<()>) -> anyhow::Result<()> {
    loop {
        let wait = stopped.recv_timeout(every);
        let shipped = ship::ship_once(config);
        match (wait, shipped) {
            (Err(RecvTimeoutError::Timeout), Ok(_)) => {}
            // A failed attempt is repeated later: the records stay in the agent's database.
            (Err(RecvTimeoutError::Timeout), Err(e)) => eprintln!("gleaner: {e}"),
            (_, last) => return Ok(last.map(drop)?),
        }
    }
}

/// Opens the certificate authority in the folder `pki`, or creates it. It certifies only this collector and
/// this agent.
fn authority(pki: &Path) -> anyhow::Result<Authority> {
    let authority = if pki.join("authority.crt").exists() {
        Authority::open(pki)?
    } else {
        Authority::init(pki, "gleaner collect --local", AUTHORITY_DAYS)?
    };
    if !pki.join("collector.crt").exists() {
        let names = vec![LOOPBACK.to_owned()];
        let issued = authority.issue(&Role::Collector { names }, AUTHORITY_DAYS)?;
        issued.write(&pki.join("collector.crt"), &pki.join("collector.key"))?;
    }
    Ok(authority)
}

fn agent_config(
    args: &Collect,
    folder: &Path,
    collector: &Collector,
    authority: &Authority,
) -> anyhow::Result<AgentConfig> {
    let mut config = AgentConfig::resolve(GlobalArgs {
        database: Some(folder.join("trace.db")),
        socket: Some("none".into()),
        sample_interval: args.sample_interval,
        ..GlobalArgs::default()
    })?;
    let address = collector.tls.context("the collector does not listen")?;
    let url = format!("https://{address}");
    if !config.ship.certificate.exists() {
        let token = authority.new_token(TOKEN, None)?;
        grant::enroll(&config, &url, &token)?;
    }
    config.ship.collector = Some(url); // the port differs at each start
    Ok(config)
}

fn default_folder() -> anyhow::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/gleaner/local".into());
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let state = state
        .or_else(home)
        .context("there is no HOME: name a folder by --output")?;
    Ok(state.join("gleaner/local"))
}
