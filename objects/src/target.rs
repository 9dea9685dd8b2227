//! A place on an object store: `file:///folder`, or `s3://bucket/prefix` with options.

use crate::client::Connector;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::ClientConfigKey;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time for which a single request is repeated. After that the failure is reported.
const RETRY: Duration = Duration::from_secs(30);
const RETRIES: usize = 3;

/// Fault of a URL or of an option.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL names no place.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// An option is invalid.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The client does not accept the options or the environment.
    #[error(transparent)]
    Store(#[from] object_store::Error),
}

/// Reason why a URL names no place.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// The scheme is unknown.
    #[error("neither s3://bucket/prefix nor file:///folder")]
    Scheme,
    /// The folder's path is relative.
    #[error("write file:///absolute/folder")]
    RelativeFolder,
    /// The bucket is missing.
    #[error("write s3://bucket/prefix")]
    NoBucket,
    /// The prefix is no valid path.
    #[error(transparent)]
    Prefix(#[from] object_store::path::Error),
}

/// Reason why an option is invalid.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// A folder has no options.
    #[error("a folder has none, and no {name}")]
    OfFolder {
        /// Name of the option.
        name: String,
    },
    /// The S3 client has no such option.
    #[error("{name} is no option of S3")]
    Unknown {
        /// Name of the option.
        name: String,
    },
    /// Secrets are never options.
    #[error(
        "{name} is a secret, which is taken from the environment alone (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and so on)"
    )]
    Secret {
        /// Name of the option.
        name: String,
    },
    /// The URL names the bucket.
    #[error("{name} is part of the URL")]
    Bucket {
        /// Name of the option.
        name: String,
    },
    /// The option is one of object_store's HTTP client.
    #[error("{name} is not to be set: Gleaner has an HTTP client of its own")]
    Client {
        /// Name of the option.
        name: String,
    },
    /// The option is neither true nor false.
    #[error("{name} is true or false")]
    NotBoolean {
        /// Name of the option.
        name: String,
    },
}

/// A place on an object store.
#[derive(Clone, Debug)]
pub struct Target {
    url: String,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Folder(PathBuf),
    Bucket {
        bucket: String,
        prefix: Location,
        options: Vec<(AmazonS3ConfigKey, String)>,
    },
}

impl Target {
    /// Makes the target at `url`. `options` are those of `object_store`'s S3 client, by name:
    /// `region`, `endpoint`, `allow_http` and so on. The environment (`AWS_REGION`, `AWS_ENDPOINT_URL`,
    /// `AWS_ALLOW_HTTP` and so on) has those that are absent here.
    ///
    /// # Errors
    /// [`TargetError`].
    pub fn new(url: &str, options: &BTreeMap<String, String>) -> Result<Self, TargetError> {
        let target = Self {
            url: url.trim_end_matches('/').to_owned(),
            place: place(url, options)?,
        };
        if matches!(target.place, Place::Bucket { .. }) {
            target.open()?;
        }
        Ok(target)
    }

