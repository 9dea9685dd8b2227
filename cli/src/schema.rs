//! The command `gleaner schema`.

use clap::ValueEnum;
use gleaner_schemas::{arrow, json_schema, markdown, sql};
use std::io::Write;

/// Print the stored tables and columns, with units and meanings, or the JSON Schema of a command's output.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner schema --as markdown
  gleaner schema --as sql | sqlite3 empty.db     # SQLite 3.53 or newer
  gleaner schema --as findings > findings.schema.json")]
pub(crate) struct Schema {
    /// Form of the output.
    #[arg(long = "as", value_enum, default_value_t = SchemaForm::Markdown)]
    pub(crate) form: SchemaForm,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SchemaForm {
    /// Description, as in schemas/SCHEMA.md.
    Markdown,
    /// SQL statements of SQLite.
    Sql,
    /// Arrow's types as JSON.
    Arrow,
    /// JSON Schema of the output of `analyze --json`.
    Findings,
    /// JSON Schema of the output of `explain --json`.
    Explanation,
    /// JSON Schema of the output of `cache --json`.
    Cache,
    /// JSON Schema of the output of `doctor --json`.
    Diagnosis,
    /// JSON Schema of the curves of `curve record`.
    Curve,
    /// JSON Schema of the output of `curve predict --json`.
    Predictions,
    /// JSON Schema of the output of `curve measure --json`.
    Measurements,
}

pub(crate) fn run(args: &Schema, output: &mut dyn Write) -> anyhow::Result<()> {
    let text = match args.form {
        SchemaForm::Markdown => markdown::schema(),
        SchemaForm::Sql => sql::MIGRATIONS.concat(),
        SchemaForm::Arrow => arrow::golden_json(),
        SchemaForm::Findings => json_schema::findings(),
        SchemaForm::Explanation => json_schema::explanation(),
        SchemaForm::Cache => json_schema::cache_replay(),
        SchemaForm::Diagnosis => json_schema::diagnosis(),
        SchemaForm::Curve => json_schema::curve(),
        SchemaForm::Predictions => json_schema::predictions(),
        SchemaForm::Measurements => json_schema::measurements(),
    };
    output.write_all(text.as_bytes())?;
    Ok(())
}
