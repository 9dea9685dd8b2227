//! The terminal that a daemon was started from by hand.

use rustix::io::Errno;
use rustix::stdio;
use rustix::termios::tcgetattr;

/// Whether it is gone: then SIGHUP means that, and no wish for a reload.
#[must_use]
pub fn has_hung_up() -> bool {
    // Of a terminal that hung up every request fails so (vhangup(2)); what is no terminal answers otherwise.
    let all = [stdio::stdin(), stdio::stdout(), stdio::stderr()];
    all.iter()
        .any(|stream| tcgetattr(stream).err() == Some(Errno::IO))
}
