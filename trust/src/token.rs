//! One-time tokens, which an administrator gives to a new host.
//!
//! A token consists of 32 random hex digits (its secret), a dot, and the fingerprint of the authority. By the
//! fingerprint, a new host recognises the right collector before it trusts any authority. The folder
//! `tokens/` contains only hashes of the secrets: it reveals no token.

use crate::{Result, TrustError, files, hex, random};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time for which the record of an expired token is kept. While the record exists, the error is "expired" or
/// "used", and not "unknown".
const REMEMBERED: Duration = Duration::from_secs(30 * 86_400);

#[derive(Serialize, Deserialize)]
struct Record {
    expires_s: u64,
    host_id: Option<String>,
}

/// Fingerprint of the authority that made a token: SHA-256 of its certificate, in hex digits.
pub fn fingerprint(token: &str) -> Result<&str> {
    split(token).map(|(_, fingerprint)| fingerprint)
}

fn split(token: &str) -> Result<(&str, &str)> {
    match token.trim().split_once('.') {
        Some((secret, authority)) if hex::is_lower(secret, 32) && hex::is_lower(authority, 64) => {
            Ok((secret, authority))
        }
        _ => Err(TrustError::TokenUnknown),
    }
}

pub(crate) fn folder(authority: &Path) -> PathBuf {
    authority.join("tokens")
}

pub(crate) fn make(
    authority: &Path,
    fingerprint: &str,
    expires: SystemTime,
    host: Option<&str>,
    now: SystemTime,
) -> Result<String> {
    forget_old(&folder(authority), now)?;
    let secret = hex::encode(&random::bytes::<16>()?);
    let record = Record {
        expires_s: seconds(expires),
        host_id: host.map(str::to_owned),
    };
    let path = path(authority, &secret);
    let json = serde_json::to_vec(&record).map_err(|e| TrustError::io(&path)(e.into()))?;
    files::write(&path, &json, files::SECRET)?;
    Ok(format!("{secret}.{fingerprint}"))
}

/// A token that is neither used nor expired.
pub(crate) struct UsableToken {
    path: PathBuf,
    record: Record,
}

/// Finds the record of a token that is neither used nor expired.
pub(crate) fn find(
    authority: &Path,
    fingerprint: &str,
    token: &str,
    now: SystemTime,
) -> Result<UsableToken> {
    let (secret, of) = split(token)?;
    if of != fingerprint {
        return Err(TrustError::TokenUnknown);
    }
    let path = path(authority, secret);
    let Some(json) = files::read_if_there(&path)? else {
        let was_used = used(&path).exists();
        return Err(if was_used {
            TrustError::TokenUsed
        } else {
            TrustError::TokenUnknown
        });
    };
    let record: Record = serde_json::from_slice(&json).map_err(|e| TrustError::Content {
        path: path.clone(),
        wanted: "a token's record (remove the file and make another token)",
        reason: e.to_string(),
    })?;
    if record.expires_s < seconds(now) {
        return Err(TrustError::TokenExpired);
    }
    Ok(UsableToken { path, record })
}

impl UsableToken {
    pub(crate) fn host(&self) -> Option<&str> {
        self.record.host_id.as_deref()
    }

    /// Marks the token as used by renaming its record. The rename succeeds only once, even if several calls
    /// have read the record.
    pub(crate) fn mark_used(self) -> Result<()> {
        match fs::rename(&self.path, used(&self.path)) {
            Ok(()) => files::sync_folder_of(&self.path),
            Err(e) if e.kind() == ErrorKind::NotFound => Err(TrustError::TokenUsed),
            Err(e) => Err(TrustError::io(self.path)(e)),
        }
    }
}

fn path(authority: &Path, secret: &str) -> PathBuf {
    folder(authority).join(hex::encode(&Sha256::digest(secret.as_bytes())))
}

fn used(path: &Path) -> PathBuf {
    path.with_extension("used")
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// Removes records of tokens that expired long ago.
fn forget_old(folder: &Path, now: SystemTime) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(TrustError::io(folder))? {
        let path = entry.map_err(TrustError::io(folder))?.path();
        let Some(json) = files::read_if_there(&path)? else {
            continue; // removed in the meantime
        };
        let Ok(record) = serde_json::from_slice::<Record>(&json) else {
            continue; // being written, or a foreign file
        };
        if record.expires_s + REMEMBERED.as_secs() < seconds(now) {
            let _ = fs::remove_file(&path); // another command may have been faster
        }
    }
    Ok(())
}
