//! Contents of one module's source: its child modules, imports and items, and the paths that it names. Code
//! of tests (`#[cfg(test)]`) is skipped. Comments and strings are not read.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Segments of a path, such as `crate`, `layout`, `put`.
pub(super) type Path = Vec<String>;

#[derive(Debug, Default)]
pub(super) struct ModuleContents {
    /// Modules in their own files: `mod a;`.
    pub(super) files: BTreeSet<String>,
    /// Modules within this text: `mod a { … }`.
    pub(super) inline: BTreeMap<String, ModuleContents>,
    /// Names from imports such as `use a::b as name`, each with the path for which it stands. The import may
    /// be public or not.
    pub(super) imports: BTreeMap<String, Path>,
    /// Paths of glob imports: `a::b` for `use a::b::*`.
    pub(super) globs: Vec<Path>,
    /// Names of items that the module defines.
    pub(super) items: BTreeSet<String>,
    /// Paths in the code that have at least two segments, including imports.
    pub(super) paths: BTreeSet<Path>,
}

const DEFINING: [&str; 8] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union",
];

impl ModuleContents {
    pub(super) fn of(text: &str) -> Self {
        let mut said = Self::default();
        said.read(text.parse().unwrap(), true);
        said
    }

    /// Reads `tokens`. `at_top` is true if items that they define belong to the module itself, and false if
    /// these items are inside another item.
    fn read(&mut self, tokens: TokenStream, at_top: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.read_one(&tokens, at, at_top);
        }
    }

    /// Reads the token or item at the index `at`; returns the index after it.
    fn read_one(&mut self, tokens: &[TokenTree], at: usize, at_top: bool) -> usize {
        match &tokens[at] {
            TokenTree::Group(group) => {
                self.read(group.stream(), false);
                at + 1
            }
            TokenTree::Punct(p) if p.as_char() == '#' => {
                if attribute(tokens, at).is_some_and(|a| is_for_tests(&a)) {
                    end_of_item(tokens, at)
                } else {
                    at + 1 // paths in attributes are read too
                }
            }
            TokenTree::Punct(_) if is_colons(tokens, at) => {
                // `::std::fs`, or the path after `<T as Trait>`, is skipped: it is no path within this crate.
                at + (3 * segments(tokens, at + 2).len()).max(2)
            }
            TokenTree::Ident(word) => {
                let word = word.to_string();
                match (word.as_str(), tokens.get(at + 1), tokens.get(at + 2)) {
                    ("pub", Some(TokenTree::Group(group)), _) if is_visibility(group) => at + 2,
                    ("mod", Some(TokenTree::Ident(name)), Some(body)) => {
                        self.read_module(&name.to_string(), body);
                        at + 3
                    }
                    ("use", Some(next), _) if !is(next, '<') => {
                        let end = (at..tokens.len()).find(|&i| is(&tokens[i], ';'));
                        let end = end.unwrap_or(tokens.len());
                        self.read_imports(&tokens[at + 1..end], &[]);
                        end + 1
                    }
                    ("macro_rules", Some(_), Some(TokenTree::Ident(name))) if at_top => {
                        self.items.insert(name.to_string());
                        at + 3
                    }
                    (word, Some(TokenTree::Ident(name)), _) if DEFINING.contains(&word) => {
                        if at_top {
                            self.items.insert(name.to_string()); // also "fn" of `const fn`, which does no harm
                        }
                        at + 1
                    }
                    _ => {
                        let path = segments(tokens, at);
                        let next = at + 3 * path.len() - 2;
                        if path.len() > 1 {
                            self.paths.insert(path);
                        }
                        next
                    }
                }
            }
            _ => at + 1,
        }
    }

    fn read_module(&mut self, name: &str, body: &TokenTree) {
        match body {
            TokenTree::Group(group) => {
                let mut inner = Self::default();
                inner.read(group.stream(), true);
                self.inline.insert(name.to_owned(), inner);
            }
            _ => {
                self.files.insert(name.to_owned());
            }
        }
    }

    /// Reads a tree of imports; `before` is the path in front of the tree.
    fn read_imports(&mut self, tokens: &[TokenTree], before: &[String]) {
        let mut path = before.to_vec();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(p) if p.as_char() == '*' => {
                    self.globs.push(path);
                    return;
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for tree in inner.split(|t| is(t, ',')).filter(|t| !t.is_empty()) {
                        self.read_imports(tree, &path);
                    }
                    return;
                }
                TokenTree::Ident(word) if word == "as" => {
                    if let Some(name) = tokens.get(at + 1) {
                        self.import(name.to_string(), path);
                    }
                    return;
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                _ if at == 0 && before.is_empty() => return, // `use ::name` names another crate
                _ => {}
            }
            at += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last() {
            self.import(name.clone(), path);
        }
    }

    fn import(&mut self, name: String, path: Path) {
        self.paths.insert(path.clone());
        self.imports.insert(name, path); // `name` may be `_`, which does no harm
    }
}

fn is(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == character)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|t| is(t, ':'));
    colon(at) && colon(at + 1)
}

/// Path that begins at the token with the index `at`.
fn segments(tokens: &[TokenTree], mut at: usize) -> Path {
    let mut path = Path::new();
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        if !is_colons(tokens, at + 1) {
            break;
        }
        at += 3;
    }
    path
}

fn is_visibility(group: &Group) -> bool {
    let first = group.stream().into_iter().next().map(|t| t.to_string());
    let words = ["crate", "super", "self", "in"];
    group.delimiter() == Delimiter::Parenthesis
        && first.is_some_and(|first| words.contains(&first.as_str()))
}

/// Attribute `#[…]` or `#![…]` that begins at the index `at`, if there is one.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<Group> {
    let body = if is(tokens.get(at + 1)?, '!') {
        at + 2
    } else {
        at + 1
    };
    match tokens.get(body)? {
        TokenTree::Group(g) if g.delimiter() == Delimiter::Bracket => Some(g.clone()),
        _ => None,
    }
}

fn is_for_tests(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// Index after the item to which the attribute at the index `at` belongs.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|t| is(t, '#')) {
        at += 2;
    }
    let at = at.min(tokens.len());
    let is_body =
        |t: &TokenTree| matches!(t, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
    let words = tokens[at..]
        .iter()
        .take_while(|t| !is(t, ';') && !is_body(t));
    let is_import = words.map(ToString::to_string).any(|word| word == "use");
    let ends = |t: &TokenTree| is(t, ';') || (is_body(t) && !is_import);
    let rest = tokens[at..].iter().position(ends);
    rest.map_or(tokens.len(), |last| at + last + 1)
}
