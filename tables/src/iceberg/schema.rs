//! Schema of an Iceberg table. A column keeps its id forever, also when it is renamed.

use gleaner_schemas::arrow::IDENTITY;
use gleaner_schemas::column::{Kind, Table};
use gleaner_schemas::renames;
use serde::{Deserialize, Serialize};

/// Id of the column `host_id`, the first of every table.
pub(crate) const HOST_ID: i32 = 1;
/// Id of the column `time`, the fourth of every table.
pub(crate) const TIME: i32 = 4;

/// Columns of a table, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "struct", rename_all = "kebab-case")]
pub(crate) struct Schema {
    pub(crate) schema_id: i32,
    pub(crate) fields: Vec<Field>,
}

/// A column of an Iceberg table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Field {
    pub(crate) id: i32,
    pub(crate) name: String,
    pub(crate) required: bool,
    #[serde(rename = "type")]
    pub(crate) kind: Type,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) doc: Option<String>,
}

/// Iceberg's name of a column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Type {
    String,
    Long,
    Double,
    Boolean,
    /// Microseconds since 1970-01-01 UTC.
    Timestamptz,
}

impl From<Kind> for Type {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Integer => Self::Long,
            Kind::Real => Self::Double,
            Kind::Text => Self::String,
            Kind::Flag => Self::Boolean,
        }
    }
}

impl Schema {
    /// Schema of `table` and the highest id in use. Columns of `earlier`, the present schema of the published table
    /// with its highest id, keep their ids; new columns get the next ids. Returns `earlier` unless columns differ.
    pub(crate) fn next(table: &Table, earlier: Option<(&Self, i32)>) -> (Self, i32) {
        let known = earlier.map_or(&[][..], |(schema, _)| &schema.fields[..]);
        let mut last_id = earlier.map_or(0, |(_, last_id)| last_id);
        let mut id_of = |name: &str| {
            let same = |field: &&Field| renames::column_name(table.name, &field.name) == name;
            known.iter().find(same).map_or_else(
                || {
                    last_id += 1;
                    last_id
                },
                |field| field.id,
            )
        };
        let types = [Type::String, Type::String, Type::Long, Type::Timestamptz];
        let identity = IDENTITY.into_iter().zip(types);
        let identity = identity.map(|(name, kind)| (name, kind, true, None));
        let own = table.columns.iter();
        // A later schema version may allow absent values in any of these columns.
        let own = own.map(|c| {
            (
                c.name,
                Type::from(c.kind),
                false,
                Some(c.doc.trim().to_owned()),
            )
        });
        let fields: Vec<Field> = identity
            .chain(own)
            .map(|(name, kind, required, doc)| Field {
                id: id_of(name),
                name: name.to_owned(),
                required,
                kind,
                doc,
            })
            .collect();
        let schema_id = earlier.map_or(0, |(schema, _)| schema.schema_id.saturating_add(1));
        let next = Self { schema_id, fields };
        match earlier {
            Some((schema, last_id)) if schema.columns() == next.columns() => {
                (schema.clone(), last_id)
            }
            _ => (next, last_id),
        }
    }

    /// Columns without documentation, which alone is no reason for another schema.
    fn columns(&self) -> Vec<(i32, &str, bool, Type)> {
        let fields = self.fields.iter();
        fields
            .map(|f| (f.id, f.name.as_str(), f.required, f.kind))
            .collect()
    }

    /// The schema without its columns' documentation, for the header of manifests.
    pub(crate) fn without_docs(&self) -> Self {
        let mut plain = self.clone();
        for field in &mut plain.fields {
            field.doc = None;
        }
        plain
    }

    /// Hash of the columns' names and ids, eight hexadecimal digits. It is part of a Parquet file's name: a file
    /// with this name has these columns.
    pub(crate) fn fingerprint(&self) -> String {
        let hash = blake3::hash(format!("{:?}", self.columns()).as_bytes());
        hash.to_hex()[..8].to_owned()
    }

    /// Id of the column `name`.
    pub(crate) fn id_of(&self, name: &str) -> Option<i32> {
        let fields = self.fields.iter();
        fields.filter(|f| f.name == name).map(|f| f.id).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::rows::DATASET_TABLES;
    use std::collections::BTreeSet;

    #[test]
    fn host_and_time_have_the_ids_that_manifests_use() {
        for table in DATASET_TABLES {
            let (schema, last_id) = Schema::next(&table, None);
            assert_eq!(schema.id_of("host_id"), Some(HOST_ID));
            assert_eq!(schema.id_of("time"), Some(TIME));
            assert_eq!(last_id as usize, table.columns.len() + 4);
            assert_eq!(
                Schema::next(&table, Some((&schema, last_id))),
                (schema, last_id)
            );
        }
    }

    #[test]
    fn a_column_keeps_its_id_and_a_new_one_gets_the_next() {
        let table = gleaner_schemas::rows::table("numa_nodes").unwrap();
        let (present, last_id) = Schema::next(&table, None);
        let mut earlier = present.clone();
        // Version 6 had another name for `reserve_bytes`, and imagine that `numa_node` was new.
        earlier.fields.retain(|f| f.name != "numa_node");
        for field in &mut earlier.fields {
            if field.name == "reserve_bytes" {
                field.name = "lotsfree_bytes".to_owned();
            }
        }
        let (next, next_last_id) = Schema::next(&table, Some((&earlier, last_id)));
        assert_eq!(next.schema_id, 1);
        assert_eq!(next_last_id, last_id + 1);
        assert_eq!(next.id_of("numa_node"), Some(last_id + 1));
        assert_eq!(next.id_of("reserve_bytes"), present.id_of("reserve_bytes"));
        let ids: BTreeSet<i32> = next.fields.iter().map(|f| f.id).collect();
        assert_eq!(ids.len(), next.fields.len());
        assert_ne!(next.fingerprint(), present.fingerprint());
    }

    #[test]
    fn a_schema_is_json_as_iceberg_defines_it() {
        let table = gleaner_schemas::rows::table("gaps").unwrap();
        let (schema, _) = Schema::next(&table, None);
        let json = serde_json::to_value(&schema).unwrap();
        assert_eq!(json["type"], "struct");
        assert_eq!(json["schema-id"], 0);
        assert_eq!(json["fields"][3]["type"], "timestamptz");
        assert_eq!(json["fields"][3]["required"], true);
        assert_eq!(serde_json::from_value::<Schema>(json).unwrap(), schema);
    }
}
