//! The terminal from which a daemon was started by hand.

use rustix::io::Errno;
use rustix::stdio;
use rustix::termios::tcgetattr;

/// Returns true if the terminal has hung up. A SIGHUP then reports the hangup; it is no request to reload.
#[must_use]
pub fn has_hung_up() -> bool {
    // After a hangup every request to the terminal fails with this error (vhangup(2)). A file that is not a
    // terminal gives another error.
    let all = [stdio::stdin(), stdio::stdout(), stdio::stderr()];
    all.iter()
        .any(|stream| tcgetattr(stream).err() == Some(Errno::IO))
}
