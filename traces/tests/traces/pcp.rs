//! `gleaner import pcp`: only what needs no PCP tool. The remaining tests are in
//! tests/readers/test_recorders.py.

use crate::import::the_docs_name_what_it_fills;
use gleaner_schemas::rows;
use gleaner_traces::import::pcp::{Pcp, SOURCE};
use gleaner_traces::import::{ImportError, Importer};
use std::fs;

#[test]
fn the_docs_name_the_columns_that_pcp_fills_and_they_are_there() {
    the_docs_name_what_it_fills(&SOURCE);
    for filled in SOURCE.fills {
        let table = rows::table(filled.table).unwrap();
        assert!(
            table.columns.iter().any(|c| c.name == filled.column),
            "{filled:?}"
        );
    }
    let samples = SOURCE.fills.iter().filter(|f| f.table == "samples");
    let samples: Vec<&str> = samples.map(|f| f.column).collect();
    assert!(SOURCE.columns.iter().all(|name| samples.contains(name)));
}

#[test]
fn a_folder_without_archives_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pmlogger.log"), "").unwrap();
    let error = Pcp::new(&[folder.path().to_owned()])
        .machines()
        .unwrap_err();
    assert!(matches!(error, ImportError::Unfit { .. }));
    assert!(error.to_string().contains("there is no archive in it"));
}
