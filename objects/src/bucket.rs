//! The files of a dataset on an object store, for readers that wait.

use crate::causes::in_full;
use bytes::Bytes;
use gleaner_dataset::Store;
use object_store::path::Path as Location;
use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// Maximum number of threads for requests; more requests wait for a thread.
const REQUESTS_AT_ONCE: usize = 64;
/// Parts of object_store's messages about an empty object, of which no store can return a range: an answer with
/// status 416, or one without a range.
const NO_RANGE: [&str; 2] = ["status code: 416 ", "non-partial response"];
/// Parts of object_store's messages about a refused list, whose error has no variant of its own.
const REFUSED: [&str; 2] = ["status code: 401 ", "status code: 403 "];
/// Address from which object_store requests the credentials of a cloud instance, if the environment has none.
const INSTANCE_CREDENTIALS: &str = "169.254.169.254";

/// Files of a dataset in a bucket, below a prefix.
#[derive(Debug)]
pub(crate) struct Bucket {
    url: String,
    store: Arc<dyn ObjectStore>,
    /// Runs the store's asynchronous requests. The thread that calls waits for its own request.
    runtime: Runtime,
}

impl Bucket {
    /// The files in `store`, whose address in messages is `url`.
    ///
    /// # Errors
    /// The system's error if no thread can be started.
    pub(crate) fn new(url: String, store: Arc<dyn ObjectStore>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(REQUESTS_AT_ONCE)
            .thread_name("gleaner-objects")
            .enable_time()
            .build()?;
        Ok(Self {
            url,
            store,
            runtime,
        })
    }

    fn get(&self, path: &str, range: Option<GetRange>) -> io::Result<(Bytes, u64)> {
        let location = Location::from(path);
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let got = self.runtime.block_on(async {
            let got = self.store.get_opts(&location, options).await?;
            let object_bytes = got.meta.size;
            Ok::<_, Error>((got.bytes().await?, object_bytes))
        });
        got.map_err(failed)
    }
}

impl Store for Bucket {
    fn url(&self) -> &str {
        &self.url
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let folder = Location::from(folder);
        let listed = self.store.list_with_delimiter(Some(&folder));
        let listed = self.runtime.block_on(listed).map_err(failed)?;
        let names = listed
            .objects
            .iter()
            .filter_map(|object| object.location.filename());
        Ok(names.map(str::to_owned).collect())
    }

    fn read(&self, path: &str) -> io::Result<Bytes> {
        Ok(self.get(path, None)?.0)
    }

    fn read_range(&self, path: &str, range: Range<u64>) -> io::Result<Bytes> {
        Ok(self.get(path, Some(GetRange::Bounded(range)))?.0)
    }

    fn read_end(&self, path: &str, length: u64) -> io::Result<(Bytes, u64)> {
        match self.get(path, Some(GetRange::Suffix(length))) {
            Err(error) if NO_RANGE.iter().any(|part| error.to_string().contains(part)) => {
                let location = Location::from(path);
                match self.runtime.block_on(self.store.head(&location)) {
                    Ok(object) if object.size == 0 => Ok((Bytes::new(), 0)),
                    _ => Err(error),
                }
            }
            got => got,
        }
    }
}

