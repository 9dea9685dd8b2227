//! Location of the copy: `file:///folder`, or `s3://bucket/prefix` with options.

use super::client::Connector;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::client::ClientConfigKey;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a single request is repeated. After that the failure is reported, and all steps are tried
/// again.
const RETRY: Duration = Duration::from_secs(30);
const RETRIES: usize = 3;

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
        prefix: Path,
        options: Vec<(AmazonS3ConfigKey, String)>,
    },
}

impl Target {
    /// Makes the target at `url`. `options` are those of `object_store`'s S3 client, by name:
    /// `region`, `endpoint`, `allow_http` and so on.
    ///
    /// # Errors
    /// Fault of the options, as a sentence.
    pub fn new(url: &str, options: &BTreeMap<String, String>) -> Result<Self, String> {
        let url = url.trim_end_matches('/');
        let place = if let Some(folder) = url.strip_prefix("file://") {
            if !folder.starts_with('/') {
                return Err(format!("publish = {url:?}: write file:///absolute/folder"));
            }
            if let Some(key) = options.keys().next() {
                return Err(format!("publish_options: a folder has none, and no {key}"));
            }
            Place::Folder(folder.into())
        } else if let Some(rest) = url.strip_prefix("s3://") {
            let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
            if bucket.is_empty() {
                return Err(format!("publish = {url:?}: write s3://bucket/prefix"));
            }
            Place::Bucket {
                bucket: bucket.to_owned(),
                prefix: Path::parse(prefix).map_err(|e| format!("publish = {url:?}: {e}"))?,
                options: options.iter().map(option).collect::<Result<_, _>>()?,
            }
        } else {
            return Err(format!(
                "publish = {url:?} is neither s3://bucket/prefix nor file:///folder"
            ));
        };
        let target = Self {
            url: url.to_owned(),
            place,
        };
        if matches!(target.place, Place::Bucket { .. }) {
            target.open().map_err(|e| format!("publish_options: {e}"))?;
        }
        Ok(target)
    }

    /// Opens the store as it is at present.
    pub(super) fn open(&self) -> object_store::Result<Arc<dyn ObjectStore>> {
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

fn option((name, value): (&String, &String)) -> Result<(AmazonS3ConfigKey, String), String> {
    use AmazonS3ConfigKey as Key;
    let key = name.parse();
    let key = key.map_err(|_| format!("publish_options: {name} is no option of S3"))?;
    let is_secret = matches!(key, Key::AccessKeyId | Key::SecretAccessKey | Key::Token)
        || name.ends_with("sse_customer_key_base64");
    match key {
        _ if is_secret => Err(format!(
            "publish_options: {name} is a secret, which is taken from the environment alone (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and so on)"
        )),
        Key::Bucket => Err(format!("publish_options: {name} stands in publish")),
        Key::Client(ref client) if *client != ClientConfigKey::AllowHttp => Err(format!(
            "publish_options: {name} is not to be set: the collector has an HTTP client of its own"
        )),
        Key::Client(_) if value != "true" && value != "false" => {
            Err(format!("publish_options: {name} is true or false"))
        }
        key => Ok((key, value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, options: &[(&str, &str)]) -> Result<Target, String> {
        let options = options.iter().map(|(k, v)| ((*k).into(), (*v).into()));
        Target::new(url, &options.collect())
    }

    #[test]
    fn what_cannot_be_a_place_is_told() {
        for (url, options, told) in [
            ("/srv/mirror", &[][..], "neither s3://"),
            ("gs://bucket", &[], "neither s3://"),
            ("file://srv", &[], "file:///absolute/folder"),
            ("s3:///prefix", &[], "s3://bucket/prefix"),
            ("s3://bucket/a//b", &[], "s3://bucket/a//b"),
            ("file:///srv", &[("region", "x")], "a folder has none"),
            ("s3://b", &[("regoin", "x")], "regoin is no option"),
            ("s3://b", &[("secret_access_key", "x")], "environment alone"),
            ("s3://b", &[("token", "x")], "environment alone"),
            (
                "s3://b",
                &[("sse_customer_key_base64", "x")],
                "environment alone",
            ),
            ("s3://b", &[("bucket", "x")], "stands in publish"),
            ("s3://b", &[("timeout", "1s")], "client of its own"),
            ("s3://b", &[("allow_http", "perhaps")], "true or false"),
        ] {
            let said = target(url, options).unwrap_err();
            assert!(said.contains(told), "{url} {options:?}: {said}");
        }
    }

    #[test]
    fn places_are_told_as_they_were_written() {
        let options = [("endpoint", "http://127.0.0.1:1"), ("allow_http", "true")];
        let bucket = target("s3://bucket/a/b/", &options).unwrap();
        assert_eq!(bucket.to_string(), "s3://bucket/a/b");
        let folder = target("file:///srv/mirror/", &[]).unwrap();
        assert_eq!(folder.to_string(), "file:///srv/mirror");
    }
}
