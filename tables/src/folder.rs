//! The folder of published tables: its lock, its mark, and durable writes. A file gets its name once it is complete.

use crate::{Result, TableError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// File that distinguishes published tables from any other folder, and lists them.
const MARK: &str = "gleaner-tables.json";
const LOCK: &str = ".lock";

/// A folder of published tables, locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    location: String,
    _lock: File,
}

/// Folder of one table.
#[derive(Debug)]
pub(crate) struct TableFolder {
    root: PathBuf,
    /// URL under which readers find the folder.
    pub(crate) location: String,
}

/// A file under a temporary name until [`UnfinishedFile::finish`].
#[derive(Debug)]
pub(crate) struct UnfinishedFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl Folder {
    /// Opens the folder `root`, or makes it. `location` is the URL under which readers find it; by default, its
    /// absolute path.
    pub(crate) fn open(root: &Path, location: Option<&str>) -> Result<Self> {
        create_folder(root).map_err(TableError::io("create folder", root))?;
        let root = fs::canonicalize(root).map_err(TableError::io("open", root))?;
        let location = match location {
            Some(location) => location.trim_end_matches('/').to_owned(),
            None => format!("file://{}", root.display()),
        };
        if root.to_str().is_none() {
            let detail = "the folder's path is not UTF-8";
            return Err(TableError::Location { location, detail });
        }
        check_location(&location)?;
        let is_ours = root.join(MARK).is_file();
        let entries = fs::read_dir(&root).and_then(|dir| dir.collect::<io::Result<Vec<_>>>());
        let entries = entries.map_err(TableError::io("list folder", &root))?;
        let mark = hidden(&root.join(MARK));
        let is_begun = |entry: &fs::DirEntry| entry.file_name() == LOCK || entry.path() == mark;
        if !is_ours && !entries.iter().all(is_begun) {
            return Err(TableError::NotEmpty { folder: root });
        }
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(root.join(LOCK))
            .map_err(TableError::io("open", root.join(LOCK)))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TableError::Locked { folder: root }),
            Err(TryLockError::Error(e)) => return Err(TableError::io("lock", root)(e)),
        }
        let folder = Self {
            root,
            location,
            _lock: lock,
        };
        if !is_ours {
            folder.mark(&[])?;
        }
        Ok(folder)
    }

    /// Folder of the table `name`.
    pub(crate) fn table(&self, name: &str) -> TableFolder {
        TableFolder {
            root: self.root.join(name),
            location: format!("{}/{name}", self.location),
        }
    }

    /// Checks that the disk has room for a file of `file_bytes`, and still `reserve_bytes` after that.
    pub(crate) fn check_room(&self, file_bytes: u64, reserve_bytes: u64) -> Result<()> {
        let disk = rustix::fs::statvfs(self.root.as_path()).map_err(io::Error::from);
        let disk = disk.map_err(TableError::io("look at", &self.root))?;
        let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        let needed_bytes = file_bytes.saturating_add(reserve_bytes);
        if free_bytes >= needed_bytes {
            return Ok(());
        }
        Err(TableError::NoRoom {
            folder: self.root.clone(),
            free_bytes,
            needed_bytes,
        })
    }

    /// Lists the tables, each by its name and the name of its newest metadata. Readers that join tables find here
    /// versions that belong together.
    pub(crate) fn mark(&self, tables: &[(&str, String)]) -> Result<()> {
        let listed = tables.iter();
        let listed =
            listed.map(|(table, name)| ((*table).to_owned(), json!(format!("{table}/{name}"))));
        let mark = json!({
            "format": "iceberg",
            "location": self.location,
            "tables": listed.collect::<serde_json::Map<String, Value>>(),
        });
        put(&self.root.join(MARK), format!("{mark:#}\n").as_bytes())
    }
}

/// Checks that readers understand a URL of published tables as it is written.
///
/// # Errors
/// [`TableError::Location`].
pub fn check_location(location: &str) -> Result<()> {
    let refuse = |detail| {
        Err(TableError::Location {
            location: location.to_owned(),
            detail,
        })
    };
    if !location.contains("://") {
        return refuse("write a URL such as s3://bucket/prefix or file:///srv/tables");
    }
    if location.contains(|c: char| "%?#".contains(c) || c.is_control()) {
        return refuse("readers disagree about %, ?, # and control characters in URLs");
    }
    Ok(())
}

impl TableFolder {
    /// Absolute path of the file `name`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Names of the files in the folder `metadata`.
    pub(crate) fn metadata_files(&self) -> Result<Vec<String>> {
        let folder = self.root.join("metadata");
        let names = entries(&folder)?.into_iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            Some(name.to_owned())
        });
        Ok(names.collect())
    }

    /// Content of the file `name`.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>> {
        let path = self.path(name);
        fs::read(&path).map_err(TableError::io("read", path))
    }

    /// Length of the file `name` in bytes; `None` if it does not exist.
    pub(crate) fn length(&self, name: &str) -> Result<Option<u64>> {
        let path = self.path(name);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(TableError::io("look at", path)(e)),
        }
    }

    /// Begins the file `name`.
    pub(crate) fn create(&self, name: &str) -> Result<UnfinishedFile> {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            create_folder(folder).map_err(TableError::io("create folder", folder))?;
        }
        let file = File::create(hidden(&path)).map_err(TableError::io("create", &path))?;
        Ok(UnfinishedFile { file, path })
    }

    /// Writes the file `name`, replacing an earlier one.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> Result<()> {
        if let Some(folder) = self.path(name).parent() {
            create_folder(folder).map_err(TableError::io("create folder", folder))?;
        }
        put(&self.path(name), content)
    }

    /// Removes all files but those that `named` has, and folders of days without files. Returns the number of
    /// removed files.
    pub(crate) fn remove_others(&self, named: &BTreeSet<String>) -> Result<usize> {
        let mut removed = 0;
        let mut folders = entries(&self.root.join("data"))?;
        folders.retain(|folder| folder.is_dir());
        let days = folders.len();
        folders.push(self.root.join("metadata"));
        for (index, folder) in folders.iter().enumerate() {
            let files = entries(folder)?;
            let mut left = files.len();
            for path in files {
                let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
                if name.is_none_or(|name| !named.contains(name)) {
                    fs::remove_file(&path).map_err(TableError::io("remove", &path))?;
                    left -= 1;
                    removed += 1;
                }
            }
            if left == 0 && index < days {
                fs::remove_dir(folder).map_err(TableError::io("remove", folder))?;
            }
        }
        Ok(removed)
    }
}

impl UnfinishedFile {
    /// Syncs the file and gives it its name.
    pub(crate) fn finish(self) -> Result<()> {
        let finish = || -> io::Result<()> {
            self.file.sync_all()?;
            fs::rename(hidden(&self.path), &self.path)?;
            self.path.parent().map_or(Ok(()), sync)
        };
        finish().map_err(TableError::io("finish", &self.path))
    }
}

/// Writes a file whole: readers find the earlier content or the new one, also after a power loss.
fn put(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = File::create(hidden(path)).map_err(TableError::io("create", path))?;
    file.write_all(content)
        .map_err(TableError::io("write", path))?;
    let path = path.to_owned();
    UnfinishedFile { file, path }.finish()
}

/// Temporary path of the file; readers skip names that begin with a dot.
fn hidden(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Makes a folder and its parents durably.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    create_folder(parent)?;
    match fs::create_dir(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    sync(if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    })
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Paths of a folder's entries; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed: io::Result<Vec<PathBuf>> = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|dir| dir.map(|entry| Ok(entry?.path())).collect()),
    };
    listed.map_err(TableError::io("list folder", folder))
}
