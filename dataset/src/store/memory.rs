//! Store in memory, for tests: records requests, holds them back, and fails them.

use super::Store;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

pub(crate) const URL: &str = "memory://traces/east";

#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    files: Mutex<BTreeMap<String, Bytes>>,
    /// Path and length of each answer to a request of a file.
    answers: Mutex<Vec<(String, u64)>>,
    is_failing: Mutex<bool>,
    is_held_back: Mutex<bool>,
    released: Condvar,
    /// Number of answers that are held back.
    waiting: AtomicUsize,
}

impl MemoryStore {
    /// Store with all files of a folder.
    pub(crate) fn of(root: &Path) -> Self {
        let store = Self::default();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
                    store.put(name, fs::read(&path).unwrap());
                }
            }
        }
        store
    }

    pub(crate) fn put(&self, path: &str, content: impl Into<Bytes>) {
        let mut files = self.files.lock().unwrap();
        files.insert(path.to_owned(), content.into());
    }

    pub(crate) fn remove(&self, path: &str) {
        self.files.lock().unwrap().remove(path);
    }

    /// Content of a file, without a request.
    pub(crate) fn content(&self, path: &str) -> Bytes {
        self.files.lock().unwrap()[path].clone()
    }

    /// Lets all further requests fail, or succeed again.
    pub(crate) fn fail(&self, fails: bool) {
        *self.is_failing.lock().unwrap() = fails;
    }

    /// Holds back all answers, or releases them.
    pub(crate) fn hold_back(&self, holds_back: bool) {
        *self.is_held_back.lock().unwrap() = holds_back;
        self.released.notify_all();
    }

    /// Number of answers that are held back at present.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Takes the record of the answers so far: paths and lengths.
    pub(crate) fn take_answers(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.answers.lock().unwrap())
    }

    fn answer(&self, path: &str, cut: impl FnOnce(&Bytes) -> Bytes) -> io::Result<(Bytes, u64)> {
        let mut is_held_back = self.is_held_back.lock().unwrap();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        while *is_held_back {
            is_held_back = self.released.wait(is_held_back).unwrap();
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(is_held_back);
        if *self.is_failing.lock().unwrap() {
            return Err(io::Error::other("connection refused"));
        }
        let files = self.files.lock().unwrap();
        let content = files.get(path).ok_or(io::ErrorKind::NotFound)?;
        let answer = cut(content);
        let mut answers = self.answers.lock().unwrap();
        answers.push((path.to_owned(), answer.len() as u64));
        Ok((answer, content.len() as u64))
    }
}

impl Store for MemoryStore {
    fn url(&self) -> &str {
        URL
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        if *self.is_failing.lock().unwrap() {
            return Err(io::Error::other("connection refused"));
        }
        let files = self.files.lock().unwrap();
        let inside = files
            .keys()
            .filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/'));
        let names = inside.filter(|name| !name.contains('/'));
        Ok(names.map(str::to_owned).collect())
    }

    fn read(&self, path: &str) -> io::Result<Bytes> {
        Ok(self.answer(path, Bytes::clone)?.0)
    }

    fn read_range(&self, path: &str, range: Range<u64>) -> io::Result<Bytes> {
        let cut = |content: &Bytes| {
            let end = content.len().min(range.end as usize);
            content.slice(end.min(range.start as usize)..end)
        };
        Ok(self.answer(path, cut)?.0)
    }

    fn read_end(&self, path: &str, length: u64) -> io::Result<(Bytes, u64)> {
        let cut = |content: &Bytes| content.slice(content.len().saturating_sub(length as usize)..);
        self.answer(path, cut)
    }
}
