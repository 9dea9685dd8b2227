//! Figures of one host's memory over time: by category, and available memory.

use super::course::Course;
use crate::page::figure::{Figure, Key, Plot};
use crate::questions::idle::tables::colour;
use crate::view::{View, category_bytes};
use crate::wording::{bytes, count, share, size};
use gleaner_schemas::findings::Category;
use plotly::Trace;
use plotly::common::{DashType, Line};

/// Figure of memory by category: areas that add up to physical memory.
pub(crate) fn categories(view: &View) -> Option<Figure> {
    let course = Course::of(view)?;
    let shown: Vec<Category> = Category::ALL
        .into_iter()
        .filter(|c| {
            course
                .runs
                .iter()
                .flatten()
                .any(|p| category_bytes(p, *c).is_some_and(|b| b > 0.0))
        })
        .collect();
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    for (number, run) in course.drawn.iter().enumerate() {
        for category in &shown {
            let y = run
                .iter()
                .map(|p| category_bytes(p, *category).map(|b| course.number(b)));
            let mut trace = course.trace(number, y.collect(), category.label(), colour(*category));
            trace = trace
                .stack_group(format!("run-{number}"))
                .line(Line::new().width(0.0));
            data.push(trace);
        }
    }
    let key = shown.iter().rev().map(|category| Key {
        colour: colour(*category),
        mark: "area",
        label: category.label().into(),
        value: String::new(),
    });
    let mut key: Vec<Key> = key.collect();
    key.extend(course.idle_key("idle", "area"));
    Some(Figure {
        id: format!("{}memory-over-time", view.prefix),
        title: "Memory by category over time".into(),
        sentence: course.categories_sentence(),
        key,
        height_px: 360,
        plot: Plot {
            times: course.times(),
            data,
            layout: course
                .layout()
                .shapes(course.idle_bands("idle", 1.015, 1.04)),
        },
    })
}

/// Figure of available and harvestable memory, with the dips' thresholds.
pub(crate) fn available(view: &View) -> Option<Figure> {
    let course = Course::of(view)?;
    let buckets = course.runs.iter().flatten().any(|p| p.samples_count > 1);
    let knows_harvestable = course.memory.harvestable_bytes.is_some();
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    for (number, run) in course.drawn.iter().enumerate() {
        let mut line =
            |y: Vec<Option<f64>>, label: &str, colour: &str, dash: DashType, width: f64| {
                let y = y.into_iter().map(|b| b.map(|b| course.number(b))).collect();
                let trace = course.trace(number, y, label, colour);
                data.push(trace.line(Line::new().width(width).dash(dash)));
            };
        if buckets {
            let least = run
                .iter()
                .map(|p| Some(p.min_available_bytes as f64))
                .collect();
            line(
                least,
                "least available",
                "available-line",
                DashType::Solid,
                0.8,
            );
        }
        let available = run.iter().map(|p| Some(p.available_bytes)).collect();
        line(
            available,
            "available",
            "available-line",
            DashType::Solid,
            2.2,
        );
        if knows_harvestable {
            let harvestable = run.iter().map(|p| p.harvestable_bytes).collect();
            line(
                harvestable,
                "harvestable",
                "harvestable",
                DashType::Dash,
                2.2,
            );
        }
    }
    let mut key = vec![Key {
        colour: "available-line",
        mark: "line",
        label: "available".into(),
        value: bytes(course.memory.available_bytes()),
    }];
    if buckets {
        key.push(Key {
            colour: "available-line",
            mark: "hairline",
            label: "least available in each interval".into(),
            value: bytes(course.memory.least_available_bytes),
        });
    }
    key.extend(course.memory.harvestable_bytes.map(|mean| Key {
        colour: "harvestable",
        mark: "dash",
        label: "harvestable".into(),
        value: bytes(mean),
    }));
    key.extend(course.idle_key("idle-band", "band"));
    let (lines, labels) = course.thresholds();
    let shapes = course
        .idle_bands("idle-band", 0.0, 1.0)
        .into_iter()
        .chain(lines)
        .collect();
    Some(Figure {
        id: format!("{}available-over-time", view.prefix),
        title: "Available and harvestable memory over time".into(),
        sentence: course.available_sentence(),
        key,
        height_px: 320,
        plot: Plot {
            times: course.times(),
            data,
            layout: course.layout().shapes(shapes).annotations(labels),
        },
    })
}

