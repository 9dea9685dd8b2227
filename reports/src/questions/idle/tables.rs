//! Use by category, and dips.

use crate::page::table::{Cell, Table, numbers, words};
use crate::view::View;
use gleaner_schemas::findings::{Category, MemoryUsage};

/// Mean use by category, one table for each class of memory size (one alone needs no `all`).
pub(crate) fn usage(view: &View) -> Vec<Table> {
    let usage = &view.findings.memory_usage;
    let mut classes: Vec<&str> = Vec::new();
    for row in usage {
        if !classes.contains(&row.size_class.as_str()) {
            classes.push(&row.size_class);
        }
    }
    if classes.len() == 2 && classes.contains(&"all") {
        classes.retain(|class| *class == "all");
    }
    classes.sort_by_key(|class| *class != "all");
    let tables = classes.iter().enumerate().filter_map(|(i, class)| {
        let mut rows: Vec<&MemoryUsage> = usage.iter().filter(|u| u.size_class == *class).collect();
        rows.sort_by_key(|u| place(&u.category));
        let hosts = rows.iter().map(|u| u.hosts_count).max().unwrap_or(0);
        let caption = match *class {
            "all" if hosts == 1 => "Memory by category, over all samples".to_owned(),
            "all" => format!("Memory by category, over all samples of all {hosts} hosts"),
            class => format!(
                "Memory by category, hosts of {class} ({})",
                crate::wording::count(hosts, "host")
            ),
        };
        Table::new(
            format!("{}usage-{}", view.prefix, i + 1),
            caption,
            vec![
                words("category"),
                numbers("mean"),
                numbers("share"),
                numbers("deviation"),
                numbers("least"),
                numbers("median"),
                numbers("most"),
                numbers("samples"),
            ],
        )
        .with_rows(rows.into_iter().map(usage_row).collect())
    });
    tables.collect()
}

fn usage_row(usage: &MemoryUsage) -> Vec<Cell> {
    let share = Cell::share(usage.mean_share);
    let (name, share) = match (category_named(&usage.category), usage.category.as_str()) {
        (Some(category), _) => (
            Cell::text(category.label()).swatch(colour(category)),
            share.bar(usage.mean_share).swatch(colour(category)),
        ),
        (None, "harvestable") => (
            Cell::text("of available, harvestable").swatch("harvestable"),
            share.bar(usage.mean_share).swatch("harvestable"),
        ),
        (None, "kernel") => (Cell::text("kernel, static and dynamic"), share),
        (None, "physical") => (Cell::text("physical, the sum"), share),
        (None, "live_file_cache") => (Cell::text("file cache, with files used again soon"), share),
        (None, "available_paper") => (Cell::text("available without files used again soon"), share),
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

/// The parts first, then what they sum to, then what lies across them.
fn place(category: &str) -> usize {
    let after = Category::ALL.len();
    match (category_named(category), category) {
        (Some(category), _) => category as usize,
        (None, "remainder") => after,
        (None, "physical") => after + 1,
        (None, _) => after + 2,
    }
}

/// The name of a category's colour in `style.css`.
pub(crate) const fn colour(category: Category) -> &'static str {
    match category {
        Category::StaticKernel => "static-kernel",
        Category::Balloon => "balloon",
        Category::DynamicKernel => "dynamic-kernel",
        Category::Lotsfree => "reserve",
        Category::Process => "process",
        Category::FileCache => "file-cache",
        Category::Guest => "guest",
        Category::Available => "available",
    }
}
