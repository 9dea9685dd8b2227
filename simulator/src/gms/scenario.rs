//! Settings of a simulated cluster. The defaults are the paper's; settings that the paper does not state are marked
//! **Assumed**, and were chosen before any run.

mod ranges;

use super::costs::Costs;
use super::owners::OwnerChange;
use super::programs::Program;
use super::recorded::{PAGE_BYTES, Recorded, RecordedHosts};
use gleaner_policy::global::settings::{MemoryPolicy, Settings, Swap, Victim};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Pages of OO7 that its node cannot hold: the idle memory that the program needs (section 5.5).
pub const NEEDED_FRAMES: u32 = Program::Oo7.pages() - CLIENT_FRAMES;

/// Frames for programs on a node of 64 MB. **Assumed**: 40 MB; the kernel and its buffers take the rest.
const CLIENT_FRAMES: u32 = 5_120;

/// Settings of a simulated cluster: clients that run programs, and nodes with idle memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Rule by which pages are placed.
    #[serde(with = "PolicyName")]
    pub policy: MemoryPolicy,
    /// Page that a node evicts, under `gms`.
    pub victim: Victim,
    /// Receiver of the page that makes room for a hit, under `gms`.
    pub swap: Swap,
    /// Factor of global pages' ages, in quarters.
    pub boost_quarters: u32,
    /// N-chance: forwards of a page until it is dropped.
    pub chances: u8,
    /// N-chance: age from which a receiver drops a page without other copies. **Assumed**: 60 s.
    pub very_old_ms: u64,
    /// Hash: number of homes of a page.
    pub homes: u32,
    /// Hash: a page is in one memory at a time.
    pub is_exclusive: bool,
    /// Time after which a node reads a page from its source, if the cluster has not answered.
    pub fetch_timeout_ms: u32,
    /// Interval in which a node sees only the first use of each of its pages, in ms; 0: it sees every use. The paper's
    /// nodes flush their TLB once a minute (section 4.2).
    pub age_period_ms: u32,
    /// Programs of the clients, in turn.
    pub programs: Vec<Program>,
    /// Number of clients. Each runs one program.
    pub clients: u32,
    /// Frames of each client.
    pub client_frames: u32,
    /// Faults of a client that are counted, after a first pass over its data. The number of references is that
    /// which causes these faults in `client_frames` frames without global memory.
    pub counted_faults: u32,
    /// Mean compute time between two faults of `client_frames` frames. Calibrated: Figure 13. **Assumed** for all
    /// programs but OO7.
    pub compute_us: u32,
    /// Nodes with idle memory.
    pub idle_nodes: u32,
    /// Idle frames of all these nodes together.
    pub idle_frames: u32,
    /// Number of nodes that have `rich_percent` of the idle frames; 0: all nodes have equally many.
    pub rich_nodes: u32,
    /// Share of the idle frames on the rich nodes, in %.
    pub rich_percent: f64,
    /// True if a program runs on each node with idle memory that is not rich. The program loops over pages of its
    /// own, half of which all such nodes share.
    pub has_bystanders: bool,
    /// Pages of a bystander, which has as many frames beside its share of the idle frames.
    pub bystander_pages: u32,
    /// Compute time of a bystander per page. **Assumed**.
    pub bystander_us: u32,
    /// Interval at which a bystander stops and begins on a rich node instead, in ms; 0: never.
    pub exchange_ms: u32,
    /// Time at which the clients begin, in ms: bystanders have read their pages by then. **Assumed**.
    pub start_ms: u32,
    /// Changes of nodes' idle frames while the simulation runs.
    pub owners: Vec<OwnerChange>,
    /// Costs of operations on pages of 8 KiB.
    pub costs: Costs,
    /// Bytes of a frame, a multiple of 8 KiB. Transfers and computing take the time of a frame's pages.
    pub frame_bytes: u32,
    /// Rules by which recorded hosts lend frames.
    pub recorded: Recorded,
    /// Recorded hosts, which are the nodes with idle memory; `idle_frames` is not used then.
    #[serde(skip)]
    pub hosts: Option<Arc<RecordedHosts>>,
}

impl Default for Scenario {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            policy: settings.policy,
            victim: settings.victim,
            swap: settings.swap,
            boost_quarters: settings.boost_quarters,
            chances: settings.chances,
            very_old_ms: settings.very_old_ms,
            homes: settings.homes as u32,
            is_exclusive: settings.is_exclusive,
            fetch_timeout_ms: settings.fetch_timeout_ms as u32,
            age_period_ms: 60_000,
            programs: vec![Program::Oo7],
            clients: 1,
            client_frames: CLIENT_FRAMES,
            counted_faults: 30_000,
            compute_us: 2_760,
            idle_nodes: 8,
            idle_frames: NEEDED_FRAMES,
            rich_nodes: 0,
            rich_percent: 50.0,
            has_bystanders: false,
            bystander_pages: CLIENT_FRAMES,
            bystander_us: 1_000,
            exchange_ms: 0,
            start_ms: 0,
            owners: Vec::new(),
            costs: Costs::default(),
            frame_bytes: PAGE_BYTES,
            recorded: Recorded::default(),
            hosts: None,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "MemoryPolicy", rename_all = "kebab-case")]
