//! Memory of one host over time: by category, and what is available.

use super::{Figure, Key, Plot, Unit, axis, layout, time_axis};
use crate::tables::memory::colour;
use crate::view::{Memory, View, category_bytes};
use crate::wording::{bytes, count, list, share, size};
use gleaner_schemas::findings::{Category, HostSummary, MemoryPoint};
use plotly::common::{Anchor, DashType, Line, Marker, Mode};
use plotly::layout::{Annotation, HoverMode, RangeMode, Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Layout, Scatter, Trace};

/// One host's points, in runs that no gap interrupts.
struct Course<'a> {
    view: &'a View<'a>,
    host: &'a HostSummary,
    memory: Memory,
    runs: Vec<Vec<&'a MemoryPoint>>,
    unit: Unit,
}

/// Memory by category: areas that add up to physical memory.
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
    for (number, run) in course.runs.iter().enumerate() {
        for category in &shown {
            let y = run
                .iter()
                .map(|p| category_bytes(p, *category).map(|b| course.unit.number(b)));
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

/// Available and harvestable, with the thresholds of the dips.
pub(crate) fn available(view: &View) -> Option<Figure> {
    let course = Course::of(view)?;
    let buckets = course.runs.iter().flatten().any(|p| p.samples_count > 1);
    let knows_harvestable = course.memory.harvestable_bytes.is_some();
    let mut data: Vec<Box<dyn Trace>> = Vec::new();
    for (number, run) in course.runs.iter().enumerate() {
        let mut line =
            |y: Vec<Option<f64>>, label: &str, colour: &str, dash: DashType, width: f64| {
                let y = y
                    .into_iter()
                    .map(|b| b.map(|b| course.unit.number(b)))
                    .collect();
                let trace = course.trace(number, y, label, colour);
                data.push(trace.line(Line::new().width(width).dash(dash)));
            };
        if buckets {
            let least = run
                .iter()
                .map(|p| Some(p.available_min_bytes as f64))
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
            label: "its least in each stretch".into(),
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
        title: "Available and harvestable over time".into(),
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

impl<'a> Course<'a> {
    fn of(view: &'a View<'a>) -> Option<Self> {
        let host = view.only_host()?;
        let memory = view.memory_of(host)?;
        let mut runs: Vec<Vec<&MemoryPoint>> = Vec::new();
        for point in view
            .findings
            .memory_over_time
            .iter()
            .filter(|p| p.host == host.host)
        {
            match runs.last_mut() {
                Some(run) if !point.after_gap => run.push(point),
                _ => runs.push(vec![point]),
            }
        }
        let unit = Unit::of(memory.physical_bytes);
        Some(Self {
            view,
            host,
            memory,
            runs,
            unit,
        })
    }

    fn trace(
        &self,
        run: usize,
        y: Vec<Option<f64>>,
        label: &str,
        colour: &str,
    ) -> Box<Scatter<usize, Option<f64>>> {
        let alone = y.len() == 1;
        let trace = Scatter::new(vec![run], y)
            .name(label)
            .meta(colour)
            .hover_template(self.unit.hover(label));
        if alone {
            trace.mode(Mode::Markers).marker(Marker::new().size(4))
        } else {
            trace.mode(Mode::Lines)
        }
    }

    fn shown_ms(&self, time_ms: i64) -> i64 {
        time_ms.saturating_add(self.view.clock.offset_ms(self.host.from_time_ms))
    }

    fn times(&self) -> Vec<Vec<i64>> {
        let shown =
            |run: &Vec<&MemoryPoint>| run.iter().map(|p| self.shown_ms(p.time_ms)).collect();
        self.runs.iter().map(shown).collect()
    }

    fn layout(&self) -> Layout {
        let title = format!("time, {}", self.view.clock.zone_at(self.host.from_time_ms));
        let memory_axis = axis()
            .title(self.unit.name)
            .range_mode(RangeMode::ToZero)
            .tick_format(",~r");
        layout()
            .hover_mode(HoverMode::XUnified)
            .x_axis(
                time_axis(&title)
                    .tick_format(self.tick_format())
                    .hover_format("%a %-d %b, %H:%M:%S"),
            )
            .y_axis(memory_axis)
    }

    /// The second line is drawn where it changes.
    fn tick_format(&self) -> &'static str {
        match self.host.to_time_ms.saturating_sub(self.host.from_time_ms) / 1000 {
            ..600 => "%H:%M:%S\n%-d %B %Y",
            600..259_200 => "%H:%M\n%a %-d %b",
            _ => "%a %-d\n%B %Y",
        }
    }

    /// The idle periods shaded between two heights of the plot (0 its foot, 1 its head).
    fn idle_bands(&self, colour: &str, foot: f64, head: f64) -> Vec<Shape> {
        let first = self.host.from_time_ms;
        let band = |from: i64, to: i64| {
            Shape::new()
                .shape_type(ShapeType::Rect)
                .name(colour)
                .layer(ShapeLayer::Below)
                .y_ref("paper")
                .x0(self.shown_ms(from.max(first)) as f64)
                .x1(self.shown_ms(to) as f64)
                .y0(foot)
                .y1(head)
                .line(ShapeLine::new().width(0.0))
        };
        let periods = self.view.findings.idle_periods.iter();
        periods
            .map(|p| band(p.from_time_ms, p.to_time_ms))
            .collect()
    }

    fn idle_key(&self, colour: &'static str, mark: &'static str) -> Option<Key> {
        let share = self.host.idle_share.map(share).unwrap_or_default();
        (!self.view.findings.idle_periods.is_empty()).then(|| Key {
            colour,
            mark,
            label: "idle".into(),
            value: share,
        })
    }

    /// Lines at the thresholds, each named above it; those that lie close together are named once.
    fn thresholds(&self) -> (Vec<Shape>, Vec<Annotation>) {
        const CLOSE_SHARE: f64 = 0.08;
        let mut sorted = self.view.findings.parameters.dip_threshold_bytes.clone();
        sorted.sort_unstable();
        let close_bytes = CLOSE_SHARE * self.memory.physical_bytes;
        let close = |a: &i64, b: &i64| ((b - a) as f64) < close_bytes;
        let lines = sorted.iter().map(|threshold| {
            let at = self.unit.number(*threshold as f64);
            Shape::new()
                .shape_type(ShapeType::Line)
                .name("threshold")
                .layer(ShapeLayer::Below)
                .x_ref("paper")
                .x0(0.0)
                .x1(1.0)
                .y0(at)
                .y1(at)
                .line(ShapeLine::new().width(1.2).dash(DashType::Dot))
        });
        let labels = sorted.chunk_by(close).map(|group| {
            let sizes: Vec<String> = group.iter().map(|t| size(*t)).collect();
            Annotation::new()
                .x_ref("paper")
                .x(1.0)
                .x_anchor(Anchor::Right)
                .y(self.unit.number(group[group.len() - 1] as f64))
                .y_anchor(Anchor::Bottom)
                .show_arrow(false)
                .text(format!("dip below {}", list(&sizes)))
        });
        (lines.collect(), labels.collect())
    }

    fn categories_sentence(&self) -> String {
        let memory = &self.memory;
        let mean = |c: Category| {
            memory.mean_bytes[c as usize]
                .map(bytes)
                .unwrap_or("an unknown part".into())
        };
        let points = self.runs.iter().flatten();
        let busiest = points.max_by(|a, b| a.process_bytes.total_cmp(&b.process_bytes));
        let rise = busiest.map(|p| {
            format!(
                ", at most {} around {}",
                bytes(p.process_bytes),
                self.view.clock.moment(p.time_ms)
            )
        });
        format!(
            "Of {}, {} were available on average; active processes held {}{}; files in use {}. {}{}",
            bytes(memory.physical_bytes),
            mean(Category::Available),
            mean(Category::Process),
            rise.unwrap_or_default(),
            mean(Category::FileCache),
            self.idle_words(),
            self.gap_words(),
        )
    }

    fn available_sentence(&self) -> String {
        let memory = &self.memory;
        let points = self.runs.iter().flatten();
        let lowest = points.min_by_key(|p| p.available_min_bytes);
        let when = lowest.map(|p| format!(", around {}", self.view.clock.moment(p.time_ms)));
        let harvestable = match (memory.harvestable_bytes, memory.least_harvestable_bytes) {
            (Some(mean), Some(least)) => format!(
                "Harvestable, which leaves the owner’s pages alone, was {} on average and never below {}.",
                bytes(mean),
                bytes(least)
            ),
            _ => "How much could have been harvested is not known.".into(),
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
                "Whether the owner was there is not known, so no stretch is marked idle.".into()
            }
            (0, Some(_)) => "The host was never idle.".into(),
            (n, Some(idle)) => format!(
                "The host was idle in {}, {} of the time (marked above the figure).",
                count(n, "period"),
                share(idle)
            ),
            (n, None) => format!(
                "{} of idleness are marked above the figure.",
                count(n, "period")
            ),
        }
    }

    fn gap_words(&self) -> String {
        match self.runs.len() as i64 - 1 {
            0 => String::new(),
            n => format!(" {} without samples left blank.", count(n, "gap")),
        }
    }

    fn dip_words(&self) -> String {
        let dips = &self.view.findings.dips;
        let crossed = dips
            .iter()
            .filter(|d| d.intervals > 0)
            .max_by_key(|d| d.threshold_bytes);
        match (crossed, dips.iter().map(|d| d.threshold_bytes).max()) {
            (Some(dip), _) => format!(
                "It fell below {} in {}.",
                size(dip.threshold_bytes),
                count(dip.intervals, "sample interval")
            ),
            (None, Some(highest)) => format!(
                "It did not dip below any threshold, the highest being {}.",
                size(highest)
            ),
            (None, None) => String::new(),
        }
    }
}
