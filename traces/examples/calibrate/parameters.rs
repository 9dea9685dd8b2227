//! The parameters of each class that are fitted; all others are fixed.

use gleaner_traces::synth::Class;

/// A parameter and its range.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&mut Class) -> &mut f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Parameter {
    /// Unbounded form of the parameter: the logarithm of an amount, or the log-odds of a share.
    pub(crate) fn free(&self, class: &mut Class) -> f64 {
        let value = *(self.of)(class);
        if self.is_share() {
            let share = value.clamp(0.002, 0.998);
            (share / (1.0 - share)).ln()
        } else {
            value.max(self.floor()).ln()
        }
    }

    pub(crate) fn set(&self, class: &mut Class, free: f64) {
        let value = if self.is_share() {
            1.0 / (1.0 + (-free).exp())
        } else {
            free.exp()
        };
        *(self.of)(class) = value.clamp(self.least, self.most);
    }

    fn is_share(&self) -> bool {
        self.least < 0.1 && self.most == 1.0
    }

    fn floor(&self) -> f64 {
        self.least.max(1e-3 * self.most)
    }
}

const fn parameter(
    name: &'static str,
    of: fn(&mut Class) -> &mut f64,
    least: f64,
    most: f64,
) -> Parameter {
    Parameter {
        name,
        of,
        least,
        most,
    }
}

/// Parameters of the classes that have rows in Tables 2 and 4.
pub(crate) const FITTED: [Parameter; 22] = [
    parameter("kernel.mib", |c| &mut c.kernel.mib, 1.0, 300.0),
    parameter(
        "kernel.between_hosts",
        |c| &mut c.kernel.between_hosts,
        0.0,
        0.5,
    ),
    parameter("files.mib", |c| &mut c.files.mib, 0.1, 200.0),
    parameter("files.sigma", |c| &mut c.files.sigma, 0.05, 2.5),
    parameter("daemons.mib", |c| &mut c.daemons.mib, 0.2, 100.0),
    parameter("programs.mib", |c| &mut c.programs.mib, 0.05, 100.0),
    parameter("programs.sigma", |c| &mut c.programs.sigma, 0.05, 2.0),
    parameter("programs.hours", |c| &mut c.programs.hours, 0.02, 48.0),
    parameter(
        "commands.per_hour away",
        |c| &mut c.commands.per_hour[1],
        0.0,
        12.0,
    ),
    parameter(
        "commands.hosts_share",
        |c| &mut c.commands.hosts_share,
        0.0,
        1.0,
    ),
    parameter(
        "programs.between_hosts",
        |c| &mut c.programs.between_hosts,
        0.05,
        2.0,
    ),
    parameter("hogs.sigma", |c| &mut c.hogs.sigma, 0.05, 1.5),
    parameter("commands.mib", |c| &mut c.commands.mib, 0.1, 200.0),
    parameter("commands.minutes", |c| &mut c.commands.minutes, 0.5, 60.0),
    parameter(
        "background.per_hour away",
        |c| &mut c.background.per_hour[1],
        0.0,
        12.0,
    ),
    parameter("hogs.per_hour away", |c| &mut c.hogs.per_hour[1], 0.0, 4.0),
    parameter("hogs.hosts_share", |c| &mut c.hogs.hosts_share, 0.05, 1.0),
    parameter("hogs.mib", |c| &mut c.hogs.mib, 0.2, 800.0),
    parameter(
        "hogs.all_memory_share",
        |c| &mut c.hogs.all_memory_share,
        0.0,
        1.0,
    ),
    parameter("away.hosts_share", |c| &mut c.away.hosts_share, 0.0, 1.0),
    parameter(
        "away.after_minutes",
        |c| &mut c.away.after_minutes,
        0.0,
        300.0,
    ),
    parameter("away.mib", |c| &mut c.away.mib, 0.1, 800.0),
];

/// Parameters fitted for classes without rows of their own in the tables. Such classes affect only the rows
/// of all hosts, through their idle times and through the programs that use their memory.
pub(crate) const LARGE: [&str; 4] = [
    "background.per_hour away",
    "hogs.per_hour away",
    "hogs.mib",
    "away.mib",
];

/// Parameters to fit for the class called `name`.
pub(crate) fn of_class(name: &str) -> Vec<&'static Parameter> {
    let is_large = matches!(name, "320 MB" | "1024 MB");
    FITTED
        .iter()
        .filter(|p| !is_large || LARGE.contains(&p.name))
        .collect()
}
