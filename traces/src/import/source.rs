//! Origin of another program's trace, and the columns that it fills.

/// A source of imported traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Name as in `hosts.source`; ids are derived from it.
    pub name: &'a str,
    /// Prefix put before a machine's own name to form the host's name; if empty, the host has the machine's name.
    pub host_prefix: &'a str,
    /// Meaning of available memory: a sentence for people.
    pub available_meaning: &'a str,
    /// True if the importer invents sizes, since the source has only shares.
    pub has_invented_sizes: bool,
    /// All columns that the source fills.
    pub fills: &'a [ColumnOrigin<'a>],
    /// Columns of `samples` for which the source's readings have values, in the order of the values; those of
    /// [`super::Reading`] come in addition.
    pub columns: &'a [&'static str],
}

/// A column that a source fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnOrigin<'a> {
    /// Name of the table.
    pub table: &'static str,
    /// Name of the column, which contains its unit.
    pub column: &'static str,
    /// Field of the source, with the source's unit.
    pub origin: &'a str,
}

impl<'a> ColumnOrigin<'a> {
    /// The column `interval_ms`; every source fills it with the time between samples.
    pub const INTERVAL_MS: ColumnOrigin<'static> = ColumnOrigin::new(
        "samples",
        "interval_ms",
        "time since the previous sample; absent if longer than two nominal intervals of the machine",
    );
    /// The column `is_complete_state`; every source sets it to false, because files are never known.
    pub const FILES_WHOLE: ColumnOrigin<'static> = ColumnOrigin::new(
        "samples",
        "is_complete_state",
        "false: the source says nothing about files",
    );
    /// The column `hosts.source`; every source fills it with its name.
    pub const SOURCE: ColumnOrigin<'static> =
        ColumnOrigin::new("hosts", "source", "the trace's name");

    /// States that the source's field `origin` fills `column` of `table`.
    #[must_use]
    pub const fn new(table: &'static str, column: &'static str, origin: &'a str) -> Self {
        Self {
            table,
            column,
            origin,
        }
    }

    /// Unit of the column.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        let table = gleaner_schemas::rows::table(self.table)?;
        table.columns.iter().find(|c| c.name == self.column)?.unit()
    }
}

impl Source<'_> {
    /// Id of the source's machine `machine`: 32 hex digits.
    #[must_use]
    pub fn host_id(&self, machine: &str) -> String {
        self.id("Gleaner import: host id", machine)
    }

    /// Database id for the records of the source's machine `machine`.
    #[must_use]
    pub fn database_id(&self, machine: &str) -> String {
        self.id("Gleaner import: database id", machine)
    }

    /// Id of the boot at `booted_ms` of the source's machine `machine`.
    #[must_use]
    pub(super) fn boot_id(&self, machine: &str, booted_ms: i64) -> String {
        self.id(
            "Gleaner import: boot id",
            &format!("{machine}\0{booted_ms}"),
        )
    }

    fn id(&self, context: &str, machine: &str) -> String {
        let name = format!("{}\0{machine}", self.name); // no name holds a NUL
        let key = blake3::derive_key(context, name.as_bytes());
        blake3::Hash::from_bytes(key).to_hex()[..32].to_owned()
    }

    /// Host name of a machine.
    #[must_use]
    pub fn host_name(&self, machine: &str) -> String {
        if self.host_prefix.is_empty() {
            machine.to_owned()
        } else {
            format!("{}-{machine}", self.host_prefix)
        }
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
            available_meaning: "",
            has_invented_sizes: false,
            fills: &[],
            columns: &[],
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
        let plain = Source {
            host_prefix: "",
            ..one
        };
        assert_eq!(plain.host_name("20"), "20");
    }
}
