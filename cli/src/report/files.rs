//! Writes a page and its companion files, so that a reader never sees an incomplete file.

use super::args::Companion;
use anyhow::Context;
use gleaner_reports::Report;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prefix of the temporary names under which files are written.
pub(super) const UNFINISHED: &str = ".gleaner-new-";

/// Writes a file under a temporary name and then renames it, so that no reader sees a partial page.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    write_with(path, |file| {
        file.write_all(content.as_ref())
            .with_context(|| format!("cannot write {}", path.display()))
    })
}

/// The same for a file whose content `fill` writes. After an error there is no file.
pub(crate) fn write_with<T>(
    path: &Path,
    fill: impl FnOnce(&mut File) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .permissions(permissions())
        .tempfile_in(folder)
        .with_context(|| format!("cannot write in {}", folder.display()))?;
    let filled = fill(file.as_file_mut())?;
    file.as_file()
        .sync_data()
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.persist(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(filled)
}

/// Permissions of a report: those of an ordinary file under the umask, so that other users can open it.
/// Without this, it would keep the permissions of a temporary file, which only its owner may read.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

/// Path `DIR/NAME` with `suffix`, for the page `DIR/NAME.html`.
pub(super) fn beside(page: &Path, suffix: &str) -> PathBuf {
    let mut name = page.file_stem().unwrap_or(OsStr::new("report")).to_owned();
    name.push(suffix);
    page.with_file_name(name)
}

/// Path of an address in a link: characters with a meaning in addresses are escaped.
pub(super) fn url_path(path: &Path) -> String {
    let mut url = String::new();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

/// Writes the companion files beside the page.
pub(super) fn companions(page: &Path, report: &Report, also: &[Companion]) -> anyhow::Result<()> {
    for kind in also {
        match kind {
            Companion::Md => write(&beside(page, ".md"), report.markdown())?,
            Companion::Json => write(&beside(page, ".json"), report.json())?,
            Companion::Csv => {
                let tables = report.tables().into_iter();
                let files = tables.map(|t| (format!("{}.csv", t.name), t.csv.into_bytes()));
                fill(&beside(page, "-tables"), "csv", files.collect())?;
            }
        }
    }
    Ok(())
}

/// Writes these files into the folder. Removes other files with this ending, which an earlier report with
/// more files may have left.
pub(super) fn fill(
    folder: &Path,
    ending: &str,
    files: Vec<(String, Vec<u8>)>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot write the folder {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    for (name, content) in &files {
        write(&folder.join(name), content)?;
    }
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let is_kept = files
            .iter()
            .any(|(name, _)| path.file_name() == Some(OsStr::new(name)));
        if path.extension() == Some(OsStr::new(ending)) && !is_kept {
            std::fs::remove_file(&path).with_context(cannot)?;
        }
    }
    Ok(())
}
