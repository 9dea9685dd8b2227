//! A host's points, prepared for its figures over time: runs, axes, idle stretches, thresholds.

use super::thin::{POINTS_DRAWN, thin};
use crate::page::figure::{Key, Unit, axis, layout, time_axis};
use crate::view::{Memory, View};
use crate::wording::{list, share, size};
use gleaner_schemas::findings::{HostSummary, MemoryPoint};
use plotly::common::{Anchor, DashType, Marker, Mode};
use plotly::layout::{Annotation, HoverMode, RangeMode, Shape, ShapeLayer, ShapeLine, ShapeType};
use plotly::{Layout, Scatter};

/// Points of one host, in runs without gaps.
pub(super) struct Course<'a> {
    pub view: &'a View<'a>,
    pub host: &'a HostSummary,
    pub memory: Memory,
    pub runs: Vec<Vec<&'a MemoryPoint>>,
    /// Points that are drawn.
    pub drawn: Vec<Vec<&'a MemoryPoint>>,
    pub unit: Unit,
}

impl<'a> Course<'a> {
    /// Returns the points of the view's only host; `None` without points.
    pub(super) fn of(view: &'a View<'a>) -> Option<Self> {
        let host = view.only_host()?;
        let memory = view.memory_of(host)?;
        let mut runs: Vec<Vec<&MemoryPoint>> = Vec::new();
        for point in view
            .findings
            .memory_over_time
            .iter()
            .filter(|p| p.host_id == host.host_id)
        {
            match runs.last_mut() {
                Some(run) if !point.is_after_gap => run.push(point),
                _ => runs.push(vec![point]),
            }
        }
        // Without points there is nothing to draw, although the memory is known from the hosts' summaries.
        if runs.is_empty() {
            return None;
        }
        let unit = Unit::of(memory.physical_bytes);
        Some(Self {
            view,
            host,
            memory,
            drawn: thin(&runs, POINTS_DRAWN),
            runs,
            unit,
        })
    }

    /// Value on the memory axis, rounded to a ten-thousandth of the host's memory: finer than a pixel, with
    /// few digits.
    pub(super) fn number(&self, bytes: f64) -> f64 {
        let finest = self
            .unit
            .number(self.memory.physical_bytes / 10_000.0)
            .max(1e-6);
        let scale = 10_f64.powi(-finest.log10().floor() as i32);
        (self.unit.number(bytes) * scale).round() / scale
    }

    pub(super) fn trace(
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

    pub(super) fn times(&self) -> Vec<Vec<i64>> {
        // Times are rounded down to the second.
        let times = |run: &Vec<&MemoryPoint>| run.iter().map(|p| p.time_ms / 1000 * 1000).collect();
        self.drawn.iter().map(times).collect()
    }

    pub(super) fn layout(&self) -> Layout {
        let (from, to) = (self.host.from_time_ms, self.host.to_time_ms);
        let title = format!("time, {}", self.view.clock.zone_over(from, to));
        let memory_axis = axis()
            .title(self.unit.name)
            .range_mode(RangeMode::ToZero)
            .tick_format(",~r");
        layout()
            .hover_mode(HoverMode::XUnified)
            .x_axis(match self.view.span {
                // The axis shows the whole requested time, even parts without samples, so that hosts can be
                // compared.
                Some(span) => time_axis(&title).range(vec![span.from_ms, span.until_ms]),
                None => time_axis(&title),
            })
            .y_axis(memory_axis)
    }

    /// The idle periods, shaded between two heights of the plot (0: bottom, 1: top).
    pub(super) fn idle_bands(&self, colour: &str, foot: f64, head: f64) -> Vec<Shape> {
        let first = self.host.from_time_ms;
        let band = |from: i64, to: i64| {
            Shape::new()
                .shape_type(ShapeType::Rect)
                .name(colour)
                .layer(ShapeLayer::Below)
                .y_ref("paper")
                .x0(from.max(first) as f64)
                .x1(to as f64)
                .y0(foot)
                .y1(head)
                .line(ShapeLine::new().width(0.0))
        };
        let periods = self.view.findings.idle_periods.iter();
        periods
            .map(|p| band(p.from_time_ms, p.to_time_ms))
            .collect()
    }

    pub(super) fn idle_key(&self, colour: &'static str, mark: &'static str) -> Option<Key> {
        let share = self.host.idle_share.map(share).unwrap_or_default();
        (!self.view.findings.idle_periods.is_empty()).then(|| Key {
            colour,
            mark,
            label: "idle".into(),
            value: share,
        })
    }

    /// Lines at the thresholds of dips, each with a label above; close lines share a label.
    pub(super) fn thresholds(&self) -> (Vec<Shape>, Vec<Annotation>) {
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
}