    /// Path of the folder; `None` for a bucket.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder),
            Place::Bucket { .. } => None,
        }
    }

    /// Opens the store as it is at present.
    ///
    /// # Errors
    /// A folder that does not exist, or options that the S3 client does not accept.
    pub fn open(&self) -> object_store::Result<Arc<dyn ObjectStore>> {
        Ok(match &self.place {
            // The folder must exist: if a disk is not mounted, its empty mount point must not be
            // filled.
            Place::Folder(folder) => {
                Arc::new(LocalFileSystem::new_with_prefix(folder)?.with_fsync(true))
            }
            Place::Bucket {
                bucket,
                prefix,
                options,
            } => {
                let mut builder = AmazonS3Builder::from_env()
                    .with_http_connector(Connector)
                    .with_retry(RetryConfig {
                        max_retries: RETRIES,
                        retry_timeout: RETRY,
                        ..RetryConfig::default()
                    })
                    .with_bucket_name(bucket);
                for (key, value) in options {
                    builder = builder.with_config(*key, value);
                }
                Arc::new(PrefixStore::new(builder.build()?, prefix.clone()))
            }
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn place(url: &str, options: &BTreeMap<String, String>) -> Result<Place, TargetError> {
    if let Some(folder) = url.strip_prefix("file://") {
        let folder = folder.trim_end_matches('/');
        if !folder.starts_with('/') {
            return Err(UrlError::RelativeFolder.into());
        }
        return match options.keys().next() {
            Some(name) => Err(OptionError::OfFolder { name: name.clone() }.into()),
            None => Ok(Place::Folder(folder.into())),
        };
    }
    let rest = url.strip_prefix("s3://").ok_or(UrlError::Scheme)?;
    let rest = rest.trim_end_matches('/');
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        return Err(UrlError::NoBucket.into());
    }
    Ok(Place::Bucket {
        bucket: bucket.to_owned(),
        prefix: Location::parse(prefix).map_err(UrlError::from)?,
        options: options.iter().map(option).collect::<Result<_, _>>()?,
    })
}

fn option((name, value): (&String, &String)) -> Result<(AmazonS3ConfigKey, String), OptionError> {
    use AmazonS3ConfigKey as Key;
    let known = name.parse::<Key>();
    let name = || name.clone();
    let key = known.map_err(|_| OptionError::Unknown { name: name() })?;
    let is_secret = matches!(key, Key::AccessKeyId | Key::SecretAccessKey | Key::Token)
        || name().ends_with("sse_customer_key_base64");
    match key {
        _ if is_secret => Err(OptionError::Secret { name: name() }),
        Key::Bucket => Err(OptionError::Bucket { name: name() }),
        Key::Client(ref client) if *client != ClientConfigKey::AllowHttp => {
            Err(OptionError::Client { name: name() })
        }
        Key::Client(_) if value != "true" && value != "false" => {
            Err(OptionError::NotBoolean { name: name() })
        }
        key => Ok((key, value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, options: &[(&str, &str)]) -> Result<Target, TargetError> {
        let options = options.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        Target::new(url, &options.collect())
    }

    #[test]
    fn faults_of_urls_and_options_are_errors() {
        for (url, options, expected) in [
            ("/srv/mirror", &[][..], "neither s3://"),
            ("gs://bucket", &[], "neither s3://"),
            ("file://srv", &[], "file:///absolute/folder"),
            ("s3://", &[], "s3://bucket/prefix"),
            ("s3:///prefix", &[], "s3://bucket/prefix"),
            ("s3://bucket/a//b", &[], "a//b"),
            ("file:///srv", &[("region", "x")], "a folder has none"),
            ("s3://b", &[("regoin", "x")], "regoin is no option"),
            ("s3://b", &[("secret_access_key", "x")], "environment alone"),
            ("s3://b", &[("token", "x")], "environment alone"),
            (
                "s3://b",
                &[("sse_customer_key_base64", "x")],
                "environment alone",
            ),
            ("s3://b", &[("bucket", "x")], "part of the URL"),
            ("s3://b", &[("timeout", "1s")], "client of its own"),
            ("s3://b", &[("allow_http", "perhaps")], "true or false"),
        ] {
            let said = target(url, options).unwrap_err().to_string();
            assert!(said.contains(expected), "{url} {options:?}: {said}");
        }
    }

    #[test]
    fn places_are_shown_as_they_were_written() {
        let options = [("endpoint", "http://127.0.0.1:1"), ("allow_http", "true")];
        let bucket = target("s3://bucket/a/b/", &options).unwrap();
        assert_eq!(bucket.to_string(), "s3://bucket/a/b");
        assert_eq!(bucket.folder(), None);
        let folder = target("file:///srv/mirror/", &[]).unwrap();
        assert_eq!(folder.to_string(), "file:///srv/mirror");
        assert_eq!(folder.folder(), Some(Path::new("/srv/mirror")));
    }
}
