//! Checks of a fleet.

use super::{Class, Fleet, Job, Names};

impl Fleet {
    /// Checks the fleet; an error describes the fault.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.clusters.is_empty() || self.classes.is_empty() {
            return Err("it needs a cluster and a class at least".to_owned());
        }
        for cluster in &self.clusters {
            let unknown = cluster
                .hosts
                .iter()
                .find(|s| self.class(&s.class).is_none());
            if let Some(share) = unknown {
                return Err(format!(
                    "cluster {:?} names class {:?}, which is not there",
                    cluster.name, share.class
                ));
            }
            if cluster.hosts.iter().all(|share| share.count == 0) {
                return Err(format!("cluster {:?} has no hosts", cluster.name));
            }
        }
        let Names {
            daemons,
            programs,
            commands,
            background,
            hogs,
            away,
        } = &self.names;
        let lists = [daemons, programs, commands, background, hogs, away];
        if lists.iter().any(|names| names.is_empty()) {
            return Err("each list of names needs one at least".to_owned());
        }
        if let Some(long) = lists.into_iter().flatten().find(|n| n.len() > 15) {
            return Err(format!(
                "{long:?} is longer than the kernel keeps: 15 bytes"
            ));
        }
        self.classes.iter().try_for_each(Class::check)
    }
}

impl Class {
    fn check(&self) -> Result<(), String> {
        let of = |what: &str| format!("class {:?}: {what}", self.name);
        if !(8..=1 << 24).contains(&self.memory_mib) || self.swap_mib < 0 {
            return Err(of("memory_mib must be 8 to 16777216, swap_mib 0 or more"));
        }
        if !(1..=4096).contains(&self.cpus) || !(1..=2).contains(&self.nodes) {
            return Err(of("cpus must be 1 to 4096, nodes 1 or 2"));
        }
        let Self {
            kernel,
            files,
            daemons,
            programs,
            away,
            ..
        } = self;
        let taken = kernel.mib + files.mib * files.always_share + daemons.mib;
        if taken > 0.9 * self.memory_mib as f64 {
            return Err(of(
                "kernel, daemons and files always in use take over 90 % of memory",
            ));
        }
        if !(1..=100_000).contains(&files.count) || files.logs_count >= files.count {
            return Err(of("files.count must be 1 to 100000, files.logs_count less"));
        }
        let jobs = [&self.commands, &self.background, &self.hogs];
        let shares = [
            kernel.static_share,
            files.always_share,
            programs.active_share,
            programs.active_away_share,
            away.share,
            away.hosts_share,
        ];
        let of_jobs = jobs
            .iter()
            .flat_map(|job| [job.hosts_share, job.all_memory_share]);
        if shares
            .into_iter()
            .chain(of_jobs)
            .any(|s| !(0.0..=1.0).contains(&s))
        {
            return Err(of("shares must be 0 to 1"));
        }
        let amounts = [
            kernel.mib,
            kernel.between_hosts,
            kernel.within_host,
            kernel.growth_per_day,
            files.mib,
            files.sigma,
            files.between_hosts,
            files.changes_per_hour,
            daemons.mib,
            daemons.between_hosts,
            programs.per_hour,
            programs.mib,
            programs.sigma,
            programs.hours,
            programs.between_hosts,
            programs.active_change_minutes,
            away.mib,
            away.sigma,
            away.least_minutes,
            away.after_minutes,
        ];
        let of_jobs = jobs.iter().flat_map(|job| {
            let [present, away] = job.per_hour;
            let Job {
                between_hosts,
                mib,
                sigma,
                minutes,
                load,
                ..
            } = job;
            [present, away, *between_hosts, *mib, *sigma, *minutes, *load]
        });
        let most = 0.0..=1e7;
        if amounts
            .into_iter()
            .chain(of_jobs)
            .any(|a| !most.contains(&a))
        {
            return Err(of("amounts must be 0 to 10 million"));
        }
        Ok(())
    }
}
