//! Sources from which `follow` learns the host's quota.

mod file;
mod pick;
mod watch;

use super::{Failure, FollowArgs};
use gleaner_schemas::lending::{HostQuota, Quotas};
use pick::HostChoice;
use std::sync::mpsc::Sender;

/// News of the host's quota.
#[derive(Debug)]
pub(super) enum QuotaNews {
    /// The present quota.
    Quota(HostQuota),
    /// The quota is unchanged, and the source still works.
    AsBefore,
    /// The source does not know the host, or no longer knows it.
    Nothing(Failure),
    /// The source fails. This is reported once, until the source works again.
    Trouble(Failure),
    /// A signal to end arrived.
    End,
}

/// Follows the configured source in a separate thread.
///
/// # Errors
/// [`Failure::Trust`] or [`Failure::Recruiter`] for a permanent fault.
pub(super) fn start(args: &FollowArgs, heard: Sender<QuotaNews>) -> Result<(), Failure> {
    let pick = HostChoice::new(args.host.clone());
    if let Some(path) = &args.file {
        let (path, quota_timeout) = (path.clone(), args.quota_timeout);
        std::thread::spawn(move || file::follow(&path, quota_timeout, pick, &heard));
    } else if let Some(url) = &args.recruiter {
        let watch = watch::Watch::new(url, args)?;
        std::thread::spawn(move || watch.follow(pick, &heard));
    }
    Ok(())
}

fn quotas(json: &[u8], from: impl Into<String>) -> Result<Quotas, Failure> {
    serde_json::from_slice(json).map_err(|source| Failure::Quotas {
        from: from.into(),
        source,
    })
}
