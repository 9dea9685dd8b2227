//! The file that divides hosts into sites: TOML, with the patterns of each site's hosts.
//!
//! ```toml
//! lab = ["lab-*", "printer-1"]
//! office = ["desk-??", "3f9c0a7e51d24c80"]
//! ```
//!
//! A pattern is a host's id, or the whole of its last name; in a name, `*` stands for any characters and `?` for
//! one. A host that no pattern matches is at the site `other`.

use anyhow::{Context, bail, ensure};
use regex::RegexSet;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use toml::Spanned;

/// Site of the hosts that no pattern matches.
const OTHER: &str = "other";
/// Maximum length of a site's name, which is part of file names.
const MOST_LETTERS: usize = 64;

/// Sites of a fleet.
#[derive(Debug)]
pub(super) struct Sites {
    /// Names in the order of the file; the last is `other`.
    pub(super) names: Vec<String>,
    /// Position of each host's site among the names, by host id. Hosts of the site `other` are absent.
    of_host: HashMap<String, usize>,
}

impl Sites {
    /// Position of a host's site among the names.
    pub(super) fn of(&self, host: &str) -> usize {
        let other = self.names.len().saturating_sub(1);
        self.of_host.get(host).copied().unwrap_or(other)
    }
}

/// Patterns of all sites.
#[derive(Debug)]
struct Patterns {
    names: Vec<String>,
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    /// Position of the pattern's site.
    site: usize,
    line: usize,
}

