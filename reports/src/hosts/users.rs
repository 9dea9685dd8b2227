//! Users of the memory: processes and files.

use crate::page::table::{Cell, Table, host_cell, host_column, largest_first, numbers, words};
use crate::view::View;

/// Table of process names by their mean memory while active.
pub(crate) fn processes(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let sorted = largest_first(&view.findings.top_processes, |p| p.mean_bytes);
    let most = sorted.first().map_or(1.0, |p| p.mean_bytes.max(1.0));
    let rows = sorted.iter().map(|p| {
        let cells = vec![
            Cell::text(&p.name),
            Cell::bytes(p.mean_bytes).bar(p.mean_bytes / most),
            Cell::bytes(p.max_bytes as f64),
            Cell::count(p.active_samples_count),
            Cell::seconds(p.cpu_s),
        ];
        host_cell(many, view.host_cell(&p.host_id), cells)
    });
    Table::new(
        format!("{}processes", view.prefix),
        "Active processes by memory; processes of the same name are added up",
        host_column(
            many,
            vec![
                words("process"),
                numbers("mean memory"),
                numbers("most"),
                numbers("samples active"),
                numbers("CPU time"),
            ],
        ),
    )
    .with_rows(rows.collect())
}

/// Note on the files' names: ids or paths.
pub(crate) fn files_words(view: &View) -> &'static str {
    if view
        .findings
        .top_files
        .iter()
        .any(|f| !f.file.contains('/'))
    {
        "Files are named by ids, because the host’s owner has not allowed it to publish paths. An id stays the same in all samples and \
         does not reveal the path."
    } else {
        "Files are named by their paths, as the host’s owner has allowed."
    }
}

/// Table of files by their page cache.
pub(crate) fn files(view: &View) -> Option<Table> {
    let many = view.only_host().is_none();
    let sorted = largest_first(&view.findings.top_files, |f| f.mean_cached_bytes);
    let most = sorted.first().map_or(1.0, |f| f.mean_cached_bytes.max(1.0));
    let rows = sorted.iter().map(|f| {
        let cells = vec![
            Cell::text(&f.file),
            Cell::bytes(f.mean_cached_bytes).bar(f.mean_cached_bytes / most),
            Cell::bytes(f.max_cached_bytes as f64),
            Cell::count(f.samples_count),
        ];
        host_cell(many, view.host_cell(&f.host_id), cells)
    });
    Table::new(
        format!("{}files", view.prefix),
        "Files in use, by page cache",
        host_column(
            many,
            vec![
                words("file"),
                numbers("mean cached"),
                numbers("most"),
                numbers("samples in use"),
            ],
        ),
    )
    .with_rows(rows.collect())
}
