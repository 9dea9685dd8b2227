//! Kinds of process: names of real programs, sizes and habits about theirs.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of the system, from boot on.
    System,
    /// Of the owner's session, from boot on.
    Session,
    /// Opened and closed by the owner.
    Program,
    /// Computes for a while, and ends.
    Batch,
}

/// What is known of a kind of process: names of real programs, sizes about theirs.
pub(super) struct Template {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) anon_mib: f64,
    pub(super) file_mib: f64,
    pub(super) shmem_mib: f64,
    /// Share of intervals in which it uses CPU while the owner is there, and while not.
    pub(super) busy: (f64, f64),
    /// Processes of it at once, at most.
    pub(super) copies: i64,
}

const fn template(
    name: &'static str,
    kind: Kind,
    (anon_mib, file_mib, shmem_mib): (f64, f64, f64),
    busy: (f64, f64),
    copies: i64,
) -> Template {
    Template {
        name,
        kind,
        anon_mib,
        file_mib,
        shmem_mib,
        busy,
        copies,
    }
}

use Kind::{Batch, Program, Session, System};

pub(super) const TEMPLATES: [Template; 49] = [
    template("systemd", System, (5.0, 7.0, 0.0), (0.9, 0.6), 1),
    template("systemd-journal", System, (12.0, 14.0, 8.0), (0.9, 0.7), 1),
    template("systemd-udevd", System, (4.0, 4.0, 0.0), (0.2, 0.05), 1),
    template("systemd-logind", System, (2.0, 4.0, 0.0), (0.5, 0.3), 1),
    template("dbus-daemon", System, (2.5, 3.0, 0.0), (0.9, 0.4), 1),
    template("NetworkManager", System, (8.0, 12.0, 0.0), (0.7, 0.6), 1),
    template("wpa_supplicant", System, (4.0, 5.0, 0.0), (0.6, 0.5), 1),
    template("irqbalance", System, (0.8, 2.0, 0.0), (0.95, 0.95), 1),
    template("chronyd", System, (1.5, 2.0, 0.0), (0.6, 0.6), 1),
    template("thermald", System, (3.0, 5.0, 0.0), (0.9, 0.9), 1),
    template("upowerd", System, (3.0, 5.0, 0.0), (0.5, 0.4), 1),
    template("rsyslogd", System, (3.0, 3.0, 0.0), (0.6, 0.4), 1),
    template("polkitd", System, (5.0, 5.0, 0.0), (0.3, 0.02), 1),
    template("accounts-daemon", System, (3.0, 5.0, 0.0), (0.1, 0.02), 1),
    template("udisksd", System, (4.0, 8.0, 0.0), (0.4, 0.3), 1),
    template("avahi-daemon", System, (1.0, 2.5, 0.0), (0.5, 0.4), 1),
    template("cupsd", System, (3.0, 5.0, 0.0), (0.1, 0.05), 1),
    template("sshd", System, (2.0, 5.0, 0.0), (0.05, 0.02), 1),
    template("packagekitd", System, (60.0, 20.0, 0.0), (0.1, 0.05), 1),
    template("fwupd", System, (40.0, 20.0, 0.0), (0.05, 0.02), 1),
    template("cron", System, (1.0, 2.0, 0.0), (0.4, 0.4), 1),
    template("gnome-shell", Session, (260.0, 140.0, 24.0), (1.0, 0.7), 1),
    template("Xwayland", Session, (40.0, 50.0, 30.0), (0.9, 0.2), 1),
    template("pipewire", Session, (8.0, 6.0, 4.0), (0.6, 0.1), 1),
    template("wireplumber", Session, (9.0, 9.0, 0.0), (0.4, 0.1), 1),
    template("ibus-daemon", Session, (9.0, 7.0, 0.0), (0.7, 0.05), 1),
    template("gsd-power", Session, (10.0, 18.0, 0.0), (0.3, 0.1), 1),
    template("gvfsd", Session, (3.0, 6.0, 0.0), (0.2, 0.05), 1),
    template("evolution-alarm", Session, (16.0, 40.0, 0.0), (0.2, 0.1), 1),
    template("tracker-miner-f", Session, (18.0, 14.0, 0.0), (0.5, 0.1), 1),
    template(
        "gnome-terminal-",
        Session,
        (30.0, 35.0, 2.0),
        (0.5, 0.05),
        1,
    ),
    template("bash", Session, (3.0, 3.0, 0.0), (0.1, 0.0), 4),
    template("firefox", Program, (520.0, 190.0, 60.0), (1.0, 0.9), 1),
    template(
        "Isolated Web Co",
        Program,
        (150.0, 110.0, 12.0),
        (0.8, 0.4),
        9,
    ),
    template("thunderbird", Program, (300.0, 150.0, 20.0), (0.9, 0.7), 1),
    template("code", Program, (280.0, 120.0, 12.0), (0.9, 0.5), 5),
    template("slack", Program, (240.0, 130.0, 10.0), (0.9, 0.8), 2),
    template("soffice.bin", Program, (190.0, 140.0, 8.0), (0.6, 0.05), 1),
    template("evince", Program, (70.0, 60.0, 4.0), (0.3, 0.0), 3),
    template("nautilus", Program, (60.0, 60.0, 4.0), (0.3, 0.0), 2),
    template("vim", Program, (8.0, 7.0, 0.0), (0.4, 0.0), 4),
    template("gimp", Program, (380.0, 120.0, 30.0), (0.7, 0.02), 1),
    template("vlc", Program, (110.0, 80.0, 20.0), (0.9, 0.1), 1),
    template("python3", Batch, (700.0, 40.0, 0.0), (1.0, 1.0), 4),
    template("cc1plus", Batch, (320.0, 25.0, 0.0), (1.0, 1.0), 16),
    template("rustc", Batch, (650.0, 120.0, 0.0), (1.0, 1.0), 8),
    template("java", Batch, (1800.0, 60.0, 0.0), (1.0, 1.0), 2),
    template("R", Batch, (1100.0, 30.0, 0.0), (1.0, 1.0), 2),
    template("make", Batch, (6.0, 3.0, 0.0), (0.9, 0.9), 2),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_what_the_kernel_keeps() {
        assert!(TEMPLATES.iter().all(|t| t.name.len() <= 15));
    }
}
