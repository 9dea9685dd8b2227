//! Progress of long work: a bar on standard error where that is a terminal, else nothing.

pub use indicatif::ProgressBar;
use indicatif::{ProgressDrawTarget, ProgressStyle};

/// Returns a progress bar of `steps` steps with a label in front of it.
#[must_use]
pub fn bar(label: &str, steps: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("  {prefix:<9} {bar:32} {msg}") {
        bar.set_style(style.progress_chars("━╸ "));
    }
    bar.set_prefix(label.to_owned());
    bar
}
