//! The command `gleaner pki`.

pub(crate) mod args;
mod list;

use anyhow::Context;
use args::{Init, Issue, Pki, PkiCommand, Revoke, Token};
use gleaner_doctor::group_id;
use gleaner_trust::{
    AUTHORITY_DAYS, Authority, COLLECTOR_DAYS, HOST_DAYS, READER_DAYS, Record, Role, State,
    certificate,
};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Default port of collectors.
const PORT: u16 = 7443;

/// Group of the packaged recruiter.
const RECRUITER_GROUP: &str = "gleaner-recruiter";

pub(crate) fn run(args: &Pki) -> anyhow::Result<()> {
    let text = match &args.command {
        PkiCommand::Init(args) => init(args)?,
        PkiCommand::Issue(args) => issue(args)?,
        PkiCommand::Token(args) => token(args)?,
        PkiCommand::Revoke(args) => revoke(args)?,
        PkiCommand::List(args) => {
            let records = Authority::open(&args.folder.path)?.list()?;
            if args.json {
                pretty(&list::json(&records))
            } else {
                list::table(&records)
            }
        }
    };
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(())
}

fn init(args: &Init) -> anyhow::Result<String> {
    let role = Role::Collector {
        names: args.names.clone(),
    };
    role.check()?; // before anything is created
    // The authority's name is only for display, so a long name is truncated.
    let name: String = args.names[0].chars().take(30).collect();
    let authority = Authority::init(&args.folder, &name, AUTHORITY_DAYS)?;
    let folder = std::path::absolute(&args.folder)?;
    let (certificate, key) = write(
        &authority,
        &role,
        COLLECTOR_DAYS,
        &folder.join("collector"),
        None,
    )?;
    let fingerprint = authority.fingerprint()?;
    if args.json {
        return Ok(pretty(&json!({
            "folder": folder,
            "authority": authority.certificate_path(),
            "fingerprint": fingerprint,
            "certificate": certificate,
            "key": key,
        })));
    }
    let pki = folder.display();
    let for_pki = given_pki(&folder);
    Ok(format!(
        "The authority of this deployment is in {pki}
  fingerprint   {fingerprint}
  collector     {names}, valid for {COLLECTOR_DAYS} days

Next, in a drop-in of the collector's configuration (/etc/gleaner/collector.d/own.toml):
  listen = \"0.0.0.0:{PORT}\"
  pki = \"{pki}\"

For each new host:
  gleaner pki token{for_pki}         prints the command to run on the host
For those who read the dataset:
  gleaner pki issue{for_pki} --reader NAME -o NAME

Keep {pki}/authority.key to the collector's user, and in a backup.",
        names = args.names.join(" "),
    ))
}

fn issue(args: &Issue) -> anyhow::Result<String> {
    let authority = Authority::open(&args.folder.path)?;
    let (role, days) = if let Some(host_id) = args.holder.host.clone() {
        (Role::Host { host_id }, HOST_DAYS)
    } else if let Some(name) = args.holder.reader.clone() {
        (Role::Reader { name }, READER_DAYS)
    } else if let Some(name) = args.holder.client.clone() {
        (Role::Client { name }, READER_DAYS)
    } else if let Some(name) = args.holder.admin.clone() {
        (Role::Admin { name }, READER_DAYS)
    } else if let Some(names) = args.holder.recruiter.clone() {
        (Role::Recruiter { names }, COLLECTOR_DAYS)
    } else {
        let names = args.names.clone();
        (Role::Collector { names }, COLLECTOR_DAYS)
    };
    let days = args.days.unwrap_or(days);
    let (certificate_path, key) = write(
        &authority,
        &role,
        days,
        &args.output,
        reading_group(args, &role)?,
    )?;
    let pem = std::fs::read_to_string(&certificate_path)
        .with_context(|| format!("cannot read {}", certificate_path.display()))?;
    let (serial, dates) = (certificate::serial(&pem)?, certificate::dates(&pem)?);
    if args.json {
        return Ok(pretty(&json!({
            "serial": serial,
            "role": role.kind(),
            "name": role.name(),
            "expiry_time_ms": list::ms(dates.until),
            "certificate": certificate_path,
            "key": key,
            "authority": authority.certificate_path(),
        })));
    }
    Ok(format!(
        "{} {}, serial {serial}, valid until {}
  certificate   {}
  key           {}
  authority     {}",
        role.kind(),
        role.name(),
        list::day(dates.until),
        certificate_path.display(),
        key.display(),
        authority.certificate_path().display()
    ))
}

