//! Anonymous reports (`--anonymous`): numbers replace the hosts' names and ids.
//!
//! All other data stay: a host's size, its kernel's release, and the recorded names of processes and files.
//! The numbers follow a hash of each host's id, keyed with all ids of the report. This order reveals nothing
//! about the names, is the same whenever the same report is made, and cannot be computed without every id. A
//! host has the same number in both weeks; a report on other hosts has other numbers.

use gleaner_schemas::findings::{Finding, FindingVisitor, Findings, HostFields};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};

#[cfg(test)]
mod filled;

/// A host's recorded name, and its name in the report.
struct NamePair {
    old_name: String,
    name: String,
}

/// Replaces every host's name by a number, which is the same in both findings.
pub(crate) fn rename(findings: &mut Findings, mut before: Option<&mut Findings>) {
    let mut renamed = numbers(findings, before.as_deref());
    for hosts in [Some(&*findings), before.as_deref()].into_iter().flatten() {
        for host in &hosts.hosts {
            if let Some(renamed) = renamed.get_mut(&host.host_id) {
                renamed.old_name.clone_from(&host.host_name);
            }
        }
    }
    let both = [Some(findings), before.take()];
    for findings in both.into_iter().flatten() {
        Findings::visit(&mut Renamer {
            findings,
            renamed: &renamed,
        });
    }
}

fn numbers(findings: &Findings, before: Option<&Findings>) -> HashMap<String, NamePair> {
    // Hosts without samples are listed only as missing.
    let ids = |f: &Findings| -> Vec<String> {
        let missing = f.missing_measures.iter().map(|n| n.host_id.clone());
        let hosts = f.hosts.iter().map(|h| h.host_id.clone());
        hosts.chain(missing.filter(|host| host != "all")).collect()
    };
    let mut all: BTreeSet<String> = ids(findings).into_iter().collect();
    all.extend(before.map(ids).unwrap_or_default());
    let numbered = numbered("host", all).into_iter().map(|(id, name)| {
        let old_name = String::new();
        (id, NamePair { old_name, name })
    });
    numbered.collect()
}

/// Anonymous names for these ids: `host 01` if `thing` is `host`. The numbers follow a hash of each id, keyed with
/// all ids.
#[must_use]
pub fn numbered(thing: &str, all: BTreeSet<String>) -> HashMap<String, String> {
    let mut key = Sha256::new();
    for id in &all {
        key.update((id.len() as u64).to_le_bytes());
        key.update(id);
    }
    let key = key.finalize();
    let mut order: Vec<_> = all
        .into_iter()
        .map(|id| {
            let hash = Sha256::new().chain_update(key).chain_update(&id);
            (hash.finalize().to_vec(), id)
        })
        .collect();
    order.sort_unstable();
    // Padded to the width of the last number, so that the names sort as text.
    let width = order.len().to_string().len();
    let numbered = order.into_iter().enumerate().map(|(at, (_, id))| {
        let name = format!("{thing} {:0width$}", at + 1);
        (id, name)
    });
    numbered.collect()
}

/// Renames the hosts in every list of the findings.
struct Renamer<'a> {
    findings: &'a mut Findings,
    renamed: &'a HashMap<String, NamePair>,
}

impl FindingVisitor for Renamer<'_> {
    fn visit<F: Finding>(&mut self) {
        let list = std::mem::take(F::list_mut(self.findings));
        let by_host = list.into_iter().map(|mut record| {
            let host = self.record(record.host_fields());
            (host, record)
        });
        let mut by_host: Vec<(Option<String>, F)> = by_host.collect();
        // The lists' own order, by names, would reveal the names' order.
        by_host.sort_by(|a, b| a.0.cmp(&b.0));
        let list = by_host.into_iter().map(|(_, record)| record);
        *F::list_mut(self.findings) = list.collect();
    }
}

