//! Processes that count as active: their memory is in use.

/// Names of processes that are always active (Acharya & Setia, section 2: "the display server and periodic
/// daemons"), as the kernel stores names: at most 15 bytes.
pub const ALWAYS_ACTIVE: [&str; 22] = [
    "Xorg",
    "Xwayland",
    "X",
    "Xvfb",
    "gnome-shell",
    "kwin_wayland",
    "kwin_x11",
    "plasmashell",
    "mutter",
    "sway",
    "weston",
    "Hyprland",
    "labwc",
    "cinnamon",
    "xfwm4",
    "cron",
    "crond",
    "atd",
    "anacron",
    "systemd",
    "systemd-logind",
    "dbus-daemon",
];

/// Prefix of the names of Gleaner's daemons.
const OWN_DAEMONS: &str = "gleaner-";

/// Name of Gleaner's daemon that holds guests' pages, as the kernel stores it (15 bytes).
pub const MEMORY_SERVER: &str = "gleaner-memoryd";

/// Returns true if a process' anonymous memory is lent to others: Gleaner's memory server, or one of
/// `others`, which are other memory servers that use the quota. Such a process is never active, whatever it
/// does.
#[must_use]
pub fn holds_guests(name: &str, others: &[String]) -> bool {
    name == MEMORY_SERVER || others.iter().any(|other| other == name)
}

/// Reason why a process is or is not active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The process used CPU since the sample before.
    UsedCpu,
    /// Processes of that name always count as active.
    AlwaysActive,
    /// The process used no CPU.
    Idle,
    /// The process is a daemon of Gleaner: it never counts as the owner's.
    Own,
}

impl Activity {
    /// Returns true if the process' memory is in use.
    #[must_use]
    pub const fn is_active(self) -> bool {
        matches!(self, Self::UsedCpu | Self::AlwaysActive)
    }
}

/// Classifies one process. `cpu_ms` is the CPU time since the sample before; `None` for a new process, for
/// which `lifetime_cpu_ms` counts.
#[must_use]
pub fn classify(name: &str, cpu_ms: Option<u64>, lifetime_cpu_ms: u64) -> Activity {
    if name.starts_with(OWN_DAEMONS) {
        Activity::Own
    } else if cpu_ms.unwrap_or(lifetime_cpu_ms) > 0 {
        Activity::UsedCpu
    } else if ALWAYS_ACTIVE.contains(&name) {
        Activity::AlwaysActive
    } else {
        Activity::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_use_display_servers_and_our_own() {
        assert_eq!(classify("cc1", Some(10), 500), Activity::UsedCpu);
        assert_eq!(classify("cc1", Some(0), 500), Activity::Idle);
        assert_eq!(classify("cc1", None, 500), Activity::UsedCpu);
        assert_eq!(classify("cc1", None, 0), Activity::Idle);
        assert_eq!(classify("Xorg", Some(0), 500), Activity::AlwaysActive);
        assert_eq!(classify("gleaner-agent", Some(10), 500), Activity::Own);
        assert_eq!(classify("gleaner", Some(10), 500), Activity::UsedCpu);
        assert!(Activity::AlwaysActive.is_active() && !Activity::Own.is_active());
    }

    #[test]
    fn memory_servers_hold_guests() {
        let others = ["memcached".to_owned()];
        assert!(holds_guests("gleaner-memoryd", &[]) && holds_guests("memcached", &others));
        assert!(!holds_guests("memcached", &[]) && !holds_guests("gleaner-agent", &others));
    }

    #[test]
    fn names_fit_what_the_kernel_keeps() {
        assert!(ALWAYS_ACTIVE.iter().all(|n| n.len() <= 15));
        assert!(MEMORY_SERVER.len() <= 15 && MEMORY_SERVER.starts_with(OWN_DAEMONS));
    }
}