/// Group that may read the key: the group given by the option. Without the option it is the packaged
/// recruiter's group, if root creates a recruiter's key and this machine has that group.
fn reading_group(args: &Issue, role: &Role) -> anyhow::Result<Option<u32>> {
    if let Some(name) = &args.group {
        let found = group_id(name)
            .with_context(|| format!("--group {name}: this machine has no such group"));
        return found.map(Some);
    }
    let is_recruiter = matches!(role, Role::Recruiter { .. });
    let group =
        (is_recruiter && rustix::process::geteuid().is_root()).then(|| group_id(RECRUITER_GROUP));
    Ok(group.flatten())
}

/// Writes the certificate to `PREFIX.crt` and the key to `PREFIX.key`.
fn write(
    authority: &Authority,
    role: &Role,
    days: u32,
    prefix: &Path,
    group: Option<u32>,
) -> anyhow::Result<(PathBuf, PathBuf)> {
    let with = |extension: &str| {
        let mut path = prefix.as_os_str().to_owned(); // a prefix may have dots: host7.lab
        path.push(extension);
        PathBuf::from(path)
    };
    let (certificate, key) = (with(".crt"), with(".key"));
    authority
        .issue(role, days)?
        .write_for(&certificate, &key, group)?;
    Ok((certificate, key))
}

fn token(args: &Token) -> anyhow::Result<String> {
    let authority = Authority::open(&args.folder.path)?;
    let url = match &args.collector {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => collector_url(&authority)?,
    };
    let token = authority.new_token(args.valid, args.host.as_deref())?;
    let command = format!("gleaner-agent enroll {url} {token}");
    if args.json {
        return Ok(pretty(&json!({
            "token": token,
            "command": command,
            "host": args.host,
            "expiry_time_ms": list::ms(SystemTime::now() + args.valid),
        })));
    }
    Ok(format!(
        "{command}\n\nRun this on {}, once, within {}.",
        match &args.host {
            Some(host) => format!("host {host}"),
            None => "the new host".to_owned(),
        },
        gleaner_schemas::interval::format(args.valid)
    ))
}

/// URL of the collector, from its newest certificate.
fn collector_url(authority: &Authority) -> anyhow::Result<String> {
    let now = SystemTime::now();
    let records = authority.list()?;
    let newest = records.iter().rev().find_map(|r| match &r.role {
        Role::Collector { names } if r.state(now) == State::Valid => names.first(),
        _ => None,
    });
    let name = newest.context(
        "no collector has a valid certificate: give its address with --collector https://NAME:7443",
    )?;
    Ok(match name.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("https://[{address}]:{PORT}"),
        Err(_) => format!("https://{name}:{PORT}"),
    })
}

fn revoke(args: &Revoke) -> anyhow::Result<String> {
    let revoked = Authority::open(&args.folder.path)?.revoke(&args.which)?;
    if args.json {
        return Ok(pretty(&list::json(&revoked)));
    }
    let mut text = String::new();
    for r in &revoked {
        let (kind, name) = (r.role.kind(), r.role.name());
        let _ = writeln!(text, "revoked {kind} {name}, serial {}", r.serial);
    }
    if revoked.is_empty() {
        text.push_str("revoked already: nothing changed");
    }
    let is_server = |r: &Record| matches!(r.role, Role::Collector { .. } | Role::Recruiter { .. });
    if revoked.iter().any(is_server) {
        text.push_str(
            "Hosts do not read the list: if this server's key was stolen, make a new authority (docs/trust.md).",
        );
    }
    Ok(text)
}

/// Option `--pki FOLDER` for the commands that are suggested, with a space before it; empty for the default
/// folder.
fn given_pki(folder: &Path) -> String {
    if folder == Path::new("/etc/gleaner/pki") {
        String::new()
    } else {
        format!(" --pki {}", folder.display())
    }
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}")
}
