//! Where a foreign trace comes from, and what it fills.

/// A source of foreign traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// As in `hosts.source`; ids are made from it.
    pub name: &'static str,
    /// What host names begin with, before the machine's own name.
    pub host_prefix: &'static str,
    /// The columns that it fills.
    pub fills: &'static [Filled],
}

/// A column that a source fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Table.
    pub table: &'static str,
    /// Column; its unit is in its name.
    pub column: &'static str,
    /// What of the source it is, with the source's unit.
    pub from: &'static str,
}

impl Source {
    /// The id of its machine `machine`: 32 hex digits.
    #[must_use]
    pub fn host_id(&self, machine: &str) -> String {
        self.id("Gleaner import: host id", machine)
    }

    /// The id of the database that the records of its machine `machine` are said to come from.
    #[must_use]
    pub fn database_id(&self, machine: &str) -> String {
        self.id("Gleaner import: database id", machine)
    }

    fn id(&self, context: &str, machine: &str) -> String {
        let name = format!("{}\0{machine}", self.name); // no name holds a NUL
        let key = blake3::derive_key(context, name.as_bytes());
        blake3::Hash::from_bytes(key).to_hex()[..32].to_owned()
    }

    /// Its name as a host.
    #[must_use]
    pub fn host_name(&self, machine: &str) -> String {
        format!("{}-{machine}", self.host_prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_never_change_and_differ_by_source_machine_and_kind() {
        let [one, other] = ["one", "other"].map(|name| Source {
            name,
            host_prefix: "x",
            fills: &[],
        });
        assert_eq!(one.host_id("20"), "c165a77eccdee9b2e4c7e4639c3baee4");
        assert_eq!(one.database_id("20"), "2f0bc841998758701b695c9f3ee30c6f");
        let ids = [
            one.host_id("20"),
            one.host_id("21"),
            other.host_id("20"),
            one.database_id("20"),
        ];
        for (i, id) in ids.iter().enumerate() {
            assert!(gleaner_dataset::batch::is_id(id));
            assert!(!ids[..i].contains(id));
        }
        assert_eq!(one.host_name("20"), "x-20");
    }
}