enum PolicyName {
    Gms,
    Exact,
    NChance,
    Hash,
    None,
}

impl Scenario {
    /// Settings of the policy.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            policy: self.policy,
            victim: self.victim,
            swap: self.swap,
            boost_quarters: self.boost_quarters,
            chances: self.chances,
            very_old_ms: self.very_old_ms,
            homes: self.homes as usize,
            is_exclusive: self.is_exclusive,
            local_frames: u32::MAX,
            fetch_timeout_ms: i64::from(self.fetch_timeout_ms),
            age_period_ms: i64::from(self.age_period_ms),
        }
    }

    /// The same clients without the memory of other nodes. Settings that make no difference then have their
    /// defaults, so that scenarios with the same clients give the same result.
    #[must_use]
    pub fn without_cluster(&self) -> Self {
        Self {
            policy: MemoryPolicy::None,
            fetch_timeout_ms: self.fetch_timeout_ms,
            programs: self.programs.clone(),
            clients: self.clients,
            client_frames: self.client_frames,
            counted_faults: self.counted_faults,
            compute_us: self.compute_us,
            idle_nodes: 0,
            idle_frames: 0,
            costs: self.costs,
            frame_bytes: self.frame_bytes,
            ..Self::default()
        }
    }

    /// Program of a client, counted from 0.
    pub(super) fn program(&self, client: u32) -> Program {
        let at = client as usize % self.programs.len().max(1);
        self.programs.get(at).copied().unwrap_or(Program::Oo7)
    }

    /// Idle frames of a node with idle memory, counted from 0. The first nodes are the rich ones; of equal nodes,
    /// the first ones have the remainder.
    pub(super) fn idle_frames_of(&self, node: u32) -> u32 {
        let part = |sum: u64, count: u32, at: u32| {
            let count = u64::from(count.max(1));
            let share = sum / count + u64::from(u64::from(at) < sum % count);
            u32::try_from(share).unwrap_or(u32::MAX)
        };
        let all = u64::from(self.idle_frames);
        let (rich, poor) = (
            self.rich_nodes,
            self.idle_nodes.saturating_sub(self.rich_nodes),
        );
        let rich_sum = match (rich, poor) {
            (0, _) => 0,
            (_, 0) => all,
            _ => (all as f64 * self.rich_percent / 100.0) as u64,
        };
        if node < rich {
            part(rich_sum, rich, node)
        } else {
            part(all - rich_sum, poor, node - rich)
        }
    }

    /// Pages of a bystander, if one begins on this node with idle memory.
    pub(super) const fn bystander_pages_of(&self, node: u32) -> u32 {
        if self.has_bystanders && node >= self.rich_nodes {
            self.bystander_pages
        } else {
            0
        }
    }

    /// Most frames that a node with idle memory has at any time.
    pub(super) fn most_frames_of(&self, node: u32) -> u64 {
        if let Some(hosts) = &self.hosts {
            return hosts.most_frames(node).into();
        }
        let changes = self.owners.iter().filter(|change| change.node == node);
        let most = changes.map(|change| change.frames).max();
        let idle = most.unwrap_or(0).max(self.idle_frames_of(node));
        u64::from(idle) + u64::from(self.bystander_pages_of(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_frames_are_divided_without_loss() {
        for (rich_nodes, rich_percent) in [(0, 50.0), (2, 75.0), (3, 62.5), (4, 50.0), (8, 10.0)] {
            let scenario = Scenario {
                rich_nodes,
                rich_percent,
                idle_frames: 11_881,
                ..Scenario::default()
            };
            let frames: Vec<u32> = (0..8).map(|node| scenario.idle_frames_of(node)).collect();
            assert_eq!(frames.iter().sum::<u32>(), 11_881, "{frames:?}");
            let rich: u32 = frames.iter().take(rich_nodes as usize).sum();
            let expected = match rich_nodes {
                0 => 0,
                8 => 11_881,
                _ => (11_881.0 * rich_percent / 100.0) as u32,
            };
            assert_eq!(rich, expected);
        }
    }

    #[test]
    fn settings_outside_their_range_are_named() {
        Scenario::default().check().unwrap();
        let refused = |scenario: Scenario| scenario.check().unwrap_err().to_string();
        let error = refused(Scenario {
            clients: 0,
            ..Scenario::default()
        });
        assert!(error.contains("clients = 0"), "{error}");
        let error = refused(Scenario {
            rich_nodes: 9,
            ..Scenario::default()
        });
        assert!(
            error.contains("rich_nodes = 9") && error.contains("0 to 8"),
            "{error}"
        );
        let costs = Costs {
            disk_random_ns: u64::MAX,
            ..Costs::default()
        };
        let error = refused(Scenario {
            costs,
            ..Scenario::default()
        });
        assert!(error.contains("costs.disk_random_ns"), "{error}");
        let many = Scenario {
            clients: 5_000,
            client_frames: 1 << 24,
            ..Scenario::default()
        };
        assert!(refused(many).contains("client_frames"));
    }
}
