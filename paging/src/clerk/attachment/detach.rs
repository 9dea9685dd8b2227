//! Undoes an attachment, from any process.

use super::failure::AttachError;
use super::folder::{Folder, names};
use super::release::{ReleaseResult, device, release};
use super::{process, room, swap};
use std::path::Path;
use std::time::Duration;

/// Options of detaching.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetachOptions {
    /// Detaches even if memory may run out.
    pub(crate) is_forced: bool,
    /// Time without progress after which the server counts as lost.
    pub(crate) timeout: Duration,
}

/// Detaches `name`, or the only attachment; returns its name and the result.
pub(crate) fn detach(
    runtime: &Path,
    name: Option<&str>,
    how: DetachOptions,
) -> Result<(String, ReleaseResult), AttachError> {
    if !rustix::process::geteuid().is_root() {
        return Err(AttachError::NotRoot);
    }
    // The swap area that is being removed may hold pages of this very process, and may fail to return them.
    process::lock_memory();
    let name = match name {
        Some(name) => name.to_owned(),
        None => only(names(runtime)?)?,
    };
    let (folder, record) = Folder::open(runtime, &name)?;
    if let Some(device) = device(&folder, &record)
        && let Some(area) = swap::on_device(&device)?
        && !how.is_forced
    {
        room::check(&area)?;
    }
    let released = release(&folder, &record, how.timeout)?;
    Ok((name, released))
}

fn only(mut names: Vec<String>) -> Result<String, AttachError> {
    if names.len() > 1 {
        return Err(AttachError::Several(names.join(", ")));
    }
    names.pop().ok_or(AttachError::NothingAtAll)
}
