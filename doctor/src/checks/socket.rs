//! Checks whether a daemon's Unix socket exists and whether this user may connect to it.

use crate::finding::Finding;
use crate::message::Message;
use crate::user::User;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

const SUBJECT: &str = "socket";

/// Result of an attempt to connect to a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Answered,
    Missing,
    /// The socket exists, but no process listens on it.
    Silent,
    /// This user may not connect. Holds the name of the group that may, if it is known.
    Denied(Option<String>),
    Failed(String),
}

/// Connects to the socket, and closes the connection.
pub(crate) fn read(socket: &Path) -> Call {
    match UnixStream::connect(socket) {
        Ok(_) => Call::Answered,
        Err(e) => match e.kind() {
            ErrorKind::NotFound => Call::Missing,
            ErrorKind::ConnectionRefused => Call::Silent,
            ErrorKind::PermissionDenied => Call::Denied(group_of(socket)),
            _ => Call::Failed(e.to_string()),
        },
    }
}

/// Name of the group of the socket. If this user cannot see the socket, it is the group of the folder that
/// denies access.
fn group_of(socket: &Path) -> Option<String> {
    let mut seen = socket.ancestors().filter_map(|path| path.metadata().ok());
    let gid = seen.next()?.gid();
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    let mut lines = groups.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
    })
}

/// Judges the result of the attempt. `start` is the command that restarts the daemon.
pub(crate) fn judge(call: &Call, socket: &Path, me: &User, start: &str) -> Finding {
    let shown = socket.display();
    let missing = |why: &str| {
        Finding::of(Message::SocketMissing, SUBJECT, format!("{shown}: {why}")).remedy(start)
    };
    match call {
        Call::Answered => Finding::ok(SUBJECT, format!("{shown} answers {}", me.name)),
        Call::Missing => missing("there is none"),
        Call::Silent => missing("no program listens there"),
        Call::Failed(why) => missing(why),
        Call::Denied(group) => {
            let finding = Finding::of(
                Message::SocketDenied,
                SUBJECT,
                format!("{} may not use {shown}", me.name),
            );
            match group.as_deref() {
                None | Some("root") => finding,
                Some(group) => finding.remedy(format!("sudo usermod -aG {group} {}", me.name)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn sockets_are_called() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        assert_eq!(read(&socket), Call::Missing);
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(read(&socket), Call::Answered);
        drop(listener);
        assert_eq!(read(&socket), Call::Silent);
        let me = User {
            name: "ada".to_owned(),
            ..User::default()
        };
        let denied = judge(&Call::Denied(Some("gleaner".to_owned())), &socket, &me, "");
        assert_eq!(
            denied.remedy.as_deref(),
            Some("sudo usermod -aG gleaner ada")
        );
        assert_eq!(judge(&Call::Denied(None), &socket, &me, "").remedy, None);
        let silent = judge(&Call::Silent, &socket, &me, "sudo systemctl restart x");
        assert_eq!(silent.message, Some(Message::SocketMissing));
        assert!(silent.remedy.is_some());
    }
}
