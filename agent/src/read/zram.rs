//! Parser of `/sys/block/zram*/mm_stat` (`Documentation/admin-guide/blockdev/zram.rst`).

use super::{Tree, number, words};
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use rustix::io::Errno;

/// Columns of `samples` that come from these files.
const COLUMNS: [&str; 2] = ["zram_bytes", "zram_stored_bytes"];

/// Contents of the zram devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zram {
    /// Uncompressed size of the stored pages (`orig_data_size`).
    pub stored_bytes: u64,
    /// Memory used by the stored pages, including the allocator's own losses (`mem_used_total`).
    pub used_bytes: u64,
}

impl Zram {
    /// Parses the only line of `mm_stat`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = words(text);
        Some(Self {
            stored_bytes: number(words.next()?)?,
            used_bytes: number(words.nth(1)?)?,
        })
    }

    /// Sum over all devices, which may appear and disappear at any time; `None` without devices.
    pub fn sum(sys: &Tree, text: &mut Vec<u8>, missing_values: &mut MissingValues) -> Option<Self> {
        let mut sum = None;
        for name in devices(sys, missing_values) {
            let device = sys
                .read_record(&format!("block/{name}/mm_stat"), text)
                .map_err(|e| AbsentValue::from_errno("mm_stat", e))
                .and_then(|()| {
                    Self::parse(text).ok_or_else(|| AbsentValue::new(Reason::Malformed, "mm_stat"))
                });
            if let Some(device) = missing_values.keep_for(&COLUMNS, device) {
                let sum: &mut Self = sum.get_or_insert_default();
                sum.stored_bytes = sum.stored_bytes.saturating_add(device.stored_bytes);
                sum.used_bytes = sum.used_bytes.saturating_add(device.used_bytes);
            }
        }
        sum
    }
}

fn devices(sys: &Tree, missing_values: &mut MissingValues) -> Vec<String> {
    let entries = match sys.list("block") {
        Ok(entries) => entries.flatten(),
        Err(Errno::NOENT) => return Vec::new(), // a kernel without block devices
        Err(e) => {
            let none = Err::<(), _>(AbsentValue::from_errno("block", e));
            missing_values.keep_for(&COLUMNS, none);
            return Vec::new();
        }
    };
    let names = entries.filter_map(|entry| entry.file_name().to_str().map(str::to_owned).ok());
    names.filter(|name| name.starts_with("zram")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(files: &[(&str, &str)]) -> (Option<Zram>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("block/sda")).unwrap();
        for (device, mm_stat) in files {
            let folder = dir.path().join("block").join(device);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("mm_stat"), mm_stat).unwrap();
        }
        let mut missing_values = MissingValues::default();
        let sys = Tree::open(dir.path()).unwrap();
        let zram = Zram::sum(&sys, &mut Vec::new(), &mut missing_values);
        let told = missing_values
            .rows()
            .into_iter()
            .map(|r| r.item + " " + &r.reason);
        (zram, told.collect())
    }

    #[test]
    fn the_sum_of_the_devices_and_nothing_without_one() {
        const MM_STAT: &str = "  409600000 98304000 104857600        0 110100480     1200        0       77        0\n";
        let held = Zram {
            stored_bytes: 409_600_000,
            used_bytes: 104_857_600,
        };
        assert_eq!(sum(&[]), (None, vec![]));
        let two = [("zram0", MM_STAT), ("zram1", "0 0 0 0 0 0 0\n")];
        assert_eq!(sum(&two), (Some(held), vec![]));
        let torn = [("zram0", MM_STAT), ("zram1", "5 6\n")];
        let told = COLUMNS.map(|column| format!("{column} malformed"));
        assert_eq!(sum(&torn), (Some(held), told.to_vec()));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[ 0-9x\n-]{0,80}") {
            let _ = Zram::parse(text.as_bytes());
        }
    }
}
