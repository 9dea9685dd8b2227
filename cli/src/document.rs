//! Output of findings: as tables, or as one JSON document, beside which Parquet files may have the records of
//! single hosts.

use crate::tables;
use anyhow::ensure;
use gleaner_schemas::findings::{Findings, FindingsDocument, Parameters};
use gleaner_traces::export::records;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Maximum number of hosts whose findings, of all measures, are printed as one JSON document: some 2 GB for two
/// weeks.
const MOST_HOSTS: usize = 10_000;

/// Requested form of the findings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    /// True for a JSON document, false for tables.
    pub(crate) json: bool,
    /// Folder for the records of single hosts, which the JSON document then leaves out.
    pub(crate) records: Option<&'a Path>,
    /// Measures whose tables are printed, as for [`tables::all`].
    pub(crate) measures: &'a [String],
    /// Maximum number of rows of a table.
    pub(crate) rows: usize,
}

impl<'a> Form<'a> {
    /// One JSON document of all findings, but for those that go into the folder `records`.
    pub(crate) fn json(records: Option<&'a Path>) -> Self {
        Self {
            json: true,
            records,
            measures: &[],
            rows: 0,
        }
    }

    /// Refuses, before an analysis, a document that would be too large, and a folder that cannot be written.
    pub(crate) fn check(&self, hosts_count: usize, parameters: &Parameters) -> anyhow::Result<()> {
        if let Some(folder) = self.records {
            return Ok(records::check(folder)?);
        }
        ensure!(
            !self.json || !parameters.measures.is_empty() || hosts_count <= MOST_HOSTS,
            "the findings of {hosts_count} hosts are too large for one JSON document, which may have all measures of \
             {MOST_HOSTS} hosts: write the records of single hosts into Parquet files with --records FOLDER, or \
             analyse only some measures with --measure KEY"
        );
        Ok(())
    }

    /// Prints findings in this form.
    pub(crate) fn print(
        &self,
        mut findings: Findings,
        output: &mut dyn Write,
    ) -> anyhow::Result<()> {
        if !self.json {
            let tables = tables::all(&findings, self.measures, self.rows)?;
            return Ok(output.write_all(tables.as_bytes())?);
        }
        let Some(folder) = self.records else {
            return print_json(&findings, output);
        };
        let records = records::write(&mut findings, folder)?;
        let document = FindingsDocument {
            findings: &findings,
            records: &records,
        };
        print_json(&document, output)
    }
}

/// Prints a JSON document piece by piece: the whole text of a large fleet would take much memory.
pub(crate) fn print_json(document: &impl Serialize, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut output = std::io::BufWriter::new(output);
    serde_json::to_writer_pretty(&mut output, document).map_err(std::io::Error::from)?;
    writeln!(output)?;
    Ok(output.flush()?)
}

/// The findings as one JSON document.
pub(crate) fn json(findings: &Findings) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(findings)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_hosts_for_one_document_are_refused_before_the_analysis() {
        let all = Parameters::default();
        let one = Parameters {
            measures: vec!["dips".to_owned()],
            ..Parameters::default()
        };
        let document = Form::json(None);
        assert!(document.check(MOST_HOSTS, &all).is_ok());
        let error = document.check(MOST_HOSTS + 1, &all).unwrap_err();
        assert!(error.to_string().contains("--records FOLDER"), "{error}");
        assert!(document.check(MOST_HOSTS + 1, &one).is_ok());
        let tables = Form {
            json: false,
            ..document
        };
        assert!(tables.check(MOST_HOSTS + 1, &all).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let files = Form::json(Some(folder.path()));
        assert!(files.check(MOST_HOSTS + 1, &all).is_ok());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(files.check(1, &all).is_err());
    }
}
