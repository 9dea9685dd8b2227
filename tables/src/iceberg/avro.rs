//! Avro files as Iceberg uses them: schemas whose fields have ids, and values of optional fields.

use super::FormatError;
use apache_avro::schema::UnionSchema;
use apache_avro::types::Value;
use apache_avro::{Codec, DeflateSettings, Reader, Schema, Writer};

/// Attribute by which Iceberg marks an array of entries as a map.
const MAP: (&str, &str) = ("logicalType", "map");
/// Prefix of the names of such entries' records.
const ENTRY: &str = "k1";

/// Parses the schema `text` of an Avro file.
pub(super) fn schema(text: &str) -> Result<Schema, FormatError> {
    marked(Schema::parse_str(text)?)
}

/// Adds Iceberg's attribute of maps, which Avro's parser drops from arrays.
fn marked(schema: Schema) -> Result<Schema, FormatError> {
    Ok(match schema {
        Schema::Record(mut record) => {
            for field in &mut record.fields {
                let inner = std::mem::replace(&mut field.schema, Schema::Null);
                field.schema = marked(inner)?;
            }
            Schema::Record(record)
        }
        Schema::Union(union) => {
            let variants = union.variants().iter().cloned();
            let variants = variants.map(marked).collect::<Result<Vec<_>, _>>()?;
            Schema::Union(UnionSchema::new(variants)?)
        }
        Schema::Array(mut array) => {
            let is_map = matches!(&*array.items, Schema::Record(item) if item.name.name().starts_with(ENTRY));
            if is_map {
                array.attributes.insert(MAP.0.to_owned(), MAP.1.into());
            }
            Schema::Array(array)
        }
        other => other,
    })
}

/// Encodes an Avro file of `rows`, with `metadata` in its header. The same arguments give a file of the same length
/// and content; only the order of the header's entries may differ.
pub(super) fn encode(
    schema: &Schema,
    metadata: &[(&str, String)],
    rows: Vec<Value>,
) -> Result<Vec<u8>, FormatError> {
    let mut marker = [0; 16];
    let hash = blake3::hash(format!("{metadata:?}").as_bytes());
    marker.copy_from_slice(&hash.as_bytes()[..16]);
    let mut writer = Writer::builder()
        .schema(schema)
        .writer(Vec::<u8>::new())
        .codec(Codec::Deflate(DeflateSettings::default()))
        .marker(marker)
        .build()?;
    for (key, value) in metadata {
        writer.add_user_metadata((*key).to_owned(), value)?;
    }
    for row in rows {
        writer.append_value(row)?;
    }
    Ok(writer.into_inner()?)
}

/// Decodes the rows of an Avro file.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Value>, FormatError> {
    let rows = Reader::new(bytes)?.collect::<Result<Vec<_>, _>>();
    Ok(rows?)
}

/// A present value of an optional field.
pub(super) fn some(value: Value) -> Value {
    Value::Union(1, Box::new(value))
}

/// A record with these fields, in the order of its schema.
pub(super) fn record<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter();
    Value::Record(fields.map(|(name, v)| (name.to_owned(), v)).collect())
}

/// Value of the field `name` of a record; of an optional field, the present value.
pub(super) fn field<'a>(row: &'a Value, name: &str) -> Result<&'a Value, FormatError> {
    let absent = || FormatError(format!("it has no {name}"));
    let Value::Record(fields) = row else {
        return Err(absent());
    };
    let found = fields.iter().find(|(field, _)| field == name);
    match &found.ok_or_else(absent)?.1 {
        Value::Union(_, inner) => Ok(inner),
        value => Ok(value),
    }
}

/// Whole number in the field `name` of a record.
pub(super) fn integer(row: &Value, name: &str) -> Result<i64, FormatError> {
    match field(row, name)? {
        Value::Long(number) => Ok(*number),
        Value::Int(number) | Value::Date(number) => Ok((*number).into()),
        _ => Err(FormatError(format!("its {name} is no whole number"))),
    }
}

/// Text in the field `name` of a record.
pub(super) fn text<'a>(row: &'a Value, name: &str) -> Result<&'a str, FormatError> {
    match field(row, name)? {
        Value::String(text) => Ok(text),
        _ => Err(FormatError(format!("its {name} is no text"))),
    }
}
