//! What is fitted: these parameters of each class, and nothing else.

use gleaner_traces::synth::Class;

/// A parameter and where it may lie.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) of: fn(&mut Class) -> &mut f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
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

/// Of the classes that have rows in Tables 2 and 4.
pub(crate) const FITTED: [Parameter; 23] = [
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
    parameter(
        "programs.per_hour",
        |c| &mut c.programs.per_hour,
        0.05,
        12.0,
    ),
    parameter("programs.mib", |c| &mut c.programs.mib, 0.05, 100.0),
    parameter("programs.sigma", |c| &mut c.programs.sigma, 0.05, 2.0),
    parameter("programs.hours", |c| &mut c.programs.hours, 0.02, 48.0),
    parameter("programs.lingers", |c| &mut c.programs.lingers, 0.0, 1.0),
    parameter(
        "programs.attention_minutes",
        |c| &mut c.programs.attention_minutes,
        1.5,
        600.0,
    ),
    parameter(
        "background.per_hour away",
        |c| &mut c.background.per_hour[1],
        0.0,
        12.0,
    ),
    parameter(
        "hogs.per_hour present",
        |c| &mut c.hogs.per_hour[0],
        0.0,
        4.0,
    ),
    parameter("hogs.per_hour away", |c| &mut c.hogs.per_hour[1], 0.0, 4.0),
    parameter("hogs.hosts_share", |c| &mut c.hogs.hosts_share, 0.05, 1.0),
    parameter("hogs.mib", |c| &mut c.hogs.mib, 0.2, 800.0),
    parameter("hogs.takes_all", |c| &mut c.hogs.takes_all, 0.0, 1.0),
    parameter("hogs.minutes", |c| &mut c.hogs.minutes, 0.5, 240.0),
    parameter("away.share", |c| &mut c.away.share, 0.0, 1.0),
    parameter("away.hosts_share", |c| &mut c.away.hosts_share, 0.0, 1.0),
    parameter(
        "away.least_minutes",
        |c| &mut c.away.least_minutes,
        5.0,
        900.0,
    ),
    parameter(
        "away.after_minutes",
        |c| &mut c.away.after_minutes,
        0.0,
        300.0,
    ),
    parameter("away.mib", |c| &mut c.away.mib, 0.1, 800.0),
];

/// Of those that have none but count in the rows of all hosts: when they are idle, and what takes their memory.
pub(crate) const LARGE: [&str; 4] = [
    "background.per_hour away",
    "hogs.per_hour away",
    "hogs.mib",
    "away.mib",
];

/// Those of a class, by name.
pub(crate) fn of_class(name: &str) -> Vec<&'static Parameter> {
    let is_large = matches!(name, "320 MB" | "1024 MB");
    FITTED
        .iter()
        .filter(|p| !is_large || LARGE.contains(&p.name))
        .collect()
}
