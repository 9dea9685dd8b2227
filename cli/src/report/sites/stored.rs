//! Stored results of one site: its parts of the analyses, and its figures for the table of sites. The page of all
//! hosts is made from them, perhaps on another machine.

use crate::report::files::write;
use anyhow::Context;
use gleaner_reports::SiteFigures;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Folder of the parts, in the folder of the sites' pages.
const FOLDER: &str = ".parts";

/// Results of one site.
pub(super) struct StoredSite {
    /// Part of the requested time's analysis.
    pub(super) now: Vec<u8>,
    /// Part of the analysis of the time before; absent without a comparison.
    pub(super) before: Option<Vec<u8>>,
    /// Figures of the site; absent if no host has samples.
    pub(super) figures: Option<SiteFigures>,
}

/// Names of a site's files.
struct Files {
    now: PathBuf,
    before: PathBuf,
    figures: PathBuf,
}

impl Files {
    fn of(sites_folder: &Path, site: &str) -> Self {
        let file = |kind: &str| sites_folder.join(FOLDER).join(format!("{site}.{kind}"));
        Self {
            now: file("now"),
            before: file("before"),
            figures: file("json"),
        }
    }
}

impl StoredSite {
    /// Stores the results in the folder of the sites' pages. The figures are written last: they show that all
    /// files of the site are complete.
    pub(super) fn keep(&self, sites_folder: &Path, site: &str) -> anyhow::Result<()> {
        let folder = sites_folder.join(FOLDER);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot write {}", folder.display()))?;
        let files = Files::of(sites_folder, site);
        remove(&files.figures)?;
        write(&files.now, &self.now)?;
        match &self.before {
            Some(before) => write(&files.before, before)?,
            None => remove(&files.before)?,
        }
        write(&files.figures, serde_json::to_string(&self.figures)?)
    }

    /// Reads the results of a site.
    ///
    /// # Errors
    /// The site has no complete results there, or a file is unreadable.
    pub(super) fn read(sites_folder: &Path, site: &str) -> anyhow::Result<Self> {
        let files = Files::of(sites_folder, site);
        let figures = fs::read(&files.figures);
        if figures
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::NotFound)
        {
            anyhow::bail!(
                "the site {site} has no part in {}: make its page first, with --site {site}",
                sites_folder.display()
            );
        }
        let shown = |path: &Path| path.display().to_string();
        let figures = figures.with_context(|| shown(&files.figures))?;
        let before = match fs::read(&files.before) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            before => Some(before.with_context(|| shown(&files.before))?),
        };
        Ok(Self {
            now: fs::read(&files.now).with_context(|| shown(&files.now))?,
            before,
            figures: serde_json::from_slice(&figures).with_context(|| shown(&files.figures))?,
        })
    }
}

/// Removes the results of all sites.
pub(super) fn remove_all(sites_folder: &Path) -> anyhow::Result<()> {
    let folder = sites_folder.join(FOLDER);
    match fs::remove_dir_all(&folder) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