impl Course<'_> {
    fn categories_sentence(&self) -> String {
        let memory = &self.memory;
        let mean = |c: Category| {
            memory.mean_bytes[c as usize]
                .map(bytes)
                .unwrap_or("an unknown part".into())
        };
        let points = self.runs.iter().flatten();
        let busiest = points.filter_map(|p| Some((p.process_bytes?, p)));
        let busiest = busiest.max_by(|a, b| a.0.total_cmp(&b.0));
        let rise = busiest.map(|(process_bytes, p)| {
            format!(
                ", at most {} around {}",
                bytes(process_bytes),
                self.view.clock.moment(p.time_ms)
            )
        });
        let is_known = |c: Category| memory.mean_bytes[c as usize].is_some();
        // Traces of other programs may have neither process memory nor file cache.
        let used = (is_known(Category::Process) || is_known(Category::FileCache)).then(|| {
            format!(
                "; active processes held {}{}; files in use {}",
                mean(Category::Process),
                rise.unwrap_or_default(),
                mean(Category::FileCache),
            )
        });
        format!(
            "Of {}, {} were available on average{}. {}{}",
            bytes(memory.mean_physical_bytes()),
            mean(Category::Available),
            used.unwrap_or_default(),
            self.idle_words(),
            self.gap_words(),
        )
    }

    fn available_sentence(&self) -> String {
        let memory = &self.memory;
        let points = self.runs.iter().flatten();
        let lowest = points.min_by_key(|p| p.min_available_bytes);
        let when = lowest.map(|p| format!(", around {}", self.view.clock.moment(p.time_ms)));
        let harvestable = match (memory.harvestable_bytes, memory.least_harvestable_bytes) {
            (Some(mean), Some(least)) => format!(
                "Harvestable memory, which Linux can provide without paging out the owner’s pages, was {} on average and never below {}.",
                bytes(mean),
                bytes(least)
            ),
            _ => "Harvestable memory is not known.".into(),
        };
        format!(
            "Available memory was {} on average and never below {}{}. {harvestable} {}",
            bytes(memory.available_bytes()),
            bytes(memory.least_available_bytes),
            when.unwrap_or_default(),
            self.dip_words(),
        )
    }

    fn idle_words(&self) -> String {
        match (
            self.view.findings.idle_periods.len() as i64,
            self.host.idle_share,
        ) {
            (0, None) => {
                "It is not known when the owner was away, so no period is marked idle.".into()
            }
            (0, Some(_)) => "The host was never idle.".into(),
            (n, Some(idle)) => format!(
                "The host was idle in {}, {} of the time (marked above the figure).",
                count(n, "period"),
                share(idle)
            ),
            (n, None) => format!(
                "Idle time is marked above the figure: {}.",
                count(n, "period")
            ),
        }
    }

    fn gap_words(&self) -> String {
        match self.runs.len() as i64 - 1 {
            0 => String::new(),
            n => format!(" Times without samples are blank: {}.", count(n, "gap")),
        }
    }

    fn dip_words(&self) -> String {
        let dips = || self.view.findings.absolute_dips();
        let crossed = dips()
            .filter(|d| d.intervals_count > 0)
            .max_by_key(|d| d.threshold_bytes);
        match (crossed, dips().map(|d| d.threshold_bytes).max()) {
            (Some(dip), _) => format!(
                "It fell below {} in {}.",
                size(dip.threshold_bytes),
                count(dip.intervals_count, "sample interval")
            ),
            (None, Some(highest)) => format!(
                "It did not dip below any threshold, the highest being {}.",
                size(highest)
            ),
            (None, None) => String::new(),
        }
    }
}
