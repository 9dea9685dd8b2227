//! Checks whether a daemon may write to its folders.

use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use crate::user::{Access, FileUse, Node, User, access};
use std::path::Path;

const SUBJECT: &str = "folder";
const MAKE: [FileUse; 2] = [FileUse::Write, FileUse::Enter];

/// A daemon's folder: whether the daemon's user may write there, and its owner and mode if the doctor can see
/// them.
pub(crate) struct Folder {
    access: Access,
    node: Option<Node>,
    /// True if the folder does not exist but the user may create it.
    can_be_made: bool,
}

/// Checks the folder for the daemon's user.
pub(crate) fn read(folder: &Path, user: &User) -> Folder {
    let nearest = folder.ancestors().skip(1).find(|above| above.is_dir());
    Folder {
        access: access(user, folder, &MAKE),
        node: Node::of(folder).ok(),
        can_be_made: nearest.is_some_and(|above| access(user, above, &MAKE) == Access::Yes),
    }
}

/// Judges the folder for the daemon's user.
pub(crate) fn judge(found: &Folder, folder: &Path, user: &User) -> Finding {
    let (shown, name, path) = (folder.display(), &user.name, quoted(folder));
    let own = format!("sudo chown -R {name}: {path} && sudo chmod u+rwx {path}");
    match &found.access {
        Access::Yes => {}
        Access::Missing if found.can_be_made => {
            let text = format!("{shown} is not there yet: {name} makes it when it is needed");
            return Finding::ok(SUBJECT, text);
        }
        Access::Missing => {
            let text = format!("{shown} is not there, and {name} may not make it");
            return Finding::of(Message::FolderMissing, SUBJECT, text)
                .remedy(format!("sudo install -d -o {name} -m 0750 {path}"));
        }
        Access::No(closed, node) if closed == folder => {
            let found = format!(
                "{shown} belongs to {} (mode {:04o}): {name} may not write there",
                User::of(node.uid).name,
                node.mode
            );
            return Finding::of(Message::FolderUnwritable, SUBJECT, found).remedy(own);
        }
        Access::No(closed, node) => {
            let found = format!(
                "{} (mode {:04o}) keeps {name} from {shown}",
                closed.display(),
                node.mode
            );
            let remedy = format!("sudo chmod o+x {}", quoted(closed));
            return Finding::of(Message::FolderUnwritable, SUBJECT, found).remedy(remedy);
        }
        Access::ReadOnly => {
            let found = format!("{shown} lies on a file system that is mounted read-only");
            let remedy =
                format!("sudo mount -o remount,rw \"$(findmnt -n -o TARGET --target {path})\"");
            return Finding::of(Message::FolderUnwritable, SUBJECT, found).remedy(remedy);
        }
        Access::Unseen(closed) => {
            let found = format!("this user may not look into {}", closed.display());
            return Finding::of(Message::FolderUnseen, SUBJECT, found)
                .remedy("sudo gleaner doctor");
        }
    }
    match found.node {
        Some(node) => Finding::ok(
            SUBJECT,
            format!("{shown}: {name} may write (mode {:04o})", node.mode),
        ),
        None => Finding::ok(SUBJECT, format!("{shown}: {name} may write")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_judged_by_what_the_daemon_may_do() {
        let folder = Path::new("/var/lib/gleaner");
        let user = User {
            name: "gleaner-agent".to_owned(),
            uid: 990,
            gid: 990,
            groups: Vec::new(),
        };
        let node = |mode| Node {
            uid: 0,
            gid: 0,
            mode,
            is_folder: true,
        };
        for (access, message, remedy) in [
            (Access::Yes, None, ""),
            (
                Access::Missing,
                Some(Message::FolderMissing),
                "install -d -o gleaner-agent -m 0750 /var/lib/gleaner",
            ),
            (
                Access::No(folder.to_owned(), node(0o755)),
                Some(Message::FolderUnwritable),
                "chown -R gleaner-agent: /var/lib/gleaner",
            ),
            (
                Access::No("/var/lib".into(), node(0o700)),
                Some(Message::FolderUnwritable),
                "chmod o+x /var/lib",
            ),
            (
                Access::ReadOnly,
                Some(Message::FolderUnwritable),
                "remount,rw",
            ),
            (
                Access::Unseen("/var/lib".into()),
                Some(Message::FolderUnseen),
                "sudo gleaner doctor",
            ),
        ] {
            let found = Folder {
                access,
                node: Some(node(0o750)),
                can_be_made: false,
            };
            let finding = judge(&found, folder, &user);
            assert_eq!(finding.message, message, "{finding:?}");
            assert!(
                finding
                    .remedy
                    .as_deref()
                    .unwrap_or_default()
                    .contains(remedy),
                "{finding:?}"
            );
        }
    }
}
