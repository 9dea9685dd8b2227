//! Copies of the captured trees, for alteration.

use crate::trees::TREES;
use gleaner_agent::config::{Settings, Units};
use gleaner_agent::identity::FileIdKey;
use gleaner_agent::sample::sampler::Sampler;
use gleaner_schemas::column::{Row, Value};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// Alteration of a file.
pub(crate) enum Alteration {
    /// Removes the file.
    Gone,
    /// Removes the lines that begin with this text.
    Without(&'static str),
    /// Removes the first line that begins with this text.
    WithoutFirst(&'static str),
    /// Replaces a text in the lines that begin with the first text.
    Says(&'static str, &'static str),
}
/// A copy of a captured tree, with its files' original contents.
pub(crate) struct Copy {
    root: tempfile::TempDir,
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    before: bool,
    altered: RefCell<Vec<PathBuf>>,
}

impl Copy {
    pub(crate) fn of(tree: &str) -> Self {
        let mut files = Vec::new();
        let source = Path::new(TREES).join(tree);
        read_all(&source, Path::new(""), &mut files);
        files.sort();
        let before = source.join("t0").is_dir();
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let copy = Self {
            root,
            files,
            before,
            altered: RefCell::default(),
        };
        copy.restore();
        copy
    }

    /// Returns the path of a file or folder that is about to be altered.
    pub(crate) fn altered(&self, name: &Path) -> PathBuf {
        let path = self.root.path().join(name);
        self.altered.borrow_mut().push(path.clone());
        path
    }

    /// Alters a file line by line.
    pub(crate) fn alter(&self, file: &str, how: &Alteration) {
        let begins = |line: &str, with: &str| line.trim_start().starts_with(with);
        let name = Path::new(file);
        let path = self.altered(name);
        let (_, text) = self.files.iter().find(|(path, _)| path == name).unwrap();
        let text = std::str::from_utf8(text).unwrap();
        let mut seen = false;
        let line = |line: &str| match how {
            Alteration::Gone => None,
            Alteration::Without(with) => (!begins(line, with)).then(|| line.to_owned()),
            Alteration::WithoutFirst(with) => {
                let is_first = begins(line, with) && !std::mem::replace(&mut seen, true);
                (!is_first).then(|| line.to_owned())
            }
            Alteration::Says(with, instead) if begins(line, with) => Some((*instead).to_owned()),
            Alteration::Says(..) => Some(line.to_owned()),
        };
        let altered: String = text.split_inclusive('\n').filter_map(line).collect();
        assert_ne!(altered, text, "nothing to alter in {file}");
        match how {
            Alteration::Gone => std::fs::remove_file(path).unwrap(),
            _ => std::fs::write(path, altered).unwrap(),
        }
    }

    /// Restores the altered files.
    pub(crate) fn restore(&self) {
        for path in self.altered.take() {
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
        for (name, text) in &self.files {
            let path = self.root.path().join(name);
            if std::fs::symlink_metadata(&path).is_err() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
        }
    }

    /// Makes a sampler of this tree; it starts with the tree's earlier moment, if there is one.
    pub(crate) fn sampler(&self) -> Sampler {
        let at = |moment: &str, root: &str| match self.before {
            true => self.root.path().join(moment).join(root),
            false => self.root.path().join(root),
        };
        let settings = Settings {
            proc_root: at("t1", "proc"),
            sys_root: at("t1", "sys"),
            dev_root: at("t1", "dev"),
            run_root: at("t1", "run"),
            units: Units {
                page_size_bytes: if self.before { 4096 } else { 65_536 },
                ticks_per_second: 100,
            },
            headroom_share: 0.15,
            always_active: Vec::new(),
            guest_processes: Vec::new(),
            always_active_cgroups: Vec::new(),
            damon: false,
            opens: false,
        };
        let mut sampler = Sampler::new(settings, FileIdKey::random().unwrap()).unwrap();
        if self.before {
            sampler.prime_from(&at("t0", "proc")).unwrap();
        }
        sampler
    }
}

fn read_all(folder: &Path, name: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = name.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            read_all(&entry.path(), &name, files);
        } else {
            files.push((name, std::fs::read(entry.path()).unwrap()));
        }
    }
}

/// Values of a row by column name.
pub(crate) fn values<R: Row>(row: &R) -> Vec<(&'static str, Value)> {
    let names = R::TABLE.columns.iter().map(|column| column.name);
    names.zip(row.to_values()).collect()
}
