//! Names and page addresses of hosts, by host id.

use crate::options::Site;
use gleaner_schemas::findings::HostSummary;
use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// Address of the host's page for links; absent if there is no page.
    pub address: Option<String>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(hosts: impl IntoIterator<Item = &'a HostSummary>) -> Self {
        let mut taken = HashSet::new();
        let mut by_id = HashMap::new();
        for host in hosts {
            let slug = slug(&host.host_name);
            let mut page = format!("{PREFIX}{slug}");
            // The number rises until the id is unique: `a-2` may be the name of another host.
            let mut number = 1;
            while !taken.insert(page.clone()) {
                number += 1;
                page = format!("{PREFIX}{slug}-{number}");
            }
            let name = Name {
                name: &host.host_name,
                address: Some(format!("#{page}")),
                page,
            };
            by_id.insert(host.host_id.as_str(), name);
        }
        Self { by_id }
    }

    /// Names of hosts whose pages are in the pages of their sites. A host of no site has no page: an anonymous
    /// report has other ids than the sites.
    pub(crate) fn in_sites(hosts: &'a [HostSummary], sites: &[Site]) -> Self {
        let mut at_site: HashMap<&str, Option<&str>> = HashMap::new();
        for site in sites {
            let page = site.page.as_deref();
            at_site.extend(site.hosts.iter().map(|host| (host.as_str(), page)));
        }
        // Each site's page makes its hosts' addresses unique among its own hosts only.
        let mut by_page: BTreeMap<Option<&str>, Vec<&'a HostSummary>> = BTreeMap::new();
        for host in hosts {
            let page = at_site.get(host.host_id.as_str()).copied().flatten();
            by_page.entry(page).or_default().push(host);
        }
        let mut by_id = HashMap::with_capacity(hosts.len());
        for (page, hosts) in by_page {
            for (host, mut name) in Self::of(hosts.iter().copied()).by_id {
                let anchor = name.address.unwrap_or_default();
                name.address = page.map(|page| format!("{page}{anchor}"));
                by_id.insert(host, name);
            }
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

    fn host(id: &str, name: &str) -> HostSummary {
        HostSummary {
            host_id: id.into(),
            host_name: name.into(),
            ..HostSummary::default()
        }
    }

    #[test]
    fn every_page_has_an_address_of_its_own() {
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
        assert_eq!(names.get("1").unwrap().address.as_deref(), Some("#host-a"));
    }

    #[test]
    fn hosts_of_sites_are_on_their_sites_pages() {
        let hosts = [
            host("1", "a"),
            host("2", "a"),
            host("3", "A"),
            host("4", "b"),
        ];
        let site = |page: Option<&str>, ids: &[&str]| Site {
            name: "site".to_owned(),
            page: page.map(str::to_owned),
            hosts: ids.iter().map(|&id| id.to_owned()).collect(),
            figures: None,
        };
        let sites = [
            site(Some("x.html"), &["1", "3"]),
            site(Some("y.html"), &["2"]),
        ];
        let names = Names::in_sites(&hosts, &sites);
        let address = |id: &str| names.get(id).unwrap().address.as_deref();
        assert_eq!(
            ["1", "2", "3", "4"].map(address),
            [
                Some("x.html#host-a"),
                Some("y.html#host-a"),
                Some("x.html#host-a-2"),
                None
            ]
        );
    }
}
