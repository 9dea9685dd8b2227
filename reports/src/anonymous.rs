//! Hosts by numbers: what `--anonymous` takes out of a report.
//!
//! Names and ids go; what a host is and did stays: its size, its kernel's release, names of processes and files as they were
//! recorded. The numbers follow a hash of each id, keyed with all ids of the report: an order that tells nothing of the names,
//! that is the same whenever the same report is made, and that nobody finds again who does not know every id. A host
//! that is in both weeks has one number; another report of other hosts has other numbers.

use gleaner_schemas::findings::Findings;
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};

/// What a host was called, and is called from here on.
struct Renamed {
    old_name: String,
    name: String,
}

/// Names every host by a number, the same in both.
pub(crate) fn rename(findings: &mut Findings, mut before: Option<&mut Findings>) {
    let mut renamed = numbers(findings, before.as_deref());
    for hosts in [Some(&*findings), before.as_deref()].into_iter().flatten() {
        for host in &hosts.hosts {
            if let Some(renamed) = renamed.get_mut(&host.host) {
                renamed.old_name.clone_from(&host.host_name);
            }
        }
    }
    let both = [Some(findings), before.take()];
    for findings in both.into_iter().flatten() {
        rename_all(findings, &renamed);
    }
}

fn numbers(findings: &Findings, before: Option<&Findings>) -> HashMap<String, Renamed> {
    // Hosts without samples are listed nowhere else.
    let ids = |f: &Findings| -> Vec<String> {
        let missing = f.not_measured.iter().map(|n| n.host.clone());
        let hosts = f.hosts.iter().map(|h| h.host.clone());
        hosts.chain(missing.filter(|host| host != "all")).collect()
    };
    let mut all: BTreeSet<String> = ids(findings).into_iter().collect();
    all.extend(before.map(ids).unwrap_or_default());
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
    // As wide as the last, so that they sort as text.
    let width = order.len().to_string().len();
    let numbered = order.into_iter().enumerate().map(|(at, (_, id))| {
        let name = format!("host {:0width$}", at + 1);
        let old_name = String::new();
        (id, Renamed { old_name, name })
    });
    numbered.collect()
}

fn rename_all(f: &mut Findings, renamed: &HashMap<String, Renamed>) {
    let name = |id: &str| match renamed.get(id) {
        Some(renamed) => renamed.name.clone(),
        None if id == "all" => id.to_owned(),
        // Of a host that the findings do not list.
        None => "a host".to_owned(),
    };
    let clean = |id: &str, text: &mut String| {
        if let Some(renamed) = renamed.get(id) {
            *text = text.replace(id, &renamed.name);
            if !renamed.old_name.is_empty() {
                *text = text.replace(&renamed.old_name, &renamed.name);
            }
        }
    };
    f.not_measured
        .iter_mut()
        .for_each(|n| clean(&n.host, &mut n.reason));
    f.quotas
        .iter_mut()
        .for_each(|q| clean(&q.host, &mut q.reason));
    f.absences
        .iter_mut()
        .for_each(|a| clean(&a.host, &mut a.detail));
    for host in &mut f.hosts {
        host.host_name = name(&host.host);
    }
    // The lists' own order, by names, would tell.
    macro_rules! each {
        ($($list:ident),*) => {
            $(f.$list.iter_mut().for_each(|item| item.host = name(&item.host));
            f.$list.sort_by(|a, b| a.host.cmp(&b.host));)*
        };
    }
    each!(
        hosts,
        memory_by_host,
        memory_over_time,
        dips,
        worst_dips,
        dip_processes,
        idle_periods,
        quotas,
        forecasts,
        forecast_habits,
        top_processes,
        top_files,
        gaps,
        absences,
        activity_sources,
        residuals,
        agent_cost,
        not_measured
    );
    macro_rules! each_optional {
        ($($list:ident),*) => {
            $(f.$list.iter_mut().for_each(|item| item.host = item.host.as_deref().map(name));
            f.$list.sort_by(|a, b| a.host.cmp(&b.host));)*
        };
    }
    each_optional!(reclaims, memory_context);
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::{Gap, HostSummary, NotMeasured, Quota, Reclaims};

    fn fleet(names: &[&str]) -> Findings {
        let host = |name: &&str| HostSummary {
            host: format!("id-of-{name}"),
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
                host: host.host.clone(),
                from_time_ms: 0,
                to_time_ms: 1,
                duration_s: host.physical_bytes as f64,
                cause: "sleep".into(),
            });
            f.quotas.push(Quota {
                host: host.host.clone(),
                time_ms: 0,
                quota_bytes: 0,
                recruitable_bytes: 0,
                harvestable_bytes: None,
                reason: format!("{} ({}) is in use", host.host_name, host.host),
            });
            f.reclaims.push(Reclaims {
                host: Some(host.host.clone()),
                size_class: "all".into(),
                hosts_count: 1,
                reclaims: 0,
                observed_days: 1.0,
                reclaims_per_day: host.physical_bytes as f64,
            });
        }
        f.not_measured.push(NotMeasured {
            measure: "hosts".into(),
            host: "id-of-nobody".into(),
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
                let gap = findings.gaps.iter().find(|g| g.host == host.host).unwrap();
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
}
