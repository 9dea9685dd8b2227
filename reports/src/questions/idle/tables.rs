//! Use of memory by category, and by class of memory size.

use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use gleaner_schemas::findings::{Category, Findings, MemoryUsage, Scope};

/// Table of the mean use by category, over all hosts.
pub(super) fn usage(view: &View) -> Option<Table> {
    // A category that no host has (balloon, guest) gets no row.
    let mut rows: Vec<&MemoryUsage> = of_class(view.findings, ALL)
        .filter(|u| u.max_bytes != 0)
        .collect();
    rows.sort_by_key(|u| place(&u.category));
    let hosts = rows.iter().map(|u| u.hosts_count).max().unwrap_or(0);
    let caption = match hosts {
        1 => "Memory by category, over all samples".to_owned(),
        hosts => format!("Memory by category, over all samples of all {hosts} hosts"),
    };
    let before = view.before.filter(|b| of_class(b, ALL).next().is_some());
    // Other programs' traces may have only available and physical memory.
    let is_part = |u: &&MemoryUsage| category_named(&u.category).is_some();
    let has_parts = rows.iter().copied().filter(|u| is_part(u)).count() > 1;
    let mut columns = vec![
        words("category"),
        numbers("mean"),
        numbers("share"),
        numbers("deviation"),
        numbers("least"),
        numbers("median"),
        numbers("most"),
        numbers("samples"),
    ];
    if before.is_some() {
        columns.push(numbers("change of share"));
    }
    let row = |now: &MemoryUsage| {
        let mut cells = usage_row(now, has_parts);
        if let Some(before) = before {
            let then = of_class(before, ALL).find(|u| u.category == now.category);
            cells.push(Cell::or_absent(then, |then| {
                Cell::share_change(now.mean_share - then.mean_share)
            }));
        }
        cells
    };
    Table::new(format!("{}usage", view.prefix), caption, columns)
        .with_rows(rows.into_iter().map(row).collect())
}

/// Name that stands for all hosts in place of a class of hosts.
const ALL: &str = "all";

fn of_class<'a>(
    findings: &'a Findings,
    class: &'a str,
) -> impl Iterator<Item = &'a MemoryUsage> + use<'a> {
    findings
        .memory_usage
        .iter()
        .filter(move |u| u.size_class == class)
}

/// Table of shares by class of memory size, with each class's part of the total; absent if there is only one
/// class.
pub(super) fn classes(view: &View) -> Option<Table> {
    const CATEGORIES: [&str; 5] = [
        "kernel",
        "process",
        "file_cache",
        "available",
        "harvestable",
    ];
    let mut classes: Vec<(&str, i64)> = Vec::new();
    for usage in &view.findings.memory_usage {
        let class = usage.size_class.as_str();
        if class != ALL && !classes.iter().any(|(known, _)| *known == class) {
            classes.push((class, usage.hosts_count));
        }
    }
    if classes.len() < 2 {
        return None;
    }
    let before = view.before.filter(|b| !b.memory_usage.is_empty());
    let find = |findings, class, category: &str| {
        of_class(findings, class).find(|u: &&MemoryUsage| u.category == category)
    };
    let rows = classes.iter().map(|(class, hosts)| {
        let contribution = view
            .findings
            .contribution_by_class
            .iter()
            .find(|c| c.scope == Scope::All && c.size_class == *class);
        let physical = find(view.findings, class, "physical");
        let mut cells = vec![
            Cell::text(*class),
            Cell::count(*hosts),
            Cell::or_absent(physical, |u| Cell::bytes(u.mean_bytes)),
        ];
        cells.extend(CATEGORIES.map(|category| {
            let usage = find(view.findings, class, category);
            Cell::or_absent(usage, |u| Cell::share(u.mean_share))
        }));
        if let Some(before) = before {
            let now = find(view.findings, class, "available");
            let then = find(before, class, "available");
            cells.push(Cell::or_absent(now.zip(then), |(now, then)| {
                Cell::share_change(now.mean_share - then.mean_share)
            }));
        }
        cells.push(Cell::or_absent(contribution, |c| {
            Cell::share(c.physical_share)
        }));
        cells.push(Cell::or_absent(contribution, |c| {
            Cell::share(c.available_share)
        }));
        cells
    });
    let mut columns = vec![
        words("memory size"),
        numbers("hosts"),
        numbers("mean"),
        numbers("kernel"),
        numbers("process"),
        numbers("file cache"),
        numbers("available"),
        numbers("harvestable"),
    ];
    if before.is_some() {
        columns.push(numbers("change"));
    }
    columns.push(numbers("of all memory"));
    columns.push(numbers("of all available"));
    Table::new(
        format!("{}classes", view.prefix),
        "Memory by size of the hosts: mean shares, and each size’s share of all memory and of all available memory",
        columns,
    )
    .with_rows(rows.collect())
}

/// A row of the table; `has_parts` is true if the preceding rows sum to physical memory.
fn usage_row(usage: &MemoryUsage, has_parts: bool) -> Vec<Cell> {
    let share = Cell::share(usage.mean_share);
    let (name, share) = match (category_named(&usage.category), usage.category.as_str()) {
        (Some(category), _) => (
            Cell::text(category.label()).swatch(colour(category)),
            share.bar(usage.mean_share).swatch(colour(category)),
        ),
        (None, "harvestable") => (
            Cell::text("harvestable (part of available)").swatch("harvestable"),
            share.bar(usage.mean_share).swatch("harvestable"),
        ),
        (None, "kernel") => (Cell::text("kernel, static and dynamic"), share),
        (None, "physical") if has_parts => (Cell::text("physical, the sum"), share),
        (None, "live_file_cache") => (Cell::text("file cache, with files used again soon"), share),
        (None, "available_paper") => (
            Cell::text("available, without files used again soon"),
            share,
        ),
        (None, "kernel_paper") => (Cell::text("kernel, with the reserve"), share),
        (None, other) => (Cell::text(other), share),
    };
    vec![
        name,
        Cell::bytes(usage.mean_bytes),
        share,
        Cell::or_absent(usage.sd_bytes, Cell::bytes),
        Cell::bytes(usage.min_bytes as f64),
        Cell::bytes(usage.median_bytes),
        Cell::bytes(usage.max_bytes as f64),
        Cell::count(usage.samples_count),
    ]
}

fn category_named(name: &str) -> Option<Category> {
    let stem = |c: &Category| c.column().strip_suffix("_bytes") == Some(name);
    Category::ALL.into_iter().find(stem)
}

/// Position of a row: first the categories, then their sum, then other measures.
fn place(category: &str) -> usize {
    let after = Category::ALL.len();
    match (category_named(category), category) {
        (Some(category), _) => category as usize,
        (None, "category_correction") => after,
        (None, "physical") => after + 1,
        (None, _) => after + 2,
    }
}

/// Name of a category's colour in `style.css`.
pub(crate) const fn colour(category: Category) -> &'static str {
    match category {
        Category::StaticKernel => "static-kernel",
        Category::Balloon => "balloon",
        Category::DynamicKernel => "dynamic-kernel",
        Category::Reserve => "reserve",
        Category::Process => "process",
        Category::FileCache => "file-cache",
        Category::Guest => "guest",
        Category::Available => "available",
    }
}
