//! Names and addresses that a lab uses.

use std::net::Ipv4Addr;

/// Name of the bridge's network namespace; the names of all other namespaces begin with it.
pub(super) const LAB: &str = "gleaner-lab";
/// Name of the bridge.
pub(super) const BRIDGE: &str = "br0";
/// Name of each node's network interface.
pub(super) const INTERFACE: &str = "eth0";
/// Port at which the collector serves agents.
pub(super) const COLLECTOR_PORT: u16 = 7443;
/// Address of the collector inside its namespace, without TLS.
pub(super) const LOCAL: &str = "127.0.0.1:7480";
/// Port at which the recruiter serves memory servers; the recruiter runs on the collector's node.
pub(super) const RECRUITER_PORT: u16 = 7444;
/// Port at which hosts serve the pages of their leases.
pub(super) const PAGES_PORT: u16 = 10809;
/// Port at which hosts serve the blocks of their commons to each other.
pub(super) const COMMONS_PORT: u16 = 7445;
/// Address of the recruiter inside its namespace, without TLS.
pub(super) const RECRUITER_LOCAL: &str = "127.0.0.1:7484";
/// Prefix length of the nodes' network, 10.77.0.0/16, which exists only on the bridge.
pub(super) const PREFIX_LENGTH: u8 = 16;

/// A node of the lab: a network namespace that is connected to the bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Name of the node's network namespace.
    pub(super) namespace: String,
    /// Name of the bridge's port for this node: at most 15 bytes.
    pub(super) port: String,
    pub(super) address: Ipv4Addr,
}

/// The collector's node.
pub(super) fn collector() -> Node {
    Node {
        namespace: format!("{LAB}-collector"),
        port: "collector".to_owned(),
        address: Ipv4Addr::new(10, 77, 0, 1),
    }
}

/// The node of the clerk, if the lab has one.
pub(super) fn clerk() -> Node {
    Node {
        namespace: format!("{LAB}-clerk"),
        port: "clerk".to_owned(),
        address: Ipv4Addr::new(10, 77, 0, 2),
    }
}

/// The node of the host numbered `number`, from 1.
pub(super) fn host(number: u32) -> Node {
    let [.., third, fourth] = (number + 255).to_be_bytes(); // starts at 10.77.1.0
    Node {
        namespace: format!("{LAB}-{number}"),
        port: format!("host{number}"),
        address: Ipv4Addr::new(10, 77, third, fourth),
    }
}

/// Returns true if the name `namespace` is one that labs use.
pub(super) fn is_of_a_lab(namespace: &str) -> bool {
    match namespace.strip_prefix(LAB) {
        Some(rest) => matches!(rest, "" | "-collector" | "-clerk") || is_number(rest),
        None => false,
    }
}

fn is_number(rest: &str) -> bool {
    let digits = rest.strip_prefix('-').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nodes_are_apart_and_known_by_their_names() {
        let nodes: Vec<Node> = (1..=1000).map(host).chain([collector(), clerk()]).collect();
        let distinct =
            |of: fn(&Node) -> String| nodes.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(|n| n.namespace.clone()), 1002);
        assert_eq!(distinct(|n| n.address.to_string()), 1002);
        assert!(
            nodes
                .iter()
                .all(|n| n.port.len() <= 15 && is_of_a_lab(&n.namespace))
        );
        for foreign in [
            "gleaner",
            "gleaner-laboratory",
            "gleaner-lab-",
            "gleaner-lab-x",
            "lab",
        ] {
            assert!(!is_of_a_lab(foreign), "{foreign}");
        }
    }
}
