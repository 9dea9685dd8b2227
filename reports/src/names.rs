//! Names and page addresses of hosts, by host id.

use gleaner_schemas::findings::HostSummary;
use std::collections::{HashMap, HashSet};

/// Prefix of the address of every host's page.
const PREFIX: &str = "host-";

/// Names of the hosts of a report, by id.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    by_id: HashMap<&'a str, Name<'a>>,
}

/// Name of one host.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    pub name: &'a str,
    /// Id of the host's page, made from its name, so that an address stays valid next week.
    pub page: String,
}

impl<'a> Names<'a> {
    pub(crate) fn of(hosts: &'a [HostSummary]) -> Self {
        let mut taken = HashSet::new();
        let mut by_id = HashMap::with_capacity(hosts.len());
        for host in hosts {
            let slug = slug(&host.host_name);
            let mut page = format!("{PREFIX}{slug}");
            // The number rises until the id is unique: `a-2` may be the name of another host.
            let mut number = 1;
            while !taken.insert(page.clone()) {
                number += 1;
                page = format!("{PREFIX}{slug}-{number}");
            }
            let name = &host.host_name;
            by_id.insert(host.host_id.as_str(), Name { name, page });
        }
        Self { by_id }
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Name<'a>> {
        self.by_id.get(id)
    }
}

/// Turns a name into a part of an address.
fn slug(name: &str) -> String {
    let letter = |c: char| match c {
        'a'..='z' | '0'..='9' | '.' | '_' | '-' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '-',
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_an_address_of_its_own() {
        let host = |id: &str, name: &str| HostSummary {
            host_id: id.into(),
            host_name: name.into(),
            ..HostSummary::default()
        };
        let hosts = [
            host("1", "a"),
            host("2", "A"),
            host("3", "a-2"),
            host("4", "<b> \"c\""),
            host("5", ""),
        ];
        let names = Names::of(&hosts);
        let page = |id: &str| names.get(id).unwrap().page.as_str();
        assert_eq!(
            ["1", "2", "3", "4", "5"].map(page),
            ["host-a", "host-a-2", "host-a-2-2", "host--b---c-", "host-"]
        );
        assert!(names.get("6").is_none());
    }
}
