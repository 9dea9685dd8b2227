//! The modules of one crate, and how they use each other. Each path in the code is followed through imports
//! and re-exports to the module that defines the item.

use super::graph::Arrow;
use super::tokens::{ModuleContents, Path};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A module: its file and its contents.
struct Module {
    file: String,
    children: BTreeSet<String>,
    said: ModuleContents,
}

/// Modules of a crate, by their path within it. The path of the root is empty.
pub(super) struct Sources {
    modules: BTreeMap<Path, Module>,
}

/// Target of a path in the code.
#[derive(Clone)]
enum Target {
    Module(Path),
    /// An item that this module defines.
    ItemOf(Path),
}

/// Maximum number of re-exports to follow. If there are more, glob imports form a circle.
const MOST_STEPS: usize = 30;

impl Sources {
    /// Reads the modules of a crate's library or, if it has none, of its program.
    pub(super) fn of_crate(name: &str) -> Self {
        let src = gleaner_tests::repository().join(name).join("src");
        let text = |file: &str| fs::read_to_string(src.join(file)).ok();
        let root = if src.join("lib.rs").exists() {
            "lib.rs"
        } else {
            "main.rs"
        };
        Self::read(root, &text)
    }

    /// Reads the file `root` and the modules below it. `text` returns the text of a file, or `None` if the
    /// file does not exist.
    pub(super) fn read(root: &str, text: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut sources = Self {
            modules: BTreeMap::new(),
        };
        let said = ModuleContents::of(&text(root).unwrap());
        sources.add(Path::new(), root, said, text);
        sources
    }

    fn add(
        &mut self,
        path: Path,
        file: &str,
        mut said: ModuleContents,
        text: &dyn Fn(&str) -> Option<String>,
    ) {
        let mut children: BTreeSet<String> = said.files.clone();
        for (name, inner) in std::mem::take(&mut said.inline) {
            self.add(below(&path, &name), file, inner, text);
            children.insert(name);
        }
        for name in &said.files {
            let child = below(&path, name);
            let stem = child.join("/");
            let places = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
            let found = places.iter().find_map(|file| Some((file, text(file)?)));
            let (file, found) = found.unwrap_or_else(|| panic!("no file of module {stem}"));
            self.add(child, file, ModuleContents::of(&found), text);
        }
        let file = file.to_owned();
        self.modules.insert(
            path,
            Module {
                file,
                children,
                said,
            },
        );
    }

    /// Names of the top-level modules, which are called rooms.
    pub(super) fn rooms(&self) -> &BTreeSet<String> {
        &self.modules[&Path::new()].children
    }

    /// Returns the uses between files. Uses between a module and its parents or children are left out.
    pub(super) fn between_files(&self) -> BTreeSet<Arrow> {
        let file = |path: &Path| self.modules[path].file.clone();
        let arrows = self.arrows();
        let arrows = arrows.iter().map(|(user, used)| (file(user), file(used)));
        arrows.filter(|(user, used)| user != used).collect()
    }

    /// Returns the uses between top-level modules, each with the files in which it occurs.
    pub(super) fn between_rooms(&self) -> BTreeMap<Arrow, BTreeSet<String>> {
        let mut arrows: BTreeMap<Arrow, BTreeSet<String>> = BTreeMap::new();
        for (user, used) in self.arrows() {
            if user[0] != used[0] {
                let arrow = (user[0].clone(), used[0].clone());
                arrows
                    .entry(arrow)
                    .or_default()
                    .insert(self.modules[&user].file.clone());
            }
        }
        arrows
    }

    fn arrows(&self) -> BTreeSet<(Path, Path)> {
        let mut arrows = BTreeSet::new();
        for (user, module) in &self.modules {
            let items =
                module
                    .said
                    .paths
                    .iter()
                    .filter_map(|path| match self.target(user, path, 0)? {
                        Target::ItemOf(used) => Some(used),
                        Target::Module(_) => None, // other paths name the items of this module
                    });
            let globs =
                module
                    .said
                    .globs
                    .iter()
                    .filter_map(|path| match self.target(user, path, 0)? {
                        Target::ItemOf(used) | Target::Module(used) => Some(used),
                    });
            for used in items.chain(globs) {
                if !user.starts_with(&used) && !used.starts_with(user) {
                    arrows.insert((user.clone(), used));
                }
            }
        }
        arrows
    }

    /// Finds the target of `path`, which is written in the module `at`. Returns `None` if the target is not
    /// in this crate.
    fn target(&self, at: &Path, path: &[String], steps: usize) -> Option<Target> {
        if steps > MOST_STEPS {
            return None;
        }
        let said = &self.modules.get(at)?.said;
        match path.first()?.as_str() {
            "crate" => self.item(Path::new(), &path[1..], steps),
            "self" => self.item(at.clone(), &path[1..], steps),
            "super" => {
                let ups = path.iter().take_while(|s| *s == "super").count();
                let from = at[..at.len().checked_sub(ups)?].to_vec();
                self.item(from, &path[ups..], steps)
            }
            first if self.modules[at].children.contains(first) => {
                self.item(at.clone(), path, steps)
            }
            first => {
                let import = said.imports.get(first)?;
                (import.first()? != first).then(|| self.item(at.clone(), path, steps))?
            }
        }
    }

    /// Finds the target of `path`, whose first word is a name in the module `at`.
    fn item(&self, mut at: Path, mut path: &[String], steps: usize) -> Option<Target> {
        while let Some(first) = path.first() {
            let module = self.modules.get(&at)?;
            if module.children.contains(first) {
                at.push(first.clone());
                path = &path[1..];
                continue;
            }
            if let Some(import) = module.said.imports.get(first) {
                match self.target(&at, import, steps + 1)? {
                    Target::Module(found) => {
                        at = found;
                        path = &path[1..];
                        continue;
                    }
                    item => return Some(item),
                }
            }
            if !module.said.items.contains(first)
                && let Some(from) = self.glob_with(&at, first, steps)
            {
                return self.item(from, path, steps + 1);
            }
            return Some(Target::ItemOf(at));
        }
        Some(Target::Module(at))
    }

    /// Module from which `at` gets `name` by a glob import.
    fn glob_with(&self, at: &Path, name: &str, steps: usize) -> Option<Path> {
        let globs = self.modules[at].said.globs.iter();
        let mut modules = globs.filter_map(|glob| match self.target(at, glob, steps + 1)? {
            Target::Module(found) => Some(found),
            Target::ItemOf(_) => None,
        });
        modules.find(|found| {
            let module = &self.modules[found];
            let said = &module.said;
            module.children.contains(name)
                || said.items.contains(name)
                || said.imports.contains_key(name)
        })
    }
}

fn below(path: &Path, name: &str) -> Path {
    let mut path = path.clone();
    path.push(name.to_owned());
    path
}
