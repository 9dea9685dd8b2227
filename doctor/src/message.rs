//! All messages other than "ok": code, severity, meaning and remedy. docs/doctor.md has the same texts.

use gleaner_schemas::diagnosis::CheckState;
use std::fmt::Write;

macro_rules! messages {
    ($($name:ident, $code:literal, $state:ident, $meaning:literal, $remedy:literal;)+) => {
        /// A message of the doctor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Message {
            $($name,)+
        }

        impl Message {
            /// All messages, in the order of docs/doctor.md.
            const ALL: &[Self] = &[$(Self::$name,)+];

            /// Code by which people and programs identify the message.
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

            const fn remedy(self) -> &'static str {
                match self { $(Self::$name => $remedy,)+ }
            }
        }
    };
}

messages! {
    NotUsed, "not-used", NotUsed,
        "The daemon is not installed, or nothing on this host is set up for it.",
        "Nothing, unless you want to use it.";
    NoSystemd, "no-systemd", NotUsed,
        "systemd does not run this host (a container, or another init), so units were not checked.",
        "Make sure yourself that the daemons are started at boot.";

    ProgramMissing, "program-missing", Fault,
        "The daemon is set up here, but its program is neither on the PATH nor in /usr/bin, /usr/local/bin.",
        "Install its package.";
    ProgramVersion, "program-version", Warning,
        "The daemon's program and `gleaner` have different versions.",
        "Install both in the same version. Older agents may send to newer collectors; newer agents may not send to older collectors.";
    ProgramFails, "program-fails", Fault,
        "The program cannot even print its version: it was built for another machine, is damaged, or is not executable for this user.",
        "Install its package again.";

    UnitMissing, "unit-missing", Warning,
        "The daemon is set up here, but systemd has no unit for it: it will not be started at the next boot.",
        "Install its package, which contains the unit, or make sure yourself that the daemon is started at boot.";
    UnitFailed, "unit-failed", Fault,
        "The daemon ended with an error repeatedly, and systemd no longer restarts it.",
        "Fix the other messages of this daemon first. Then run the command: it starts the daemon again and prints the last lines of its log.";
    UnitRestarting, "unit-restarting", Fault,
        "The daemon ends with an error soon after each start, and systemd starts it again.",
        "As for unit-failed.";
    UnitStopped, "unit-stopped", Fault,
        "The unit exists, but the daemon does not run.",
        "Start the daemon, now and at each boot.";
    UnitDisabled, "unit-disabled", Warning,
        "The daemon runs, but will not be started at the next boot.",
        "Enable its unit.";
    UnitMasked, "unit-masked", Warning,
        "The unit is masked, so nothing can start it.",
        "Unmask it, unless it was masked on purpose.";
    SystemdSilent, "systemd-silent", Warning,
        "`systemctl show` failed, or did not answer in time.",
        "Check the state that `systemctl is-system-running` prints.";

    ConfigurationWrong, "configuration-wrong", Fault,
        "`check-config` rejects the configuration: the message names file, line and key. The daemon will not start with it.",
        "Correct that line. The commented file of the daemon (agent.toml, collector.toml, recruiter.toml, memoryd.toml, clerk.toml or commons.toml in /etc/gleaner or docs) lists every key with its default.";
    ConfigurationUnread, "configuration-unread", Warning,
        "This user may not read the configuration. The doctor assumes the defaults in its other checks of the daemon.",
        "Run the doctor as root.";
    ConfigurationUnchecked, "configuration-unchecked", Warning,
        "The program did not answer `check-config`, so the configuration was not checked. A program of another version may not have `check-config`.",
        "Install the daemon's program in the same version as `gleaner`.";

    NotRunning, "not-running", Fault,
        "The daemon is set up here, but does not run.",
        "Start the daemon.";

    TraceMissing, "trace-missing", Fault,
        "There is no trace: the agent has never run with this database, or the database was removed.",
        "Start the agent; it stores the first sample within its interval.";
    TraceUnseen, "trace-unseen", Warning,
        "This user may not read the trace, so it was not checked.",
        "Run the doctor as root.";
    TraceFails, "trace-fails", Fault,
        "`gleaner-agent status` cannot read the trace: the trace belongs to another host, has a newer version, or is damaged. The message gives the reason.",
        "Follow the message.";
    TraceEmpty, "trace-empty", Warning,
        "The agent runs, but has not stored its first sample yet.",
        "Wait for one interval, then run the doctor again.";
    TraceOld, "trace-old", Fault,
        "The newest sample is older than two intervals. If the agent runs, it cannot store samples, because its disk is full or read-only. If the agent does not run, it was stopped.",
        "Start the agent. If it runs, fix the messages about its disk and folder, and read its log.";
    TraceDamaged, "trace-damaged", Warning,
        "The agent set a damaged database aside and started a new one. The records of the damaged one are not in the trace.",
        "Export the readable records of the damaged database, then remove it. If it happens again, check the disk.";
    NotGranted, "not-granted", Warning,
        "The last sample lacks figures that the agent may not read. They are absent in the trace, never 0.",
        "Grant the agent the rights that the line names. The agent's systemd unit grants them, so the command removes local changes to the unit. Without systemd, run the agent as root.";

    SocketMissing, "socket-missing", Fault,
        "The daemon runs, but nothing listens at its socket: other daemons and `gleaner` cannot reach it.",
        "Restart the daemon. If its configuration names another socket, name the same one in the configuration of the programs that connect to it.";
    SocketDenied, "socket-denied", Warning,
        "This user may not use the daemon's socket. The other daemons are not affected.",
        "Join the group, then log in again; or use `sudo`.";

    FolderMissing, "folder-missing", Fault,
        "A folder that the daemon writes to does not exist, and the daemon's user may not create it.",
        "Create it, for the daemon's user.";
    FolderUnwritable, "folder-unwritable", Fault,
        "The daemon's user may not write to its folder: the folder belongs to another user, its mode forbids it, or its file system is mounted read-only.",
        "Change the folder's owner to the daemon's user, or mount the file system writable.";
    FolderUnseen, "folder-unseen", Warning,
        "This user may not look into the folder.",
        "Run the doctor as root.";
    TraceOpen, "trace-open", Warning,
        "Every user of this host may read the trace, which shows the programs that people ran and when they were away.",
        "Remove other users' permission to read the file.";

    PressureMissing, "pressure-missing", Warning,
        "The kernel does not report memory pressure (/proc/pressure/memory needs Linux 4.20, CONFIG_PSI and perhaps psi=1 at boot). Stalls are absent in the trace. The memory server notices that the host is short of memory only by MemAvailable, which it reads each second while memory is lent.",
        "Boot with psi=1.";
    CgroupMissing, "cgroup-missing", Warning,
        "No control groups of version 2 are mounted at /sys/fs/cgroup: the trace has no memory by service, and always_active_cgroups has no effect.",
        "Boot with systemd.unified_cgroup_hierarchy=1.";
    HugePagesOff, "huge-pages-off", Warning,
        "Transparent huge pages are off: returning lent memory to the owner is some thirty times slower (docs/lending.md).",
        "Enable them for programs that request them (madvise).";
    KernelOld, "kernel-old", Warning,
        "Before Linux 5.18, locked memory cannot be returned without unlocking it first (MADV_DONTNEED_LOCKED). Guests' pages are therefore not locked and may be swapped out.",
        "Use a newer kernel.";
    MemoryNotLocked, "memory-not-locked", Warning,
        "The memory server may not lock memory: under memory pressure its own pages are swapped out, and returning lent memory waits for the disk.",
        "Give it CAP_IPC_LOCK or LimitMEMLOCK=infinity, as its unit does. The command removes local changes to the unit, or gives the program the capabilities.";
    NoPriority, "no-priority", Warning,
        "The memory server may not run at a higher CPU priority (CAP_SYS_NICE): on a busy host it returns memory later.",
        "As for memory-not-locked.";
    FewDescriptors, "few-descriptors", Warning,
        "The server may not open as many files as its configuration allows connections. It rejects hosts beyond this limit, which retry later.",
        "Raise the limit of open files, or lower connections_limit.";

    ClockUnsynchronised, "clock-unsynchronised", Warning,
        "No time service synchronises the clock of this host (adjtimex(2): STA_UNSYNC). Traces of several hosts are compared by their clocks.",
        "Run systemd-timesyncd, chrony or ntpd.";
    ClockDiffers, "clock-differs", Fault,
        "The clocks of this host and of the server differ by more than a minute. Certificates may be rejected, and the times of different hosts' rows do not match.",
        "Set the clock that is wrong, then synchronise it.";

    AddressWrong, "address-wrong", Fault,
        "The address is malformed. It must be https://HOST:PORT, or http:// for this machine only.",
        "Correct it in the configuration, or enrol again.";
    NameUnresolved, "name-unresolved", Fault,
        "The name of the server cannot be resolved.",
        "Check the name, and check the resolver with the command. Without DNS, add an entry to /etc/hosts.";
    ConnectionRefused, "connection-refused", Fault,
        "The server's machine answers, but nothing listens at the port.",
        "Start the server there; the doctor on that machine shows what prevents it from running.";
    ConnectionTimeout, "connection-timeout", Fault,
        "The connection timed out: the machine is off, or a firewall drops the packets.",
        "Open the port in the firewall; check that the machine is up.";
    ConnectionFails, "connection-fails", Fault,
        "The network has no route to the server, or broke the connection.",
        "Check route, interface and cable with the command's output.";
    AuthorityOther, "authority-other", Fault,
        "The server's certificate was not signed by the authority that this host trusts: the address leads to another server, or the server has a new authority.",
        "Enrol this host with a token of the server's authority.";
    ServerExpired, "server-expired", Fault,
        "The server's own certificate has expired.",
        "Issue a new one on the server; the server loads it without a restart.";
    ServerName, "server-name", Fault,
        "The server's certificate does not contain the name in the address that this host uses.",
        "On the server, issue a certificate that contains all its names.";
    HostRefused, "host-refused", Fault,
        "The server rejects this host: the host's certificate has expired, was revoked, or belongs to another authority.",
        "Make a token on the server, and enrol this host again.";
    AnswerWrong, "answer-wrong", Fault,
        "The program that answers at that address is not the server, or has a fault.",
        "Check the address; run the doctor on the server.";

    CertificateMissing, "certificate-missing", Fault,
        "A certificate, key or authority that the configuration names does not exist.",
        "On a host, enrol; on a server, issue it.";
    CertificateUnread, "certificate-unread", Fault,
        "The daemon's user may not read its certificate or key.",
        "Change the file's owner to the daemon's user.";
    CertificateUnseen, "certificate-unseen", Warning,
        "This user may not read the certificate or its key, so they were not checked.",
        "Run the doctor as root.";
    CertificateWrong, "certificate-wrong", Fault,
        "The files do not contain a certificate, or key and certificate do not match.",
        "On a host, enrol again; on a server, issue it again.";
    CertificateExpired, "certificate-expired", Fault,
        "The certificate has expired: every TLS handshake rejects it.",
        "On a host, enrol again; on a server, issue it again.";
    CertificateEarly, "certificate-early", Fault,
        "The certificate is not valid yet by this host's clock.",
        "Set the clock.";
    CertificateEnds, "certificate-ends", Warning,
        "The certificate expires soon. `gleaner-agent ship` renews a host's certificate after two thirds of its validity, so that renewal must have failed. A server's certificate is issued by hand.",
        "On a host, check that it ships. On a server, issue the next certificate.";
    AuthorityExpired, "authority-expired", Fault,
        "The authority's certificate has expired, and all its certificates are invalid.",
        "Make a new authority, and enrol the hosts with it.";
    AuthorityEnds, "authority-ends", Warning,
        "The authority's certificate expires within half a year.",
        "Make the next authority in time (docs/trust.md, Rotation).";
    RevocationsOld, "revocations-old", Warning,
        "The certificate revocation list (CRL) is past its nextUpdate time. It is still used.",
        "Fetch the authority's newest list.";
    KeyOpen, "key-open", Fault,
        "Other users of this host may read a private key.",
        "Remove their permission. If untrusted users had access to this host, replace the key (docs/trust.md, When a key leaks).";

    DiskFull, "disk-full", Fault,
        "The disk is full. Until there is space, the agent stores nothing and a collector accepts nothing. A clerk does not start without space for its whole device.",
        "Free disk space; the command shows what uses it.";
    DiskLow, "disk-low", Warning,
        "The disk has less free space than the daemon may need.",
        "Free disk space in time, or lower the daemon's limit.";

    NotEnrolled, "not-enrolled", NotUsed,
        "No collector is configured, and this host is not enrolled: nothing leaves it.",
        "Nothing, unless this host should ship its trace. In that case make a token on the collector, and enrol.";
    Backlog, "backlog", Warning,
        "Records have waited longer than the batch interval explains. They are kept, and sent once the collector is reachable.",
        "Fix the other messages about ship. The command tries to send immediately, and prints the error.";
    NeverShipped, "never-shipped", Warning,
        "This host is configured to ship its trace, but the collector has never acknowledged a record of it.",
        "As for backlog.";

    StatusSilent, "status-silent", Fault,
        "The server does not answer at its local address.",
        "Start it, or read its log.";
    ServerProblem, "server-problem", Fault,
        "The collector reports a fault.",
        "Its status page has the details and the remedy.";
    ServerWarning, "server-warning", Warning,
        "The collector reports a warning.",
        "Its status page has the details and the remedy.";
    HostsSilent, "hosts-silent", Warning,
        "Some hosts have sent nothing for longer than their intervals explain: they are off, or cannot send.",
        "Find out which hosts, and run the doctor there.";
    NoHosts, "no-hosts", Warning,
        "The server runs, but no host has connected yet.",
        "For a collector, enrol hosts. For a recruiter, name it in the hosts' memoryd.toml.";

    AgentUnheard, "agent-unheard", Fault,
        "The memory server receives nothing from the agent, so it lends nothing.",
        "Start the agent; both configurations must name the same socket.";
    RecruiterUnlinked, "recruiter-unlinked", Fault,
        "The memory server is not connected to a recruiter of its configuration: nobody can lease from it through that recruiter.",
        "Fix the messages about that recruiter's address and certificates. The memory server retries within a minute.";
    NoRecruiter, "no-recruiter", Warning,
        "No recruiter is configured: nobody can lease this host's memory.",
        "Name one in memoryd.toml.";
    PagesUnserved, "pages-unserved", Fault,
        "The memory server offers leases to recruiters but serves no pages: no lease is placed on this host.",
        "Set `listen` in a drop-in of memoryd.toml, such as \"0.0.0.0:10809\", then restart the memory server. The restart ends all its leases.";

    NoSource, "no-source", Warning,
        "The clerk's configuration names neither a recruiter nor a memory server: no page of its device is in other hosts' memory.",
        "Name one in clerk.toml.";
    NoServer, "no-server", Warning,
        "No memory server has pages of the clerk's device now. Writes go to the clerk's disk, or fail if there is no copy on disk.",
        "Check with the recruiter which memory is available; the clerk requests leases again by itself.";
    PagesLost, "pages-lost", Warning,
        "Pages were lost with their only copy. Reads of them returned an error, never wrong bytes.",
        "Keep a copy on disk (`disk_folder`), or two at servers (`copies = 2`).";
    ClerkNotLocked, "clerk-not-locked", Warning,
        "The clerk may not lock its memory, or is configured not to. A host that swaps on the clerk's device hangs if it swaps out the clerk itself.",
        "Give the clerk LimitMEMLOCK=infinity or CAP_IPC_LOCK, as its unit does, and keep the default of `lock_memory`.";
    NoIoFlusher, "no-io-flusher", Warning,
        "The clerk may not mark itself as a process through which the kernel writes pages (PR_SET_IO_FLUSHER, CAP_SYS_RESOURCE). A host that swaps on its device and runs short of memory may hang.",
        "Give the clerk CAP_SYS_RESOURCE, as its unit does.";
    NoWayToAttach, "no-way-to-attach", Warning,
        "This host cannot attach the clerk's NBD export as a block device: it has neither the kernel's nbd module with nbd-client, nor FUSE with losetup. NBD clients such as qemu need neither.",
        "Install nbd-client if the kernel has the nbd module, else mount, which has losetup.";
    AttachedLost, "attached-lost", Fault,
        "The server of an attached device, or the device's own process, has ended. The device's pages are lost, or lie on another swap area.",
        "Detach it. Programs that need lost pages then end, as they would at their next access.";
    SwapUncopied, "swap-without-copy", Warning,
        "This host swaps on the clerk's device, which has no copy on disk: programs end when owners reclaim the memory that holds their pages.",
        "Detach the device, keep the default of `disk_folder`, and restart the clerk.";

    NoFuse, "no-fuse", Fault,
        "This host has no /dev/fuse: the kernel lacks FUSE, its module is not loaded, or a container hides the device. The commons cannot mount.",
        "Load the module, or give the container the device.";
    CatalogUnread, "catalog-unread", Fault,
        "A catalog in the configuration of the commons does not exist, or the daemon's user may not read it.",
        "Copy the catalog to that path, and let the daemon's user read it.";
    MountDead, "mount-dead", Fault,
        "The process that served a mount has ended, and the mount is still there. Every access fails with \"Transport endpoint is not connected\".",
        "Unmount the folder, then start the daemon again.";
    MountFails, "mount-fails", Fault,
        "The folder of a mount does not exist, or does not answer.",
        "Create the folder. If it does not answer, check the source of the mount and the daemon's log.";
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
            message.remedy()
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

    /// If this test fails, replace that part of docs/doctor.md by the output of `gleaner doctor --messages`.
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