/// Reads the file at `path`, and divides hosts into its sites. `hosts` has the ids of all hosts, each with the
/// host's name if it is known.
///
/// # Errors
/// An unreadable or malformed file, a name that no file can have, a pattern that occurs twice or matches no host,
/// or a host that matches patterns of two sites.
pub(super) fn read(path: &Path, hosts: &BTreeMap<String, Option<String>>) -> anyhow::Result<Sites> {
    let divided = || {
        let text = std::fs::read_to_string(path)?;
        parse(&text)?.divide(hosts)
    };
    divided().with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<Patterns> {
    let file: BTreeMap<Spanned<String>, Vec<Spanned<String>>> = toml::from_str(text)?;
    let line = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let mut sites: Vec<_> = file.into_iter().collect();
    ensure!(
        !sites.is_empty(),
        "the file has no sites: add lines such as lab = [\"lab-*\"]"
    );
    sites.sort_by_key(|(name, _)| name.span().start);
    let mut names = Vec::new();
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut lines: HashMap<String, usize> = HashMap::new();
    for (name, texts) in sites {
        let line_of_site = line(name.span().start);
        let name = name.into_inner();
        check(&name).with_context(|| format!("line {line_of_site}"))?;
        ensure!(
            !texts.is_empty(),
            "line {line_of_site}: the site {name} has no patterns"
        );
        for text in texts {
            let line = line(text.span().start);
            let text = text.into_inner();
            ensure!(!text.is_empty(), "line {line}: a pattern is empty");
            if let Some(first) = lines.insert(text.clone(), line) {
                bail!("line {line}: the pattern {text:?} is in line {first}, too");
            }
            let site = names.len();
            patterns.push(Pattern { text, site, line });
        }
        names.push(name);
    }
    names.push(OTHER.to_owned());
    Ok(Patterns { names, patterns })
}

/// Checks a site's name, which is part of file names and addresses.
fn check(name: &str) -> anyhow::Result<()> {
    ensure!(
        name != OTHER,
        "{OTHER} is the site of the hosts that no pattern matches: choose another name"
    );
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_whole = name.chars().all(is_safe) && name.len() <= MOST_LETTERS;
    ensure!(
        is_whole && name.starts_with(|c: char| c.is_ascii_alphanumeric()),
        "{name:?} cannot be a site's name: use at most {MOST_LETTERS} letters (a to z), digits, dots, hyphens and \
         underscores, a letter or digit first"
    );
    Ok(())
}

impl Pattern {
    fn is_wildcard(&self) -> bool {
        self.text.contains(['*', '?'])
    }

    fn regex(&self) -> String {
        let escaped = regex::escape(&self.text);
        let any = escaped.replace(r"\*", ".*").replace(r"\?", ".");
        format!("^(?s:{any})$")
    }
}

impl Patterns {
    fn divide(self, hosts: &BTreeMap<String, Option<String>>) -> anyhow::Result<Sites> {
        let all = self.patterns.iter().enumerate();
        let (wild, exact): (Vec<_>, Vec<_>) = all.partition(|(_, p)| p.is_wildcard());
        let exact: HashMap<&str, usize> = exact
            .iter()
            .map(|(at, pattern)| (pattern.text.as_str(), *at))
            .collect();
        let regexes = RegexSet::new(wild.iter().map(|(_, pattern)| pattern.regex()))
            .context("the patterns are too long together")?;
        let mut used = HashSet::new();
        let mut of_host = HashMap::new();
        for (id, name) in hosts {
            let name = name.as_deref();
            let mut found: Vec<usize> = [Some(id.as_str()), name]
                .into_iter()
                .flatten()
                .filter_map(|text| exact.get(text).copied())
                .collect();
            if let Some(name) = name {
                let matches = regexes.matches(name).into_iter();
                found.extend(matches.filter_map(|at| Some(wild.get(at)?.0)));
            }
            used.extend(found.iter().copied());
            let patterns = found.iter().filter_map(|&at| self.patterns.get(at));
            let patterns: Vec<&Pattern> = patterns.collect();
            let Some(&first) = patterns.first() else {
                continue;
            };
            if let Some(other) = patterns.iter().find(|p| p.site != first.site) {
                bail!(
                    "the host {} is at two sites: line {} ({:?}) and line {} ({:?}) match it",
                    name.unwrap_or(id),
                    first.line,
                    first.text,
                    other.line,
                    other.text
                );
            }
            of_host.insert(id.clone(), first.site);
        }
        let mut unused = self.patterns.iter().enumerate();
        if let Some((_, pattern)) = unused.find(|(at, _)| !used.contains(at)) {
            bail!(
                "line {}: no host's id or last name matches {:?}: correct the pattern, or remove it",
                pattern.line,
                pattern.text
            );
        }
        Ok(Sites {
            names: self.names,
            of_host,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> BTreeMap<String, Option<String>> {
        let named = [
            ("1a", Some("lab-1")),
            ("2b", Some("lab-22")),
            ("3c", Some("desk.7")),
            ("4d", None),
            ("5e", Some("otter")),
        ];
        let named = named.map(|(id, name)| (id.to_owned(), name.map(str::to_owned)));
        named.into_iter().collect()
    }

    fn divided(text: &str) -> anyhow::Result<Sites> {
        parse(text)?.divide(&hosts())
    }

    #[test]
    fn hosts_are_divided_by_ids_names_and_wildcards() {
        let text = "# sites\nlab = ['lab-*']\noffice = [\n  'desk.?',\n  '4d',\n]\n";
        let sites = divided(text).unwrap();
        assert_eq!(sites.names, ["lab", "office", "other"]);
        let of = |id: &str| sites.names[sites.of(id)].as_str();
        assert_eq!(
            ["1a", "2b", "3c", "4d", "5e", "new"].map(of),
            ["lab", "lab", "office", "office", "other", "other"]
        );
        // The names' order is the file's.
        let sites = divided("z = ['otter']\na = ['lab-1']\n").unwrap();
        assert_eq!(sites.names, ["z", "a", "other"]);
    }

    #[test]
    fn a_pattern_is_a_whole_name_and_only_wildcards_are_special() {
        for text in [
            "a = ['lab']",
            "a = ['lab-?x']",
            "a = ['desk?7?']",
            "a = ['d.*7']",
        ] {
            assert!(divided(text).is_err(), "{text}");
        }
        for text in [
            "a = ['desk?7']",
            "a = ['*']",
            "a = ['l*2']",
            "a = ['??????']",
        ] {
            assert!(divided(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn faults_are_told_with_their_lines() {
        let cases = [
            ("", "no sites"),
            ("lab = 'lab-*'", "line 1"),
            ("lab = ['lab-*']\nlab = ['otter']", "line 2"),
            (
                "a = ['otter']\nb = ['x', 'otter']",
                "line 2: the pattern \"otter\" is in line 1, too",
            ),
            (
                "a = ['otter']\n\nb = [\n 'lab-*',\n 'lap-*']",
                "line 5: no host's id or last name matches \"lap-*\"",
            ),
            (
                "a = ['lab-*']\nb = ['lab-1']",
                "the host lab-1 is at two sites",
            ),
            (
                "a = ['4d']\nb = ['lab-1', '1a']\nc=['2?']",
                "line 3: no host",
            ),
            ("a = ['otter']\nother = ['4d']", "line 2"),
            ("'a/b' = ['otter']", "line 1"),
            ("'.a' = ['otter']", "cannot be a site's name"),
            ("a = []", "line 1: the site a has no patterns"),
            ("a = ['']", "line 1: a pattern is empty"),
        ];
        for (text, expected) in cases {
            let error = format!("{:#}", divided(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = divided("a = ['lab-*']\nb = ['1a']")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("line 1") && error.contains("line 2"),
            "{error}"
        );
    }
}
