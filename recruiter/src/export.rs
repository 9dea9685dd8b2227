//! Writes all quotas to files that are replaced atomically: a JSON file for programs, and a text file for
//! node_exporter's textfile collector.

use crate::Error;
use crate::registry::DatedQuota;
use gleaner_schemas::lending::{HostQuota, Quotas};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Paths of the files to write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    pub(crate) json: Option<PathBuf>,
    pub(crate) prometheus: Option<PathBuf>,
}

impl Targets {
    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_none() && self.prometheus.is_none()
    }

    /// Replaces the files with the present quotas.
    pub(crate) fn write(&self, seen: &[DatedQuota], now_ms: i64) -> Result<(), Error> {
        let hosts: Vec<HostQuota> = seen.iter().map(|seen| seen.at(now_ms)).collect();
        if let Some(path) = &self.prometheus {
            replace(path, prometheus(&hosts).as_bytes())?;
        }
        if let Some(path) = &self.json {
            let time_ms = crate::now_ms();
            let quotas = Quotas { time_ms, hosts };
            let mut text = serde_json::to_vec(&quotas).unwrap_or_default(); // serializing this cannot fail
            text.push(b'\n');
            replace(path, &text)?;
        }
        Ok(())
    }
}

/// Renders the quotas in the text format that node_exporter reads. It refuses OpenMetrics' `# EOF` and `#
/// UNIT`.
fn prometheus(hosts: &[HostQuota]) -> String {
    type Series = (&'static str, &'static str, fn(&HostQuota) -> u64);
    let series: [Series; 3] = [
        ("quota", "What the host may lend now", |q| q.quota_bytes),
        ("lent", "What of it is leased", |q| q.lent_bytes),
        ("unleased", "What of it is left to lease", |q| {
            q.unleased_bytes
        }),
    ];
    let mut text = String::new();
    for (name, help, value) in series {
        let name = format!("gleaner_memoryd_{name}_bytes");
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for host in hosts {
            let (id, value) = (&host.host_id, value(host));
            let _ = writeln!(text, "{name}{{host_id=\"{id}\"}} {value}"); // writing to a String cannot fail
        }
    }
    text
}

/// Replaces a file atomically. Readers see either the old content or the new content.
fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp"); // node_exporter reads only *.prom
    let beside = PathBuf::from(beside);
    let mut file = fs::File::create(&beside).map_err(Error::io("write", &beside))?;
    let written = file.write_all(content);
    written.map_err(Error::io("write", &beside))?;
    fs::rename(&beside, path).map_err(Error::io("replace", path))
}
