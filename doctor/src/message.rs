//! Every message that is no "ok": its code, how bad it is, what it means and what to do. docs/doctor.md has them as they stand here.

use gleaner_schemas::diagnosis::CheckState;
use std::fmt::Write;

macro_rules! messages {
    ($($name:ident, $code:literal, $state:ident, $meaning:literal, $advice:literal;)+) => {
        /// A message of the doctor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Message {
            $($name,)+
        }

        impl Message {
            /// In the order of the page.
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// Code by which people and programs identify it.
            pub(super) const fn code(self) -> &'static str {
                match self { $(Self::$name => $code,)+ }
            }

            /// Severity of the message.
            pub(super) const fn state(self) -> CheckState {
                match self { $(Self::$name => CheckState::$state,)+ }
            }

            const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)+ }
            }

            const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)+ }
            }
        }
    };
}

messages! {
    NotUsed, "not-used", NotUsed,
        "The daemon is not installed, or nothing on this host has been set up for it.",
        "Nothing, unless you want it.";
    NoSystemd, "no-systemd", NotUsed,
        "systemd does not run this host (a container, another init), so that units were not looked at.",
        "See yourself that the daemons are started at boot.";

    ProgramMissing, "program-missing", Wrong,
        "The daemon is set up here, but its program is neither on the PATH nor in /usr/bin, /usr/local/bin.",
        "Install its package.";
    ProgramVersion, "program-version", Warning,
        "The daemon's program is of another version than `gleaner`.",
        "Install both of one version. Agents of older versions may send to newer collectors, not the other way round.";
    ProgramFails, "program-fails", Wrong,
        "The program does not even tell its version: built for another machine, damaged, or not executable for this user.",
        "Install its package again.";

    UnitMissing, "unit-missing", Warning,
        "The daemon is set up here, but systemd has no unit of it: it will not be there after the next boot.",
        "Install its package, which brings the unit, or see yourself that it is started at boot.";
    UnitFailed, "unit-failed", Wrong,
        "systemd has given the daemon up: it ended with an error, again and again.",
        "Read the last lines of its log, which the command prints after it has started the daemon anew; mend the other messages of this daemon first.";
    UnitRestarting, "unit-restarting", Wrong,
        "The daemon ends with an error soon after each start, and systemd starts it again.",
        "As for unit-failed.";
    UnitStopped, "unit-stopped", Wrong,
        "The unit is there, and the daemon does not run.",
        "Start it, now and at each boot.";
    UnitDisabled, "unit-disabled", Warning,
        "The daemon runs, and will not be started at the next boot.",
        "Enable it.";
    UnitMasked, "unit-masked", Warning,
        "Somebody has masked the unit, so that nothing can start it.",
        "Unmask it, unless that was meant.";
    SystemdSilent, "systemd-silent", Warning,
        "`systemctl show` failed, or did not answer in time.",
        "See what `systemctl is-system-running` says.";

    ConfigurationWrong, "configuration-wrong", Wrong,
        "`check-config` refuses the configuration: the message names file, line and key. The daemon will not start with it.",
        "Mend that line; every key with its default stands in the commented file of the documentation.";
    ConfigurationUnread, "configuration-unread", Warning,
        "This user may not read the configuration. What the doctor says of the daemon rests on the defaults.",
        "Run the doctor as root.";
    ConfigurationUnchecked, "configuration-unchecked", Warning,
        "The program has no `check-config`: it is of another version.",
        "Install the version of `gleaner`.";

    NotRunning, "not-running", Wrong,
        "The daemon is set up here and does not run.",
        "Start it.";

    TraceMissing, "trace-missing", Wrong,
        "There is no trace: the agent has never run with this database, or it was removed.",
        "Start the agent; the first sample is there within its interval.";
    TraceUnseen, "trace-unseen", Warning,
        "This user may not read the trace, so that nothing can be said of it.",
        "Run the doctor as root.";
    TraceFails, "trace-fails", Wrong,
        "`gleaner-agent status` cannot read the trace: it is another host's, of a newer version, or damaged. The message says which.",
        "What the message says.";
    TraceEmpty, "trace-empty", Warning,
        "The agent runs and has not stored its first sample yet.",
        "Wait for one interval; then look again.";
    TraceOld, "trace-old", Wrong,
        "The newest sample is older than two intervals. If the agent runs, it cannot store: a full or read-only disk. If it does not, it was stopped.",
        "Start the agent; if it runs, mend what is said of its disk and folder, and read its log.";
    TraceDamaged, "trace-damaged", Warning,
        "A damaged database was set aside, and a new one begun. Its records are not in the trace.",
        "Export what can be read of it, then remove it. If it happens again, check the disk.";
    NotGranted, "not-granted", Warning,
        "The last sample lacks figures that the agent may not read. They are absent in the trace, never 0.",
        "Grant what the line names. Under systemd the unit has it: the command takes back local changes to the unit. By hand: run the agent as root.";

    SocketMissing, "socket-missing", Wrong,
        "The daemon runs, and nobody listens at its socket: other daemons and `gleaner` cannot hear it.",
        "Start it anew. If its configuration names another place, so must the configuration of those who ask.";
    SocketDenied, "socket-denied", Warning,
        "This user may not use the daemon's socket. The daemons themselves are not kept from it by this.",
        "Join the group, then log in again; or use `sudo`.";

    FolderMissing, "folder-missing", Wrong,
        "A folder that the daemon writes to does not exist, and its user may not make it.",
        "Make it, for the daemon's user.";
    FolderUnwritable, "folder-unwritable", Wrong,
        "The daemon's user may not write to its folder: it belongs to somebody else, is closed to it, or lies on a file system that is mounted read-only.",
        "Give it to the daemon's user, or mount it writable.";
    FolderUnseen, "folder-unseen", Warning,
        "This user may not look into the folder.",
        "Run the doctor as root.";
    TraceOpen, "trace-open", Warning,
        "Every user of this host may read the trace, which tells what people ran and when they were away.",
        "Close the file to others.";

    PressureMissing, "pressure-missing", Warning,
        "The kernel does not tell of memory pressure (/proc/pressure/memory; Linux 4.20, CONFIG_PSI, booted with psi=1). Stalls are absent in the trace, and the memory server does not see that a host is short of memory before the agent's next sample.",
        "Boot with psi=1.";
    CgroupMissing, "cgroup-missing", Warning,
        "No control groups of version 2 at /sys/fs/cgroup: memory is not told by service, and always_active_cgroups has no effect.",
        "Boot with systemd.unified_cgroup_hierarchy=1.";
    HugePagesOff, "huge-pages-off", Warning,
        "Transparent huge pages are off: memory that was lent is given back some thirty times more slowly (docs/lending.md).",
        "Allow them to programs that ask.";
    KernelOld, "kernel-old", Warning,
        "Before Linux 5.18 locked memory cannot be given back without unlocking it first (MADV_DONTNEED_LOCKED), so that guests' pages are not locked and may be swapped out.",
        "Use a newer kernel.";
    MemoryNotLocked, "memory-not-locked", Warning,
        "The memory server may not lock memory: under pressure its own pages are swapped out, and giving back waits for the disk.",
        "Give it CAP_IPC_LOCK or LimitMEMLOCK=infinity, as its unit does: the command takes back local changes to the unit, or gives the program the capabilities.";
    NoPriority, "no-priority", Warning,
        "The memory server may not go before others on the CPU (CAP_SYS_NICE): on a busy host memory comes back later.",
        "As for memory-not-locked.";
    FewDescriptors, "few-descriptors", Warning,
        "The server may have fewer files open than its configuration lets connections in: hosts beyond that are told to come again.",
        "Raise the limit, or lower connections_limit.";

    ClockUnsynchronised, "clock-unsynchronised", Warning,
        "Nothing keeps the clock of this host right (adjtimex(2): STA_UNSYNC). Traces of several hosts are put side by side by their clocks.",
        "Let systemd-timesyncd, chrony or ntpd keep it.";
    ClockDiffers, "clock-differs", Wrong,
        "The clocks of this host and of the server differ by more than a minute. Certificates may be refused, and the rows of hosts do not fit together.",
        "Set the clock that is wrong; then let it be kept right.";

    AddressWrong, "address-wrong", Wrong,
        "The address is none: it is written https://HOST:PORT, or http:// on this machine alone.",
        "Mend it in the configuration, or enrol anew.";
    NameUnresolved, "name-unresolved", Wrong,
        "The name of the server cannot be resolved.",
        "Check the name, and the resolver by the command; an entry in /etc/hosts helps where there is no DNS.";
    ConnectionRefused, "connection-refused", Wrong,
        "The server's machine is there, and nobody listens at the port.",
        "Start the server there; the doctor on that machine says what keeps it down.";
    ConnectionTimeout, "connection-timeout", Wrong,
        "No answer came in time: the machine is off, or a firewall drops the packets.",
        "Let the port through; see that the machine is up.";
    ConnectionFails, "connection-fails", Wrong,
        "The network has no way to the server, or broke the connection.",
        "See the command's answer: route, interface, cable.";
    AuthorityOther, "authority-other", Wrong,
        "The server's certificate was not signed by the authority that this host trusts: the address leads elsewhere, or the server was given a new authority.",
        "Enrol this host with a token of the server's authority.";
    ServerExpired, "server-expired", Wrong,
        "The server's own certificate has ended.",
        "Issue a new one on the server; it takes it up without a restart.";
    ServerName, "server-name", Wrong,
        "The server's certificate does not have the name by which this host calls it.",
        "Issue one that has all its names, on the server.";
    HostRefused, "host-refused", Wrong,
        "The server refuses this host: its certificate has ended, was revoked, or is of another authority.",
        "Make a token on the server, and enrol this host anew.";
    AnswerWrong, "answer-wrong", Wrong,
        "Whoever answers at that address is not the server, or is in trouble.",
        "Check the address; run the doctor on the server.";

    CertificateMissing, "certificate-missing", Wrong,
        "A certificate, key or authority that the configuration names is not there.",
        "Enrol (a host) or issue it (a server).";
    CertificateUnread, "certificate-unread", Wrong,
        "The daemon's user may not read its certificate or key.",
        "Give it to the daemon's user.";
    CertificateUnseen, "certificate-unseen", Warning,
        "This user may not read the certificate or its key, so that nothing can be said of it.",
        "Run the doctor as root.";
    CertificateWrong, "certificate-wrong", Wrong,
        "The files are no certificate, or key and certificate do not belong together.",
        "Enrol (a host) or issue it (a server) anew.";
    CertificateExpired, "certificate-expired", Wrong,
        "The certificate has ended: it is refused in every handshake.",
        "Enrol (a host) or issue it (a server) anew.";
    CertificateEarly, "certificate-early", Wrong,
        "The certificate is not valid yet by this host's clock.",
        "Set the clock.";
    CertificateEnds, "certificate-ends", Warning,
        "The certificate ends soon. A host's is renewed by `gleaner-agent ship` when two thirds of its life are gone, so that renewal must be failing; a server's is issued by hand.",
        "A host: see that it ships. A server: issue the next.";
    AuthorityExpired, "authority-expired", Wrong,
        "The authority has ended, and all certificates with it.",
        "Make a new authority, and enrol the hosts with it.";
    AuthorityEnds, "authority-ends", Warning,
        "The authority ends within half a year.",
        "Make the next beside it in time (docs/trust.md, Rotation).";
    RevocationsOld, "revocations-old", Warning,
        "The list of revoked certificates says of itself that a newer one should be there by now. It still counts.",
        "Fetch the authority's newest list.";
    KeyOpen, "key-open", Wrong,
        "Other users of this host may read a private key.",
        "Close it; if strangers were on this host, replace it (docs/trust.md, When a key leaks).";

    DiskFull, "disk-full", Wrong,
        "No room is left on the disk: the agent stores nothing, and a collector takes nothing in, until there is; a clerk does not start without the room of its device.",
        "Make room; the command shows what takes it.";
    DiskLow, "disk-low", Warning,
        "The disk has less room than the daemon may come to need.",
        "Make room in time, or lower the limit.";

    NotEnrolled, "not-enrolled", NotUsed,
        "No collector is named, and this host is not enrolled: nothing leaves it.",
        "Nothing, unless it shall send: make a token on the collector, and enrol.";
    Backlog, "backlog", Warning,
        "Records wait for longer than shipping explains. They are kept, and sent once the collector can be reached.",
        "Mend what else is said of ship; the command tries at once, and says what is in the way.";
    NeverShipped, "never-shipped", Warning,
        "This host is to ship, and the collector has never acknowledged a record of this trace.",
        "As for backlog.";

    StatusSilent, "status-silent", Wrong,
        "The server does not answer at its local address.",
        "Start it, or look into its log.";
    ServerProblem, "server-problem", Wrong,
        "The collector itself tells of a fault.",
        "Its status page says more, and what to do.";
    ServerWarning, "server-warning", Warning,
        "The collector itself tells of something to look at.",
        "Its status page says more, and what to do.";
    HostsSilent, "hosts-silent", Warning,
        "Hosts have not been heard of for longer than their intervals explain: switched off, or unable to send.",
        "See which; run the doctor there.";
    NoHosts, "no-hosts", Warning,
        "The server runs, and no host has come yet.",
        "Enrol hosts; for a recruiter name it in their memoryd.toml.";

    AgentUnheard, "agent-unheard", Wrong,
        "The memory server does not hear the agent: nothing is lent.",
        "Start the agent; both must name the same socket.";
    RecruiterUnlinked, "recruiter-unlinked", Wrong,
        "The memory server has no link with a recruiter of its configuration: no one can lease from it there.",
        "Mend what is said of that recruiter's address and certificates; a link is tried again within a minute.";
    NoRecruiter, "no-recruiter", Warning,
        "No recruiter is configured: nobody can lease this host's memory.",
        "Name one in memoryd.toml.";
    PagesUnserved, "pages-unserved", Wrong,
        "The memory server offers leases to recruiters and serves no pages: no lease is placed on this host.",
        "Set `listen` in a drop-in of memoryd.toml, such as \"0.0.0.0:10809\", then restart the memory server; that gives back what is lent.";

    NoSource, "no-source", Warning,
        "The clerk has neither a recruiter nor a server in its configuration: nothing of its device is in other hosts' memory.",
        "Name one in clerk.toml.";
    NoServer, "no-server", Warning,
        "No memory server has pages of the clerk's device now: what is written goes to its disk, or fails where there is no copy on disk.",
        "See what the recruiter has to lend; the clerk asks again by itself.";
    PagesLost, "pages-lost", Warning,
        "Pages were lost with the only copy that there was; who read them got an error, never wrong bytes.",
        "Keep a copy on disk (`disk`), or two at servers (`copies = 2`).";
    ClerkNotLocked, "clerk-not-locked", Warning,
        "The clerk may not lock its memory, or is told not to: a host that swaps on its device, and swaps the clerk itself out, stands still.",
        "Give it LimitMEMLOCK=infinity or CAP_IPC_LOCK, as its unit does, and leave `lock` as it is.";
    NoIoFlusher, "no-io-flusher", Warning,
        "The clerk may not tell the kernel that pages are written through it (PR_SET_IO_FLUSHER, CAP_SYS_RESOURCE): short of memory, a host that swaps on its device may wait for it for ever.",
        "Give it CAP_SYS_RESOURCE, as its unit does.";
    NoWayToAttach, "no-way-to-attach", Warning,
        "Nothing here makes a block device of the clerk's: neither the kernel's nbd module with nbd-client, nor FUSE with nbdfuse. NBD clients such as qemu need neither.",
        "Install nbd-client where the kernel has the module, nbdfuse elsewhere.";
    AttachedLost, "attached-lost", Wrong,
        "Something is attached whose server, or whose own process, is gone: its pages are lost, or lie on another swap area.",
        "Detach it; programs that need lost pages end then, as they would at their next access.";
    SwapUncopied, "swap-without-copy", Warning,
        "This host swaps on the clerk's device, which has no copy on disk: programs end when the hosts that hold their pages are taken back.",
        "Detach, let `disk` have its default, and start the clerk anew.";
}

/// Returns the part of docs/doctor.md about messages, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut text = String::new();
    for message in Message::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "### {}\n\n*{}.* {}\n\nWhat to do: {}\n",
            message.code(),
            message.state().word(),
            message.meaning(),
            message.advice()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_each_of_one_message() {
        let mut codes: Vec<_> = Message::ALL.iter().map(|m| m.code()).collect();
        codes.sort_unstable();
        let count = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), count);
        assert!(Message::ALL.iter().all(|m| m.state() != CheckState::Ok));
    }

    /// `gleaner doctor --messages` prints what goes there.
    #[test]
    fn the_page_has_every_message_as_it_stands_here() {
        let page = include_str!("../../docs/doctor.md");
        let (_, there) = page.split_once("## Messages\n\n").unwrap();
        let (there, here) = (there.trim_end(), reference());
        assert_eq!(
            there,
            here.trim_end(),
            "put what `gleaner doctor --messages` prints into docs/doctor.md"
        );
    }
}
