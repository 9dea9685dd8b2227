//! The command `gleaner lab up`.

use super::address::Node;
use super::args::UpArgs;
use super::error::{LabError, Result};
use super::link::Link;
use super::state::State;
use super::{address, clerk, collector, commons, daemons, down, network, recruiter};
use std::time::{Duration, Instant};

/// Shortest interval that the agent accepts.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// Validity of an enrolment token; the lab uses each immediately.
const TOKEN_VALID: Duration = Duration::from_secs(3600);
/// Maximum wait for the collector's first answer.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) fn run(args: &UpArgs) -> Result<String> {
    refuse(args)?;
    let mut state = State::begin(&args.folder, args.hosts)?;
    if let Err(error) = make(args, &mut state) {
        let folder = state.folder.clone();
        let remains = |error| LabError::Remains {
            source: Box::new(error),
        };
        down::remove(Some(state), true).map_err(remains)?;
        let source = Box::new(error);
        return Err(LabError::NotUp { folder, source });
    }
    for cannot in &state.link.cannot {
        eprintln!("gleaner: cannot have {cannot}");
    }
    let mut text = format!(
        "a collector, a recruiter and {} hosts are up in {}; see `gleaner lab status`, end with `gleaner lab down`\n",
        args.hosts,
        state.folder.display()
    );
    if args.borrow.is_some() {
        text.push_str(&format!(
            "a clerk's device is at nbd+unix:///?socket={}\n",
            clerk::socket(&state).display()
        ));
    }
    let first = commons::path(&state, &address::host(1));
    if let (Some(source), Some(path)) = (&state.commons, first) {
        text.push_str(&format!(
            "each host shows {}; root reads it on the first host in {}\n",
            source.display(),
            path.display()
        ));
    }
    Ok(text)
}

/// Rejects arguments that cannot work, before anything is created.
fn refuse(args: &UpArgs) -> Result<()> {
    super::refuse_without_root("up")?;
    for program in ["ip", "tc"] {
        if !network::is_installed(program) {
            return Err(LabError::NoTool { program });
        }
    }
    if args.interval < SHORTEST_INTERVAL {
        return Err(LabError::ShortInterval);
    }
    let programs = [
        "gleaner-agent",
        "gleaner-collector",
        "gleaner-recruiter",
        "gleaner-memoryd",
    ];
    for program in programs
        .into_iter()
        .chain(args.borrow.map(|_| "gleaner-clerk"))
        .chain(args.commons.as_ref().map(|_| "gleaner-commons"))
    {
        daemons::program(program)?;
    }
    if !network::namespaces().is_empty() {
        return Err(LabError::IsUp);
    }
    Ok(())
}

fn make(args: &UpArgs, state: &mut State) -> Result<()> {
    network::make_bridge()?;
    state.link = Link::probed(args.rate.clone(), args.delay, args.loss);
    state.save()?;

    let node = address::collector();
    network::make_node(&node)?;
    let authority = collector::prepare(state, &node)?;
    recruiter::prepare(state, &node, &authority)?;
    for daemon in [&daemons::COLLECTOR, &daemons::RECRUITER] {
        daemons::start(state, &node, daemon)?;
    }
    wait_for_collector(state)?;
    if let Some(folder) = &args.commons {
        commons::seal(state, folder)?;
    }

    let hosts: Vec<Node> = (1..=args.hosts).map(address::host).collect();
    let bar = gleaner_terminal::bar("hosts", hosts.len() as u64);
    for host in &hosts {
        network::make_node(host)?;
        let host_id = collector::prepare_host(state, host, args.interval)?;
        recruiter::prepare_host(state, host, &args.lend)?;
        let token = authority.new_token(TOKEN_VALID, Some(&host_id))?;
        daemons::enrol(state, host, &token)?;
        state.host_ids.push(host_id);
        bar.inc(1);
    }
    // Links are limited only now, after every host has enrolled: on a lossy link, the single attempt to enrol
    // could have failed.
    limit_links(state, &node, &hosts)?;
    for daemon in &daemons::OF_A_HOST {
        for host in &hosts {
            bar.set_message(format!("{} on {}", daemon.name, host.namespace));
            daemons::start(state, host, daemon)?;
        }
    }
    bar.finish_and_clear();
    if let Some(source) = state.commons.clone() {
        for host in &hosts {
            commons::prepare_host(state, host, &source)?;
            daemons::start(state, host, &daemons::COMMONS)?;
        }
        commons::wait(state, &hosts)?;
    }
    if let Some(size_bytes) = args.borrow {
        let node = address::clerk();
        network::make_node(&node)?;
        clerk::prepare(state, &node, &authority, size_bytes)?;
        daemons::start(state, &node, &daemons::CLERK)?;
        clerk::wait(state)?;
    }
    daemons::check(state)
}

fn limit_links(state: &State, collector: &Node, hosts: &[Node]) -> Result<()> {
    if let Some(rule) = state.link.drops() {
        let rule: Vec<&str> = rule.iter().map(String::as_str).collect();
        network::must(network::iptables(&collector.namespace, &rule))?;
    }
    let mut commands = hosts.iter().flat_map(|host| state.link.commands(host));
    commands.try_for_each(network::must)
}

fn wait_for_collector(state: &State) -> Result<()> {
    let begun = Instant::now();
    loop {
        match collector::status() {
            Ok(_) => return Ok(()),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => daemons::check(state)?,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
