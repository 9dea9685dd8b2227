//! The files that document every key: each stands there in a comment, `# key = value`, so that the file as it is sets nothing.

/// After a value that is no default: nothing is set unless somebody sets it.
const EXAMPLE: &str = "# for example";

/// A key of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// With its tables: `["ship", "rate"]`.
    pub path: Vec<String>,
    /// As it would stand in a file by itself.
    pub text: String,
    /// Whether its value is that of a key that is not set.
    pub is_default: bool,
}

/// Every key of such a file, taken out of its comment, in order.
#[must_use]
pub fn uncommented(file: &str) -> Vec<Setting> {
    let mut table: Option<&str> = None;
    let mut found = Vec::new();
    for line in file.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = Some(name);
        }
        let setting = line.strip_prefix("# ").and_then(|l| l.split_once(" = "));
        let Some((key, value)) = setting else {
            continue;
        };
        if !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            continue; // prose
        }
        let header = table.map(|table| format!("[{table}]\n"));
        found.push(Setting {
            path: table.into_iter().chain([key]).map(str::to_owned).collect(),
            text: format!("{}{key} = {value}\n", header.unwrap_or_default()),
            is_default: !value.contains(EXAMPLE),
        });
    }
    found
}
