//! `gleaner schema`.

use crate::args::{Schema, SchemaForm};
use gleaner_schemas::{arrow, json_schema, markdown, sql};
use std::io::Write;

pub(crate) fn run(args: &Schema) -> anyhow::Result<()> {
    let text = match args.form {
        SchemaForm::Markdown => markdown::schema(),
        SchemaForm::Sql => sql::MIGRATIONS.concat(),
        SchemaForm::Arrow => arrow::golden_json(),
        SchemaForm::Findings => json_schema::findings(),
        SchemaForm::Explanation => json_schema::explanation(),
        SchemaForm::Cache => json_schema::cache_replay(),
        SchemaForm::Diagnosis => json_schema::diagnosis(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
