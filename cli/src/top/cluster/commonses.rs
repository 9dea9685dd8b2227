//! Commonses that a recruiter knows, from its `/v1/commons`.

use crate::top::draw::{fitted, length, size, wrapped};
use crate::top::ink::Ink;
use gleaner_schemas::commons::{BLOCK_BYTES, CommonsView};
use gleaner_schemas::units::thousands;
use gleaner_trust::{JsonAnswer, LoopbackError, LoopbackServer};
use ratatui::style::Style;
use ratatui::text::Line;
use serde::Deserialize;

const RECRUITER: LoopbackServer = LoopbackServer {
    kind: "recruiter",
    program: "gleaner",
    from_elsewhere: "read /v1/commons with a certificate",
};
/// Maximum number of commonses that are shown above the hosts.
const MOST_SHOWN: usize = 4;
/// Maximum length of a shown name, in columns.
const NAME_WIDTH: usize = 64;

/// Part of the recruiter's answer that is used.
#[derive(Deserialize)]
struct CommonsAnswer {
    commonses: Vec<CommonsView>,
}

/// Requests the commonses from the recruiter at `url`, such as `http://127.0.0.1:7484`.
///
/// # Errors
/// There is no answer, or it is not that of a recruiter.
pub(super) fn fetch(url: &str) -> Result<Vec<CommonsView>, LoopbackError> {
    let answer: JsonAnswer<CommonsAnswer> = RECRUITER.get(url, "/v1/commons")?;
    Ok(answer.value.commonses)
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