/// Error with the store's whole message, and the remedy for missing credentials.
fn failed(error: Error) -> io::Error {
    let text = in_full(&error);
    let is_refused = match &error {
        Error::NotFound { .. } => return io::Error::new(io::ErrorKind::NotFound, text),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => true,
        _ => REFUSED.iter().any(|part| text.contains(part)),
    };
    let hint = match is_refused {
        true => {
            "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and that they may list the bucket and get its objects; for a public bucket, set AWS_SKIP_SIGNATURE=true"
        }
        false if text.contains(INSTANCE_CREDENTIALS) => {
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SKIP_SIGNATURE=true for a public bucket"
        }
        false => return io::Error::other(text),
    };
    io::Error::other(format!("{text}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_dataset::{Dataset, Identity, RowsBuilder, Writer};
    use gleaner_schemas::column::Row as _;
    use gleaner_schemas::rows::HostRow;
    use object_store::memory::InMemory;
    use object_store::prefix::PrefixStore;
    use std::fs;

    fn bucket() -> (Arc<InMemory>, Bucket) {
        let objects = Arc::new(InMemory::new());
        let store = PrefixStore::new(Arc::<InMemory>::clone(&objects), "east");
        let bucket = Bucket::new("s3://traces/east".to_owned(), Arc::new(store)).unwrap();
        (objects, bucket)
    }

    fn put(bucket: &Bucket, path: &str, content: &[u8]) {
        let location = Location::from(path);
        let put = bucket.store.put(&location, content.to_vec().into());
        bucket.runtime.block_on(put).unwrap();
    }

    #[test]
    fn bytes_of_objects_are_read_whole_by_range_and_from_the_end() {
        let (_, bucket) = bucket();
        let path = "samples/date=2026-11-21/1.arrow";
        put(&bucket, path, b"0123456789");
        assert_eq!(bucket.read(path).unwrap(), "0123456789");
        assert_eq!(bucket.read_range(path, 2..5).unwrap(), "234");
        assert_eq!(bucket.read_end(path, 3).unwrap(), ("789".into(), 10));
        assert_eq!(
            bucket.read_end(path, 30).unwrap(),
            ("0123456789".into(), 10)
        );
        put(&bucket, "manifests/a.json", b"{}");
        put(&bucket, "manifests/b/c.json", b"{}");
        assert_eq!(bucket.list("manifests").unwrap(), ["a.json"]);
        assert!(bucket.list("nothing").unwrap().is_empty());
        for missing in [
            bucket.read("nothing").unwrap_err(),
            bucket.read_range("nothing", 0..1).unwrap_err(),
            bucket.read_end("nothing", 1).unwrap_err(),
        ] {
            assert_eq!(missing.kind(), io::ErrorKind::NotFound, "{missing}");
        }
    }

    #[test]
    fn a_dataset_is_read_below_the_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        let mut rows = RowsBuilder::new(&HostRow::TABLE);
        for host_id in ["a", "b"] {
            let identity = Identity {
                host_id,
                database_id: "database",
                sequence: 1,
                time_ms: 1_795_219_200_000,
            };
            rows.push(identity, HostRow::default().to_values()).unwrap();
        }
        let rows = rows.finish().unwrap();
        writer.append(&HostRow::TABLE, rows).unwrap();
        writer.seal().unwrap();
        let here = Dataset::open(folder.path()).unwrap();
        let (objects, bucket) = bucket();
        let files = here.manifest().files.iter().map(|file| file.path.as_str());
        for path in files.chain(["manifest.json"]) {
            put(&bucket, path, &fs::read(folder.path().join(path)).unwrap());
        }
        let listed = bucket.runtime.block_on(objects.list_with_delimiter(None));
        assert_eq!(listed.unwrap().common_prefixes, [Location::from("east")]);
        let there = Dataset::open_in(Arc::new(bucket)).unwrap();
        assert_eq!(there.hosts().unwrap(), ["a", "b"]);
        let scan = |dataset: &Dataset| -> Vec<_> {
            dataset.scan(&HostRow::TABLE).map(Result::unwrap).collect()
        };
        assert_eq!(scan(&there), scan(&here));
    }

    #[test]
    fn missing_rights_and_credentials_have_a_remedy() {
        let denied = Error::PermissionDenied {
            path: "manifest.json".to_owned(),
            source: "403".into(),
        };
        assert!(failed(denied).to_string().contains("AWS_SKIP_SIGNATURE"));
        let nowhere = Error::Generic {
            store: "S3",
            source: "cannot reach http://169.254.169.254/latest/api/token".into(),
        };
        assert!(
            failed(nowhere)
                .to_string()
                .contains("there are no credentials")
        );
    }
}
