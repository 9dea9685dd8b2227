//! `gleaner report`.

use crate::analyze;
use crate::args::Report;
use anyhow::Context;
use gleaner_reports::{Options, Report as Made};
use gleaner_schemas::findings::Findings;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Report) -> anyhow::Result<()> {
    let findings = analyze::findings(&args.dataset, &analyze::parameters(&args.measures))?;
    let title = args.title.clone().unwrap_or_else(|| title(&findings));
    let page = page(&findings, title, &args.measures.time_zone)?;
    if args.output == Path::new("-") {
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(());
    }
    write(&args.output, &page)
}

/// The page, made now.
pub(crate) fn page(findings: &Findings, title: String, time_zone: &str) -> anyhow::Result<String> {
    let options = Options {
        title,
        time_zone: time_zone.to_owned(),
        made_at_ms: jiff::Timestamp::now().as_millisecond(),
        ..Options::default()
    };
    Ok(Made::new(findings, None, &options)?.html()?)
}

/// Writes beside and renames, so that a page being read is never half a page.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)
        .with_context(|| format!("cannot write in {}", folder.display()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.as_file().set_permissions(permissions()))
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.persist(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// A report is for people to open: as an ordinary file, not private as temporary ones are.
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

/// "Memory of lab-7", or of so many hosts.
pub(crate) fn title(findings: &Findings) -> String {
    match findings.hosts.as_slice() {
        [host] => format!("Memory of {}", host.host_name),
        hosts => format!("Memory of {} hosts", hosts.len()),
    }
}
