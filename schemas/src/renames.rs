//! Earlier names of tables and columns. Datasets, batches and databases of older versions have these names;
//! readers replace them by the present names.
//!
//! The readers need not know the version, since no earlier name is a present name. A test checks this.

/// A table that was renamed.
#[derive(Clone, Copy, Debug)]
pub struct TableRename {
    /// Name in earlier schema versions.
    pub before: &'static str,
    /// Name that replaced it.
    pub now: &'static str,
    /// First schema version with the new name.
    pub since: u32,
}

/// A column that was renamed.
#[derive(Clone, Copy, Debug)]
pub struct ColumnRename {
    /// Present name of the table.
    pub table: &'static str,
    /// Name in earlier schema versions.
    pub before: &'static str,
    /// Name that replaced it.
    pub now: &'static str,
    /// First schema version with the new name.
    pub since: u32,
}

/// All renamed tables, oldest rename first.
pub const TABLES: [TableRename; 2] = [
    TableRename {
        before: "absences",
        now: "missing_values",
        since: 7,
    },
    TableRename {
        before: "nodes",
        now: "numa_nodes",
        since: 7,
    },
];

/// All renamed columns, oldest rename first.
pub const COLUMNS: [ColumnRename; 19] = [
    column("samples", "files_whole", "is_complete_state", 7),
    column("samples", "lotsfree_bytes", "reserve_bytes", 7),
    column("samples", "remainder_bytes", "category_correction_bytes", 7),
    column("samples", "running_count", "running_tasks_count", 7),
    column(
        "samples",
        "refault_file_total_count",
        "refault_file_total_pages",
        7,
    ),
    column(
        "samples",
        "refault_anon_total_count",
        "refault_anon_total_pages",
        7,
    ),
    column("samples", "swap_in_total_count", "swap_in_total_pages", 7),
    column("samples", "swap_out_total_count", "swap_out_total_pages", 7),
    column(
        "samples",
        "reclaimed_kswapd_total_count",
        "reclaimed_kswapd_total_pages",
        7,
    ),
    column(
        "samples",
        "reclaimed_direct_total_count",
        "reclaimed_direct_total_pages",
        7,
    ),
    column("processes", "started_ms", "start_boottime_ms", 7),
    column("files", "open_count", "open_processes_count", 7),
    column("files", "mapped_count", "mapping_processes_count", 7),
    column("files", "opened_count", "opens_count", 7),
    column("missing_values", "absent_count", "missing_count", 7),
    column("hosts", "nodes_count", "numa_nodes_count", 7),
    column("numa_nodes", "node", "numa_node", 7),
    column("numa_nodes", "lotsfree_bytes", "reserve_bytes", 7),
    column("events", "amount_ms", "duration_ms", 7),
];

const fn column(
    table: &'static str,
    before: &'static str,
    now: &'static str,
    since: u32,
) -> ColumnRename {
    ColumnRename {
        table,
        before,
        now,
        since,
    }
}

/// Returns the present name of the table that some version called `name`; other names are returned unchanged.
#[must_use]
pub fn table_name(name: &str) -> &str {
    latest(name, TABLES.iter().map(|r| (r.before, r.now)))
}

/// Returns the present name of the column that some version called `name`; other names are returned
/// unchanged. `table` is the present name of the column's table.
#[must_use]
pub fn column_name<'a>(table: &str, name: &'a str) -> &'a str {
    let of_table = COLUMNS.iter().filter(|rename| rename.table == table);
    latest(name, of_table.map(|r| (r.before, r.now)))
}

/// Follows a name through these renames, each an earlier and a later name, oldest first.
fn latest(name: &str, renames: impl Iterator<Item = (&'static str, &'static str)>) -> &str {
    renames.fold(name, |name, (before, now)| match name == before {
        true => now,
        false => name,
    })
}

/// Returns the present name of an item of `missing_values`. An item is a column of `samples`, a table, or
/// another name that never changed. Stored rows keep the names of the version that recorded them.
#[must_use]
pub fn item_name(name: &str) -> &str {
    column_name("samples", table_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SCHEMA_VERSION;
    use crate::rows::{DATASET_TABLES, table};

    #[test]
    fn an_earlier_name_leads_to_a_present_one_and_is_none_itself() {
        for rename in TABLES {
            assert!(table(rename.before).is_none(), "{}", rename.before);
            assert!(table(table_name(rename.before)).is_some());
            assert!(rename.since <= SCHEMA_VERSION);
        }
        for rename in COLUMNS {
            let columns = table(rename.table).unwrap().columns;
            let has = |name| columns.iter().any(|column| column.name == name);
            assert!(!has(rename.before), "{}.{}", rename.table, rename.before);
            assert!(has(column_name(rename.table, rename.before)));
            assert!(rename.since <= SCHEMA_VERSION);
        }
        for table in DATASET_TABLES {
            assert_eq!(table_name(table.name), table.name);
            for column in table.columns {
                assert_eq!(column_name(table.name, column.name), column.name);
            }
        }
    }

    #[test]
    fn items_are_tables_columns_and_other_names() {
        for (before, now) in [
            ("nodes", "numa_nodes"),
            ("lotsfree_bytes", "reserve_bytes"),
            ("files", "files"),
            ("zoneinfo", "zoneinfo"),
        ] {
            assert_eq!(item_name(before), now);
        }
    }
}
