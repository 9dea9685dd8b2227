//! PDF and pictures of a page, made with an installed Chromium.

mod devtools;

use super::files::{beside, fill, url_path, write};
use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use devtools::Browser;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Names under which Chromium may be installed.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Script that lists the figures to write as pictures: those that answer the report's questions. Figures of
/// single hosts stay on the page only, since there are too many of them.
const FIGURES: &str = "[...document.querySelectorAll('figure[id]')]
    .filter((f) => f.querySelector('.plot') && !f.closest('details')).map((f) => f.id)";

/// Script that returns a figure's position on the page, once it is drawn.
const PLACE: &str = "(async (id) => {
    const figure = document.getElementById(id);
    figure.scrollIntoView({ behavior: 'instant' });
    while (!figure.querySelector('.plot .main-svg')) await new Promise((r) => setTimeout(r, 20));
    await new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
    for (const bar of figure.querySelectorAll('.modebar')) bar.style.display = 'none';
    const { x, y, width, height } = figure.getBoundingClientRect();
    const rim = 16;
    return { x: x + scrollX - rim, y: y + scrollY - rim, width: width + 2 * rim, height: height + 2 * rim };
  })";

/// Path of the given program, or of the first known one in PATH.
pub(super) fn find(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named.filter(|n| !n.as_os_str().is_empty()) {
        return Ok(named.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let programs = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let found = programs.into_iter().find(|program| program.is_file());
    found.with_context(|| {
        format!(
            "--pdf needs Chromium, and none of {} is in PATH: install one, or name it by --chromium",
            NAMES.join(", ")
        )
    })
}

/// Writes `NAME.pdf` and `NAME-figures/FIGURE.png` beside the page `NAME.html`.
pub(super) fn print(chromium: &Path, page: &Path) -> anyhow::Result<()> {
    let (pdf, pictures) = printed(chromium, page)
        .with_context(|| format!("{} did not print {}", chromium.display(), page.display()))?;
    write(&beside(page, ".pdf"), pdf)?;
    fill(&beside(page, "-figures"), "png", pictures)
}

type Pictures = Vec<(String, Vec<u8>)>;

fn printed(chromium: &Path, page: &Path) -> anyhow::Result<(Vec<u8>, Pictures)> {
    let page = std::path::absolute(page)?;
    let mut browser = Browser::start(chromium)?;
    // The picture is as wide as an A4 page allows, with double resolution.
    let screen = json!({ "width": 1000, "height": 800, "deviceScaleFactor": 2, "mobile": false });
    browser.ask("Emulation.setDeviceMetricsOverride", screen)?;
    let light = json!({ "features": [{ "name": "prefers-color-scheme", "value": "light" }] });
    browser.ask("Emulation.setEmulatedMedia", light)?;
    browser.open(&file_url(&page))?;
    let mut pictures = Vec::new();
    for id in evaluate(&mut browser, FIGURES)?
        .as_array()
        .into_iter()
        .flatten()
    {
        let Some(name) = id.as_str() else { continue };
        let clip = evaluate(&mut browser, &format!("{PLACE}({id})"))?;
        let mut clip = clip.as_object().cloned().context("a figure has no place")?;
        clip.insert("scale".to_owned(), json!(1));
        let wanted = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        let picture = data(&browser.ask("Page.captureScreenshot", wanted)?)?;
        pictures.push((file_name(name), picture));
    }
    let paper = json!({
        "printBackground": true, "preferCSSPageSize": true, "generateTaggedPDF": true,
        "paperWidth": 8.27, "paperHeight": 11.69,
    });
    let pdf = data(&browser.ask("Page.printToPDF", paper)?)?;
    browser.end();
    Ok((pdf, pictures))
}

fn evaluate(browser: &mut Browser, expression: &str) -> anyhow::Result<Value> {
    let wanted = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
    let mut answer = browser.ask("Runtime.evaluate", wanted)?;
    if let Some(exception) = answer.get("exceptionDetails") {
        bail!("the page failed: {exception}");
    }
    Ok(answer["result"]["value"].take())
}

fn data(answer: &Value) -> anyhow::Result<Vec<u8>> {
    let data = answer["data"].as_str().context("it sent nothing")?;
    STANDARD.decode(data).context("it sent no base64")
}

/// Makes a safe file name from a figure's id, as a precaution: Gleaner itself generates the ids.
fn file_name(id: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    format!("{}.png", id.chars().map(safe).collect::<String>())
}

fn file_url(path: &Path) -> String {
    format!("file://{}", url_path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_a_url() {
        assert_eq!(
            file_url(Path::new("/a b/ü#1?.html")),
            "file:///a%20b/%C3%BC%231%3F.html"
        );
    }

    #[test]
    fn a_picture_stays_in_its_folder() {
        assert_eq!(file_name("memory-week"), "memory-week.png");
        assert_eq!(file_name("../x"), "___x.png");
    }
}