impl Renamer<'_> {
    /// Renames the host of one record, and returns the host's new name; absent for a record of several hosts.
    fn record(&self, fields: HostFields<'_>) -> Option<String> {
        let id = fields.id?;
        let name = self.name(id);
        if let (Some(text), Some(renamed)) = (fields.text, self.renamed.get(id)) {
            *text = text.replace(id.as_str(), &renamed.name);
            if !renamed.old_name.is_empty() {
                *text = text.replace(&renamed.old_name, &renamed.name);
            }
        }
        if let Some(host_name) = fields.name {
            host_name.clone_from(&name);
        }
        id.clone_from(&name);
        Some(name)
    }

    fn name(&self, id: &str) -> String {
        match self.renamed.get(id) {
            Some(renamed) => renamed.name.clone(),
            None if id == "all" => id.to_owned(),
            // The findings do not list this host.
            None => "a host".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::{Gap, HostSummary, MissingMeasure, Quota, Reclaims};
    use serde_json::Value;

    fn fleet(names: &[&str]) -> Findings {
        let host = |name: &&str| HostSummary {
            host_id: format!("id-of-{name}"),
            host_name: (*name).to_owned(),
            physical_bytes: name.len() as i64,
            ..HostSummary::default()
        };
        let mut f = Findings {
            hosts: names.iter().map(host).collect(),
            ..Findings::default()
        };
        for host in &f.hosts {
            f.gaps.push(Gap {
                host_id: host.host_id.clone(),
                from_time_ms: 0,
                to_time_ms: 1,
                duration_s: host.physical_bytes as f64,
                cause: "sleep".into(),
            });
            f.quotas.push(Quota {
                host_id: host.host_id.clone(),
                time_ms: 0,
                quota_bytes: 0,
                paper_quota_bytes: 0,
                harvestable_bytes: None,
                reason: format!("{} ({}) is in use", host.host_name, host.host_id),
            });
            f.reclaims.push(Reclaims {
                host_id: Some(host.host_id.clone()),
                size_class: "all".into(),
                hosts_count: 1,
                reclaims_count: 0,
                observed_days: 1.0,
                reclaims_per_day: host.physical_bytes as f64,
            });
        }
        f.missing_measures.push(MissingMeasure {
            measure: "hosts".into(),
            host_id: "id-of-nobody".into(),
            reason: "it has no samples".into(),
        });
        f
    }

    #[test]
    fn numbers_are_one_for_a_host_in_both_weeks_and_follow_no_name() {
        let names: Vec<String> = (0..26)
            .map(|i| "abcdefghijklmnopqrstuvwxyz"[..=i].to_owned())
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut now, mut before) = (fleet(&names), fleet(&names[5..]));
        rename(&mut now, Some(&mut before));
        for findings in [&now, &before] {
            let text = serde_json::to_string(findings).unwrap();
            assert!(!text.contains("id-of") && !text.contains("abc"), "{text}");
            for host in &findings.hosts {
                let gap = findings
                    .gaps
                    .iter()
                    .find(|g| g.host_id == host.host_id)
                    .unwrap();
                assert_eq!(gap.duration_s, host.physical_bytes as f64, "its own");
            }
        }
        for host in &before.hosts {
            let same = now
                .hosts
                .iter()
                .find(|h| h.host_name == host.host_name)
                .unwrap();
            assert_eq!(same.physical_bytes, host.physical_bytes);
        }
        let sizes: Vec<i64> = now.hosts.iter().map(|h| h.physical_bytes).collect();
        assert!(!sizes.is_sorted(), "the names' order is gone");
        assert_eq!(now.hosts[0].host_name.len(), "host 01".len());
    }

    /// Collects the texts in a JSON document that contain the example host's name, each with its field.
    fn marked<'a>(value: &'a Value, field: &'a str, found: &mut Vec<(&'a str, &'a str)>) {
        match value {
            Value::String(text) if text.contains(filled::NAME) => found.push((field, text)),
            Value::Array(all) => all.iter().for_each(|item| marked(item, field, found)),
            Value::Object(fields) => {
                (fields.iter()).for_each(|(field, value)| marked(value, field, found));
            }
            _ => {}
        }
    }

    #[test]
    fn no_finding_names_a_host() {
        // In these findings, every text of every record contains the example host's name.
        let mut findings: Findings = filled::filled();
        let texts = |findings: &Findings| serde_json::to_value(findings).unwrap();
        let full = texts(&findings);
        rename(&mut findings, None);
        let anonymous = texts(&findings);
        for about in Findings::DECLARATIONS {
            let key = about.key;
            let lengths = [&full, &anonymous].map(|f| f[key].as_array().unwrap().len());
            assert_eq!(lengths, [1, 1], "{key} has a record");
            let mut named = Vec::new();
            marked(&anonymous[key], key, &mut named);
            let named: Vec<_> = { named.into_iter() }
                .filter(|(field, _)| !about.plain_text.contains(field))
                .collect();
            assert!(
                named.is_empty(),
                "{key} names its host in {named:?}: `Finding::host_fields` or `Finding::PLAIN_TEXT` has to have it"
            );
        }
        assert_eq!(anonymous["hosts"][0]["host_name"], "host 1");
        assert!(
            anonymous["quotas"][0]["reason"]
                .as_str()
                .unwrap()
                .contains("host 1")
        );
    }
}
