//! Names of the formats of streams.

use super::input::{decompressed, name};
use serde::Deserialize;
use std::path::Path;

/// Name of a format, as in `gleaner export --stream-format` and in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum FormatName {
    /// libCacheSim's binary format.
    #[serde(rename = "oracleGeneral")]
    OracleGeneral,
    /// Text with one request per line.
    #[serde(rename = "csv")]
    Csv,
    /// Format of the Storage Performance Council.
    #[serde(rename = "spc")]
    Spc,
    /// CSV of requests to volumes, with a header.
    #[serde(rename = "blocks")]
    Blocks,
    /// Memory accesses that valgrind's tool lackey prints.
    #[serde(rename = "lackey")]
    Lackey,
}

/// Endings of file names, longer ones first.
const ENDINGS: [(&str, FormatName); 6] = [
    (".oracleGeneral.bin", FormatName::OracleGeneral),
    (".oracleGeneral", FormatName::OracleGeneral),
    (".blocks.csv", FormatName::Blocks),
    (".csv", FormatName::Csv),
    (".spc", FormatName::Spc),
    (".lackey", FormatName::Lackey),
];

impl FormatName {
    /// Determines the format from a file's name. Also returns the name without folders and ending: `web` for
    /// `traces/web.oracleGeneral.bin.zst`.
    #[must_use]
    pub fn of_file(path: &Path) -> (String, Option<Self>) {
        let name = name(path);
        let name = decompressed(&name).unwrap_or(&name);
        let mut endings = ENDINGS.into_iter();
        let found =
            endings.find_map(|(ending, format)| Some((name.strip_suffix(ending)?, Some(format))));
        let (before, format) = found.unwrap_or((name, None));
        (before.to_owned(), format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_what_is_in_them() {
        let of = |name: &str| {
            let (before, format) = FormatName::of_file(Path::new(name));
            (before, format.map(|format| format!("{format:?}")))
        };
        for (file, before, format) in [
            ("a/web.oracleGeneral", "web", Some("OracleGeneral")),
            (
                "w35.vscsi.oracleGeneral.bin.zst",
                "w35.vscsi",
                Some("OracleGeneral"),
            ),
            ("a.csv/b.blocks.csv.zst.22", "b", Some("Blocks")),
            ("web.csv", "web", Some("Csv")),
            ("web.1.spc.zst", "web.1", Some("Spc")),
            ("sort.lackey.zst", "sort", Some("Lackey")),
            ("web.txt", "web.txt", None),
            ("csv", "csv", None),
        ] {
            let expected = (before.to_owned(), format.map(str::to_owned));
            assert_eq!(of(file), expected, "{file}");
        }
    }
}
