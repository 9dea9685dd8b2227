//! The daemons and their names.

use clap::ValueEnum;

/// A daemon. `ship` is a service of the agent's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Daemon {
    /// Traces this host
    Agent,
    /// Sends the trace to a collector
    Ship,
    /// Gathers traces
    Collector,
    /// Places leases of memory
    Recruiter,
    /// Lends this host's memory
    Memoryd,
    /// Uses other hosts' memory
    Clerk,
    /// Shows sealed folders
    Commons,
}

impl Daemon {
    pub(super) const ALL: [Self; 7] = [
        Self::Agent,
        Self::Ship,
        Self::Collector,
        Self::Recruiter,
        Self::Memoryd,
        Self::Clerk,
        Self::Commons,
    ];

    /// Name of the daemon in the diagnosis.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Ship => "ship",
            Self::Collector => "collector",
            Self::Recruiter => "recruiter",
            Self::Memoryd => "memoryd",
            Self::Clerk => "clerk",
            Self::Commons => "commons",
        }
    }

    /// Name of the daemon's program, and of its package.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Agent | Self::Ship => "gleaner-agent",
            Self::Collector => "gleaner-collector",
            Self::Recruiter => "gleaner-recruiter",
            Self::Memoryd => "gleaner-memoryd",
            Self::Clerk => "gleaner-clerk",
            Self::Commons => "gleaner-commons",
        }
    }

    /// Subcommand that runs the program as a daemon.
    pub(super) const fn command(self) -> &'static str {
        match self {
            Self::Agent
            | Self::Collector
            | Self::Recruiter
            | Self::Memoryd
            | Self::Clerk
            | Self::Commons => "run",
            Self::Ship => "ship",
        }
    }

    /// Name of the daemon's unit, without `.service`.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Ship => "gleaner-ship",
            other => other.program(),
        }
    }

    /// Name of the daemon's configuration file.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::Agent | Self::Ship => "agent.toml",
            Self::Collector => "collector.toml",
            Self::Recruiter => "recruiter.toml",
            Self::Memoryd => "memoryd.toml",
            Self::Clerk => "clerk.toml",
            Self::Commons => "commons.toml",
        }
    }
}
