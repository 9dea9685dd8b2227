//! Checks whether the daemon's program exists, and whether it has the same version as `gleaner`.

use crate::command::ask;
use crate::daemon::Daemon;
use crate::finding::Finding;
use crate::message::Message;
use crate::place::Place;
use std::path::{Path, PathBuf};

const SUBJECT: &str = "program";

/// Facts about a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: Option<PathBuf>,
    /// Version of the program, or the reason why it is not known.
    version: Option<Result<String, String>>,
}

/// Finds the program, and asks for its version.
pub(crate) fn read(place: &Place, daemon: Daemon) -> Program {
    let path = place.program(daemon.program());
    let version = path.as_deref().map(|path| {
        let said = ask(path, &["--version"])?;
        let version = said.output.split_whitespace().nth(1);
        version
            .map(str::to_owned)
            .ok_or_else(|| match said.errors.trim() {
                "" => format!("{} --version says nothing", path.display()),
                errors => errors.to_owned(),
            })
    });
    Program { path, version }
}

/// Judges the program; `ours` is the version of `gleaner`.
pub(crate) fn judge(program: &Program, daemon: Daemon, ours: &str) -> Finding {
    let name = daemon.program();
    let install = install(name);
    match (&program.path, &program.version) {
        (Some(path), Some(Ok(version))) if version == ours => {
            Finding::ok(SUBJECT, format!("{} {version}", path.display()))
        }
        (Some(path), Some(Ok(version))) => {
            let found = format!(
                "{} is of version {version}, gleaner of {ours}",
                path.display()
            );
            Finding::of(Message::ProgramVersion, SUBJECT, found).remedy(install)
        }
        (Some(_), Some(Err(why))) => {
            Finding::of(Message::ProgramFails, SUBJECT, why).remedy(install)
        }
        _ => {
            let found = format!("{name} is neither on the PATH nor in /usr/bin");
            Finding::of(Message::ProgramMissing, SUBJECT, found).remedy(install)
        }
    }
}

/// Command that installs a package.
pub(crate) fn install(package: &str) -> String {
    match Path::new("/usr/bin/dnf").exists() {
        true => format!("sudo dnf install {package}"),
        false => format!("sudo apt-get install {package}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_held_against_ours() {
        let path = Some(PathBuf::from("/usr/bin/gleaner-agent"));
        for (path, version, message) in [
            (path.clone(), Some(Ok("1.2.3".to_owned())), None),
            (
                path.clone(),
                Some(Ok("1.2.2".to_owned())),
                Some(Message::ProgramVersion),
            ),
            (
                path,
                Some(Err("exec format error".to_owned())),
                Some(Message::ProgramFails),
            ),
            (None, None, Some(Message::ProgramMissing)),
        ] {
            let finding = judge(&Program { path, version }, Daemon::Agent, "1.2.3");
            assert_eq!(finding.message, message, "{finding:?}");
            assert_eq!(finding.remedy.is_some(), message.is_some());
        }
    }
}
