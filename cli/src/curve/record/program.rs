//! The file of a program: found as a shell finds it, and scripts by their interpreter. QEMU runs only binaries.

use anyhow::{Context, bail};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program's binary, and its arguments, of which the first is its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) binary: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// Interpreters of scripts may be scripts; the kernel follows as many.
const MOST_INTERPRETERS: usize = 4;
/// Bytes of a script's first line that the kernel reads.
const LINE_BYTES: u64 = 256;

impl Program {
    /// Finds the binary of a command in these folders (`PATH`).
    pub(super) fn find(command: &[OsString], folders: &OsStr) -> anyhow::Result<Self> {
        let name = command.first().context("the program is missing")?;
        let mut arguments = command.to_vec();
        let mut binary = found(name, folders)?;
        for _ in 0..MOST_INTERPRETERS {
            let Some((interpreter, argument)) = interpreter(&binary)? else {
                return Ok(Self { binary, arguments });
            };
            if let Some(name) = arguments.first_mut() {
                *name = binary.into_os_string();
            }
            if let Some(argument) = argument {
                arguments.insert(0, argument);
            }
            arguments.insert(0, interpreter.clone());
            binary = found(&interpreter, folders)?;
        }
        bail!("{} is a script of a script of a script", binary.display())
    }
}

fn found(name: &OsStr, folders: &OsStr) -> anyhow::Result<PathBuf> {
    let is_program = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let candidates = match name.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(name)],
        false => std::env::split_paths(folders)
            .map(|folder| folder.join(name))
            .collect(),
    };
    let found = candidates.into_iter().find(is_program);
    found.with_context(|| format!("there is no program {}", Path::new(name).display()))
}

/// Interpreter of a script, and its argument; `None` for a binary.
fn interpreter(path: &Path) -> anyhow::Result<Option<(OsString, Option<OsString>)>> {
    let cannot_read = || format!("cannot read {}", path.display());
    let mut start = Vec::new();
    let file = File::open(path).with_context(cannot_read)?;
    file.take(LINE_BYTES)
        .read_to_end(&mut start)
        .with_context(cannot_read)?;
    let Some(line) = start.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii();
    let end = line.iter().position(|byte| byte.is_ascii_whitespace());
    let (interpreter, argument) = line.split_at(end.unwrap_or(line.len()));
    let argument = argument.trim_ascii();
    let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Ok(Some((
        text(interpreter),
        (!argument.is_empty()).then(|| text(argument)),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_run_by_their_interpreters() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let binary = make("binary", "\x7fELF", 0o755);
        let script = make(
            "script",
            &format!("#! {} -x y \nline", binary.display()),
            0o755,
        );
        let outer = make("outer", &format!("#!{}\n", script.display()), 0o755);
        make("no-program", "", 0o644);
        let path = folder.path().as_os_str();
        let find = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            Program::find(&words, path)
        };
        let program = |arguments: &[&OsStr]| Program {
            binary: binary.clone(),
            arguments: arguments.iter().map(OsString::from).collect(),
        };
        let (argument, a) = (OsStr::new("-x y"), OsStr::new("a"));
        assert_eq!(
            find(&["binary", "a"]).unwrap(),
            program(&[OsStr::new("binary"), a])
        );
        let (binary_name, script_name, outer_name) =
            (binary.as_os_str(), script.as_os_str(), outer.as_os_str());
        assert_eq!(
            find(&["script", "a"]).unwrap(),
            program(&[binary_name, argument, script_name, a])
        );
        assert_eq!(
            find(&["outer"]).unwrap(),
            program(&[binary_name, argument, script_name, outer_name])
        );
        for wrong in ["no-program", "missing", "/missing"] {
            let error = find(&[wrong]).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        let itself = make("itself", "", 0o755);
        std::fs::write(&itself, format!("#!{}\n", itself.display())).unwrap();
        assert!(find(&["itself"]).is_err());
    }
}
