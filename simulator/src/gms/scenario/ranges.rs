//! Ranges of the settings of a simulated cluster.

use super::Scenario;
use crate::gms::recorded::{MOST_FRAMES, PAGE_BYTES};
use crate::swept::ScenarioError;
use std::collections::BTreeMap;

/// Most nodes of a cluster.
const MOST_NODES: u32 = 10_000;
/// Largest frame: 16 MiB.
const MOST_FRAME_BYTES: u32 = 1 << 24;
/// Most frames of all nodes together.
const MOST_FRAMES_IN_ALL: u64 = 1 << 28;
/// Most changes by owners: the check of the weights looks at all of them for each node.
const MOST_OWNER_CHANGES: u64 = 100_000;
/// Most nodes and counted faults, multiplied.
const MOST_FAULTS_IN_ALL: u64 = 1 << 30;
/// Longest time of one operation: 10 s.
const MOST_COST_NS: u64 = 10_000_000_000;

impl Scenario {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`ScenarioError::Setting`] names the first setting outside its range.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let within = |key, value: u64, low: u64, high: u64| match (low..=high).contains(&value) {
            true => Ok(()),
            false => Err(ScenarioError::Setting {
                key,
                value: value.to_string(),
                reason: format!("must be {low} to {high}"),
            }),
        };
        let of = u64::from;
        within("programs", self.programs.len() as u64, 1, 1_000)?;
        within("clients", of(self.clients), 1, of(MOST_NODES))?;
        within(
            "idle_nodes",
            of(self.idle_nodes),
            0,
            of(MOST_NODES - self.clients),
        )?;
        within("rich_nodes", of(self.rich_nodes), 0, of(self.idle_nodes))?;
        if !(0.0..=100.0).contains(&self.rich_percent) {
            return Err(ScenarioError::Setting {
                key: "rich_percent",
                value: self.rich_percent.to_string(),
                reason: "must be 0 to 100".to_owned(),
            });
        }
        within("client_frames", of(self.client_frames), 1, of(MOST_FRAMES))?;
        within("idle_frames", of(self.idle_frames), 0, of(MOST_FRAMES))?;
        within(
            "bystander_pages",
            of(self.bystander_pages),
            2,
            of(MOST_FRAMES),
        )?;
        within("bystander_us", of(self.bystander_us), 1, 10_000_000)?;
        within("counted_faults", of(self.counted_faults), 1, 10_000_000)?;
        within("compute_us", of(self.compute_us), 0, 10_000_000)?;
        within("boost_quarters", of(self.boost_quarters), 1, 1_000)?;
        within("chances", u64::from(self.chances), 0, 255)?;
        within("very_old_ms", self.very_old_ms, 0, 1 << 40)?;
        within("homes", of(self.homes), 1, 2)?;
        within("fetch_timeout_ms", of(self.fetch_timeout_ms), 1, 60_000)?;
        within("age_period_ms", of(self.age_period_ms), 0, 86_400_000)?;
        let exchanges = of(self.exchange_ms);
        within(
            "exchange_ms",
            if exchanges == 0 { 100 } else { exchanges },
            100,
            1 << 31,
        )?;
        within("start_ms", of(self.start_ms), 0, 86_400_000)?;
        self.check_owners(within)?;
        let bystanders = if self.has_bystanders {
            self.idle_nodes
        } else {
            0
        };
        let frames = of(self.clients) * of(self.client_frames)
            + of(self.idle_frames)
            + of(bystanders) * of(self.bystander_pages);
        within("client_frames", frames, 1, MOST_FRAMES_IN_ALL)?;
        self.check_recorded(within)?;
        let faults = of(self.clients) * of(self.counted_faults);
        within("counted_faults", faults, 1, MOST_FAULTS_IN_ALL)?;
        self.check_costs(within)
    }

    fn check_owners(
        &self,
        within: impl Fn(&'static str, u64, u64, u64) -> Result<(), ScenarioError>,
    ) -> Result<(), ScenarioError> {
        let most_changes = if self.idle_nodes > 0 {
            MOST_OWNER_CHANGES
        } else {
            0
        };
        within("owners", self.owners.len() as u64, 0, most_changes)?;
        let mut most_frames: BTreeMap<u32, u64> = BTreeMap::new();
        for change in &self.owners {
            let frames = u64::from(change.frames);
            within(
                "owners",
                change.node.into(),
                0,
                u64::from(self.idle_nodes) - 1,
            )?;
            within("owners", frames, 0, u64::from(MOST_FRAMES))?;
            within("owners", change.at_ms, 0, 1 << 40)?;
            let most = most_frames.entry(change.node).or_default();
            *most = frames.max(*most);
        }
        within("owners", most_frames.values().sum(), 0, MOST_FRAMES_IN_ALL)
    }

    fn check_recorded(
        &self,
        within: impl Fn(&'static str, u64, u64, u64) -> Result<(), ScenarioError>,
    ) -> Result<(), ScenarioError> {
        within(
            "frame_bytes",
            u64::from(self.frame_bytes),
            u64::from(PAGE_BYTES),
            u64::from(MOST_FRAME_BYTES),
        )?;
        let rules = &self.recorded;
        let is_share = |value: f64| (0.0..=1.0).contains(&value);
        for (key, value, is_valid, reason) in [
            (
                "frame_bytes",
                f64::from(self.frame_bytes),
                self.frame_bytes.is_multiple_of(PAGE_BYTES),
                "must be a multiple of 8192",
            ),
            (
                "recorded.idle_after_s",
                rules.idle_after_s,
                (0.0..=86_400.0).contains(&rules.idle_after_s),
                "must be 0 to 86400",
            ),
            (
                "recorded.headroom_share",
                rules.headroom_share,
                is_share(rules.headroom_share),
                "must be 0 to 1",
            ),
            (
                "recorded.lent_share",
                rules.lent_share,
                is_share(rules.lent_share),
                "must be 0 to 1",
            ),
        ] {
            if !is_valid {
                return Err(ScenarioError::Setting {
                    key,
                    value: value.to_string(),
                    reason: reason.to_owned(),
                });
            }
        }
        let most_frames = u64::from(rules.most_frames);
        within(
            "recorded.most_frames",
            most_frames,
            1,
            u64::from(MOST_FRAMES),
        )?;
        let shift_minutes = u64::from(rules.shift_minutes);
        within("recorded.shift_minutes", shift_minutes, 0, 1 << 20)?;
        if self.hosts.is_none() {
            return Ok(());
        }
        self.check_no_other_owners()?;
        let frames = (0..self.idle_nodes).map(|node| self.most_frames_of(node));
        within("recorded.most_frames", frames.sum(), 0, MOST_FRAMES_IN_ALL)
    }

    /// Checks that no setting gives recorded hosts owners, besides their own.
    ///
    /// # Errors
    /// [`ScenarioError::Setting`] names the setting.
    pub(in crate::gms) fn check_no_other_owners(&self) -> Result<(), ScenarioError> {
        let given = [
            ("has_bystanders", self.has_bystanders, "true".to_owned()),
            (
                "rich_nodes",
                self.rich_nodes > 0,
                self.rich_nodes.to_string(),
            ),
            (
                "exchange_ms",
                self.exchange_ms > 0,
                self.exchange_ms.to_string(),
            ),
            (
                "owners",
                !self.owners.is_empty(),
                self.owners.len().to_string(),
            ),
        ];
        match given.into_iter().find(|(_, is_given, _)| *is_given) {
            Some((key, _, value)) => Err(ScenarioError::Setting {
                key,
                value,
                reason: "recorded hosts have owners and memory of their own: leave it out"
                    .to_owned(),
            }),
            None => Ok(()),
        }
    }

    fn check_costs(
        &self,
        within: impl Fn(&'static str, u64, u64, u64) -> Result<(), ScenarioError>,
    ) -> Result<(), ScenarioError> {
        let costs = &self.costs;
        for (key, value_ns) in [
            ("costs.message_ns", costs.message_ns),
            ("costs.page_ns", costs.page_ns),
            ("costs.put_ns", costs.put_ns),
            ("costs.link_ns", costs.link_ns),
            ("costs.put_private_ns", costs.put_private_ns),
            ("costs.put_shared_ns", costs.put_shared_ns),
            ("costs.put_target_private_ns", costs.put_target_private_ns),
            ("costs.put_target_shared_ns", costs.put_target_shared_ns),
            ("costs.directory_private_ns", costs.directory_private_ns),
            ("costs.directory_shared_ns", costs.directory_shared_ns),
            ("costs.frame_ns", costs.frame_ns),
            ("costs.serving_ns", costs.serving_ns),
            ("costs.private_fault_ns", costs.private_fault_ns),
            ("costs.shared_fault_ns", costs.shared_fault_ns),
            ("costs.disk_sequential_ns", costs.disk_sequential_ns),
            ("costs.disk_random_ns", costs.disk_random_ns),
            ("costs.nfs_sequential_ns", costs.nfs_sequential_ns),
            ("costs.nfs_random_ns", costs.nfs_random_ns),
            ("costs.summary_request_ns", costs.summary_request_ns),
            ("costs.summary_local_page_ns", costs.summary_local_page_ns),
            ("costs.summary_global_page_ns", costs.summary_global_page_ns),
            ("costs.weights_ns", costs.weights_ns),
        ] {
            within(key, value_ns, 0, MOST_COST_NS)?;
        }
        // A page is on its links for a part of its way.
        let most_link_ns = costs.page_ns.min(costs.put_ns);
        within("costs.link_ns", costs.link_ns, 0, most_link_ns)
    }
}
