//! Kernel features that Gleaner uses, and the effect of each missing one.

use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::Place;
use gleaner_schemas::units::{Bytes, kib_to_bytes};
use std::fs;
use std::path::Path;

/// First kernel version with MADV_DONTNEED_LOCKED (madvise(2)), which returns locked memory to the system.
const GIVES_LOCKED_BACK: (u32, u32) = (5, 18);

/// Facts about the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Release, such as `6.1.0-28-amd64`.
    release: String,
    has_pressure: bool,
    has_cgroup2: bool,
    /// Text of `transparent_hugepage/enabled`, if the file exists.
    huge_pages: Option<String>,
    /// Size of swap; `None` if unknown.
    swap_bytes: Option<u64>,
    /// True if this host's settings suggest that GRUB boots the host.
    has_grub: bool,
}

/// Reads the facts from /proc and /sys.
pub(crate) fn read(place: &Place) -> Kernel {
    let proc_text = |name: &str| fs::read_to_string(place.proc_root.join(name));
    let huge_pages = place
        .sys_root
        .join("kernel/mm/transparent_hugepage/enabled");
    Kernel {
        release: proc_text("sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        has_pressure: proc_text("pressure/memory").is_ok(),
        has_cgroup2: place.sys_root.join("fs/cgroup/cgroup.controllers").exists(),
        huge_pages: fs::read_to_string(huge_pages)
            .ok()
            .map(|text| text.trim().to_owned()),
        swap_bytes: proc_text("swaps").ok().map(|text| swap_bytes(&text)),
        has_grub: Path::new("/etc/default/grub").exists(),
    }
}

/// Sum of the sizes of all swap areas in the text of /proc/swaps (proc_swaps(5)). The third column has each
/// size in KiB.
fn swap_bytes(text: &str) -> u64 {
    let size = |line: &str| {
        line.split_whitespace()
            .nth(2)?
            .parse()
            .ok()
            .map(kib_to_bytes)
    };
    text.lines()
        .skip(1)
        .filter_map(size)
        .fold(0, u64::saturating_add)
}

/// Judges whether the kernel has the features that these daemons use.
pub(crate) fn judge(kernel: &Kernel, daemons: &[Daemon]) -> Vec<Finding> {
    let (traces, lends) = (
        daemons.contains(&Daemon::Agent),
        daemons.contains(&Daemon::Memoryd),
    );
    let mut findings = Vec::new();
    let mut has = Vec::new();
    let mut note =
        |matters: bool, is_there: bool, name: &str, missing: Finding| match (matters, is_there) {
            (true, true) => has.push(name.to_owned()),
            (true, false) => findings.push(missing),
            (false, _) => {}
        };
    let at_boot = |message, subject, found: &str, option: &str| {
        let finding = Finding::of(message, subject, found);
        let file = "/etc/default/grub";
        match kernel.has_grub {
            true => finding.remedy(format!(
                "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{option} /' {file} && sudo update-grub # then reboot"
            )),
            false => finding,
        }
    };
    let pressure = at_boot(
        Message::PressureMissing,
        "pressure",
        "no /proc/pressure/memory: stalls are not traced, and a host that runs short has lent memory back a sample later",
        "psi=1",
    );
    note(
        traces || lends,
        kernel.has_pressure,
        "pressure stall information",
        pressure,
    );
    let cgroup = at_boot(
        Message::CgroupMissing,
        "control groups",
        "no control groups v2 at /sys/fs/cgroup: memory cannot be attributed to services",
        "systemd.unified_cgroup_hierarchy=1",
    );
    note(traces, kernel.has_cgroup2, "control groups v2", cgroup);
    let (name, missing) = huge_pages(kernel);
    note(
        lends,
        missing.is_none(),
        name,
        missing.unwrap_or_else(|| Finding::ok("huge pages", "")),
    );
    let is_new = version(&kernel.release).is_none_or(|version| version >= GIVES_LOCKED_BACK);
    note(
        lends,
        is_new,
        "locked memory can be given back",
        Finding::of(
            Message::KernelOld,
            "kernel",
            format!(
                "Linux {} cannot free locked memory (5.18 can): guests' pages stay unlocked, and may be swapped",
                kernel.release
            ),
        ),
    );
    if traces || lends {
        has.push(match kernel.swap_bytes {
            Some(0) => "no swap, so that idle processes' memory cannot be lent".to_owned(),
            Some(bytes) => format!("{} of swap", Bytes::from(bytes)),
            None => "swap not known".to_owned(),
        });
    }
    let has = has.join(", ");
    let text = format!("Linux {}: {has}", kernel.release);
    findings.insert(0, Finding::ok("kernel", text.trim_end_matches(": ")));
    findings
}

fn huge_pages(kernel: &Kernel) -> (&'static str, Option<Finding>) {
    let slow = "memory is returned some thirty times more slowly";
    match kernel.huge_pages.as_deref() {
        Some(text) if !text.contains("[never]") => ("huge pages", None),
        Some(_) => {
            let finding = Finding::of(
                Message::HugePagesOff,
                "huge pages",
                format!("transparent huge pages are off: {slow}"),
            );
            let command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
            ("", Some(finding.remedy(command)))
        }
        None => {
            let found = format!("this kernel has no transparent huge pages: {slow}");
            (
                "",
                Some(Finding::of(Message::HugePagesOff, "huge pages", found)),
            )
        }
    }
}

/// First two numbers of a kernel release: 6 and 1 in `6.1.0-28-amd64`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Kernel {
        Kernel {
            release: "6.1.0-28-amd64".to_owned(),
            has_pressure: true,
            has_cgroup2: true,
            huge_pages: Some("always [madvise] never".to_owned()),
            swap_bytes: Some(1 << 30),
            has_grub: true,
        }
    }

    #[test]
    fn each_absence_is_told_to_those_it_matters_to() {
        use Message::{CgroupMissing, HugePagesOff, KernelOld, PressureMissing};
        let (agent, memoryd, collector) = ([Daemon::Agent], [Daemon::Memoryd], [Daemon::Collector]);
        let without = |change: fn(&mut Kernel)| {
            let mut kernel = good();
            change(&mut kernel);
            kernel
        };
        for (kernel, daemons, messages) in [
            (good(), &agent, vec![]),
            (good(), &memoryd, vec![]),
            (
                without(|k| k.has_pressure = false),
                &agent,
                vec![PressureMissing],
            ),
            (without(|k| k.has_pressure = false), &collector, vec![]),
            (
                without(|k| k.has_cgroup2 = false),
                &agent,
                vec![CgroupMissing],
            ),
            (without(|k| k.has_cgroup2 = false), &memoryd, vec![]),
            (
                without(|k| k.huge_pages = Some("always madvise [never]".to_owned())),
                &memoryd,
                vec![HugePagesOff],
            ),
            (
                without(|k| k.huge_pages = None),
                &memoryd,
                vec![HugePagesOff],
            ),
            (without(|k| k.huge_pages = None), &agent, vec![]),
            (
                without(|k| k.release = "5.17.9".to_owned()),
                &memoryd,
                vec![KernelOld],
            ),
            (
                without(|k| k.release = "5.18.0".to_owned()),
                &memoryd,
                vec![],
            ),
            (
                Kernel::default(),
                &memoryd,
                vec![PressureMissing, HugePagesOff],
            ),
        ] {
            let findings = judge(&kernel, daemons);
            let found: Vec<_> = findings.iter().filter_map(|f| f.message).collect();
            assert_eq!(found, messages, "{kernel:?} {daemons:?}");
        }
        let said = judge(&without(|k| k.swap_bytes = Some(0)), &agent)
            .remove(0)
            .text;
        assert!(said.contains("no swap"), "{said}");
    }

    #[test]
    fn swap_is_summed() {
        assert_eq!(
            swap_bytes(
                "Filename Type Size Used Priority\n/dev/sda2 partition 1024 0 -2\n/f file 1 0 -3\ntorn\n"
            ),
            1025 << 10
        );
        assert_eq!(swap_bytes(""), 0);
    }
}
