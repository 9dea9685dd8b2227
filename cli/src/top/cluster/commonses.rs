//! Commonses that a recruiter knows, from its `/v1/commons`.

use crate::top::draw::{fitted, length, size, wrapped};
use crate::top::ink::Ink;
use gleaner_schemas::commons::{BLOCK_BYTES, CommonsView};
use gleaner_schemas::units::thousands;
use gleaner_trust::Address;
use gleaner_trust::http::{HttpClient, Limits};
use ratatui::style::Style;
use ratatui::text::Line;
use serde::Deserialize;
use std::time::Duration;

/// Timeout of the recruiter's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of the recruiter's answer, which has some 200 bytes per member.
const ANSWER_BYTES: u64 = 1 << 30;
/// Maximum number of commonses that are shown above the hosts.
const MOST_SHOWN: usize = 4;
/// Maximum length of a shown name, in columns.
const NAME_WIDTH: usize = 64;

/// Reason why a recruiter's commonses are unknown.
#[derive(Debug, thiserror::Error)]
#[error("the recruiter at {url} does not answer: {reason}")]
pub(super) struct SilentRecruiter {
    url: String,
    reason: String,
}

/// Part of the recruiter's answer that is used.
#[derive(Deserialize)]
struct CommonsAnswer {
    commonses: Vec<CommonsView>,
}

/// Requests the commonses from the recruiter at `url`, such as `http://127.0.0.1:7484`.
///
/// # Errors
/// There is no answer, or it is not that of a recruiter.
pub(super) fn fetch(url: &str) -> Result<Vec<CommonsView>, SilentRecruiter> {
    let silent = |reason: String| SilentRecruiter {
        url: url.to_owned(),
        reason,
    };
    let address = Address::parse(url).map_err(|e| silent(e.to_string()))?;
    if address.is_secret() {
        let reason = "only http:// is asked, on the recruiter's own machine";
        return Err(silent(reason.to_owned()));
    }
    let limits = Limits {
        whole: Some(PATIENCE),
        ..Limits::default()
    };
    let http = HttpClient::plain("gleaner", limits);
    let response = http.agent().get(address.url("/v1/commons")).call();
    let mut response = response.map_err(|e| silent(e.to_string()))?;
    let body = response.body_mut().with_config().limit(ANSWER_BYTES);
    let body = body.read_to_string().map_err(|e| silent(e.to_string()))?;
    if response.status() != 200 {
        return Err(silent(format!("{}: {}", response.status(), body.trim())));
    }
    let none = |e| silent(format!("its answer is none of a recruiter's ({e})"));
    let answer: CommonsAnswer = serde_json::from_str(&body).map_err(none)?;
    Ok(answer.commonses)
}

/// Lines above the hosts: one sentence for each commons.
pub(super) fn lines(views: &[CommonsView], width: usize, ink: Ink) -> Vec<Line<'static>> {
    let mut texts: Vec<String> = views
        .iter()
        .take(MOST_SHOWN)
        .map(|view| text(view, ink))
        .collect();
    match views.len() {
        0 => texts.push("no commons has members".to_owned()),
        count if count > MOST_SHOWN => {
            texts.push(format!("and {} more commonses", count - MOST_SHOWN));
        }
        _ => {}
    }
    let lines = texts.iter();
    lines
        .flat_map(|text| wrapped(text, width, 2, Style::new()))
        .collect()
}

fn text(view: &CommonsView, ink: Ink) -> String {
    let blocks = |count: u64| size(count.saturating_mul(BLOCK_BYTES));
    let frames = view
        .members
        .iter()
        .map(|member| u64::from(member.member.frames));
    let weights = match view.weights_age_ms {
        None => "no weights yet".to_owned(),
        Some(age_ms) => format!(
            "weights {} of {} ago",
            blocks(view.weights_sum),
            length(age_ms)
        ),
    };
    let min_age = view.min_age_ms.map_or_else(String::new, |age_ms| {
        let age_ms = i64::try_from(age_ms).unwrap_or(i64::MAX);
        format!(", minimum age {}", length(age_ms))
    });
    format!(
        "commons {}: {} member{} with {}; epoch {}{}, {weights}{min_age}",
        fitted(&view.name, NAME_WIDTH, ink),
        thousands(view.members.len()),
        if view.members.len() == 1 { "" } else { "s" },
        blocks(frames.sum()),
        view.epoch,
        if view.is_initiator {
            ""
        } else {
            " of another recruiter"
        },
    )
}
