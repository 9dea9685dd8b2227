//! Swap of this host: the kinds of its devices.

use anyhow::{Context, bail};
use std::fs;

const PATH: &str = "/proc/swaps";
/// Names of block devices begin so, with the kind for people.
const KINDS: [(&str, &str); 3] = [
    ("zram", "zram"),
    ("nbd", "a network block device"),
    ("loop", "a loop device"),
];
const DISK: &str = "a disk";

/// Kinds of this host's swap devices, such as `zram and a disk`. With `is_zram`, each must be zram.
///
/// # Errors
/// There is no swap, or it is not on zram alone.
pub(super) fn kinds(is_zram: bool) -> anyhow::Result<String> {
    let text = fs::read_to_string(PATH).with_context(|| format!("cannot read {PATH}"))?;
    let kinds = kinds_in(&text);
    if is_zram && kinds.iter().any(|kind| *kind != "zram") {
        bail!(
            "this host swaps to {}, not to zram alone: turn other swap off with swapoff, or choose --by swap",
            kinds.join(" and ")
        );
    }
    if kinds.is_empty() {
        bail!(
            "this host has no swap: attach some with `gleaner-clerk attach --swap`, or make zram: \
             `zramctl --find --size 4GiB`, then mkswap and swapon on the device that it prints"
        );
    }
    Ok(kinds.join(" and "))
}

/// Kinds in the text of /proc/swaps (proc_swaps(5)), each once, in the order of the areas.
fn kinds_in(text: &str) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for line in text.lines().skip(1) {
        let path = line.split_whitespace().next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        let known = KINDS
            .into_iter()
            .find(|(start, _)| name.starts_with(*start));
        let kind = known.map_or(DISK, |(_, kind)| kind);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_swap_is_named_once() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/zram0                              partition\t1048572\t\t512\t\t100\n\
            /dev/zram1                              partition\t1048572\t\t0\t\t100\n\
            /dev/loop3                              partition\t262140\t\t0\t\t5\n\
            /dev/nbd0                               partition\t262140\t\t0\t\t5\n\
            /swapfile                               file\t\t262140\t\t0\t\t-2\n";
        let kinds = ["zram", "a loop device", "a network block device", "a disk"];
        assert_eq!(kinds_in(text), kinds);
        assert_eq!(kinds_in(text.lines().next().unwrap()), Vec::<&str>::new());
        assert_eq!(kinds_in(""), Vec::<&str>::new());
    }
}
