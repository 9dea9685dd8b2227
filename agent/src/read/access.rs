//! Accesses reported by inotify(7): a program reads a terminal, a session's reporter writes, a device
//! appears.
//!
//! Each terminal has a watch of its own: a watch of `/dev/pts` reports new terminals, but not reads of them
//! (seen on Linux 6.18). Writing to a terminal is no access.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Kind of access that a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// A terminal: typed input was read.
    Terminal,
    /// The file of a session's reporter: the reporter wrote.
    Report,
    /// The folder of pseudo-terminals: one was created.
    Terminals,
    /// The folder of input devices: one was plugged in, or may be opened now.
    Devices,
}

impl AccessKind {
    const fn flags(self) -> WatchFlags {
        match self {
            Self::Terminal => WatchFlags::ACCESS,
            Self::Report => WatchFlags::ATTRIB.union(WatchFlags::MODIFY),
            Self::Terminals => WatchFlags::CREATE,
            Self::Devices => WatchFlags::CREATE
                .union(WatchFlags::MOVED_TO)
                .union(WatchFlags::ATTRIB),
        }
    }
}

/// Accesses since the last read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// A terminal was read.
    pub(crate) terminal: bool,
    /// A reporter wrote.
    pub(crate) report: bool,
    /// An input device appeared.
    pub(crate) device: bool,
    /// Terminals that were created.
    pub(crate) new_terminals: Vec<PathBuf>,
}

/// Watches of files and folders.
#[derive(Debug)]
pub(crate) struct AccessWatch {
    inotify: OwnedFd,
    watched: BTreeMap<i32, (AccessKind, PathBuf)>,
}

impl AccessWatch {
    /// Makes an inotify instance without any watch.
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            watched: BTreeMap::new(),
        })
    }

    /// Adds a watch of `path`; an existing watch stays. A path that does not exist, or exceeds the kernel's
    /// limit of watches, is not watched; samples still look at it.
    pub(crate) fn add(&mut self, kind: AccessKind, path: &Path) {
        if let Ok(watch) = inotify::add_watch(&self.inotify, path, kind.flags()) {
            self.watched.insert(watch, (kind, path.to_owned()));
        }
    }

    /// Removes all watches and pending events. The instance stays: closing it would wait until the kernel has
    /// released every watch, which takes tens of milliseconds.
    pub(crate) fn clear(&mut self) {
        for watch in std::mem::take(&mut self.watched).into_keys() {
            let _ = inotify::remove_watch(&self.inotify, watch); // the file may be gone
        }
        self.read();
    }

    /// Descriptor that becomes readable with the next access.
    pub(crate) fn wait_on(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Reads the pending events.
    pub(crate) fn read(&mut self) -> News {
        let mut news = News::default();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut ended = Vec::new();
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => break, // no more events
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                (news.terminal, news.report, news.device) = (true, true, true);
            }
            if event.events().contains(ReadFlags::IGNORED) {
                ended.push(event.wd()); // the file is gone
                continue;
            }
            match self.watched.get(&event.wd()) {
                Some((AccessKind::Terminal, _)) => news.terminal = true,
                Some((AccessKind::Report, _)) => news.report = true,
                Some((AccessKind::Devices, _)) => news.device = true,
                Some((AccessKind::Terminals, folder)) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    let path = name.map(|name| folder.join(std::ffi::OsStr::from_bytes(name)));
                    news.new_terminals.extend(path);
                }
                None => {}
            }
        }
        for watch in ended {
            self.watched.remove(&watch);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn reads_words_and_newcomers_are_told_and_what_is_written_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for folder in ["pts", "input"] {
            std::fs::create_dir(path(folder)).unwrap();
        }
        for file in ["pts/1", "report"] {
            std::fs::write(path(file), "text").unwrap();
        }
        let mut watch = AccessWatch::new().unwrap();
        watch.add(AccessKind::Terminal, &path("pts/1"));
        watch.add(AccessKind::Terminal, &path("pts/none"));
        watch.add(AccessKind::Report, &path("report"));
        watch.add(AccessKind::Terminals, &path("pts"));
        watch.add(AccessKind::Devices, &path("input"));
        assert_eq!(watch.read(), News::default());

        let mut terminal = File::options()
            .read(true)
            .append(true)
            .open(path("pts/1"))
            .unwrap();
        terminal.write_all(b"shown").unwrap();
        assert_eq!(watch.read(), News::default());
        terminal.read_exact_at(&mut [0], 0).unwrap();
        let terminal_read = News {
            terminal: true,
            ..News::default()
        };
        assert_eq!(watch.read(), terminal_read);

        let report = File::options().write(true).open(path("report")).unwrap();
        report
            .set_times(FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH))
            .unwrap();
        File::create(path("input/event7")).unwrap();
        File::create(path("pts/2")).unwrap();
        let expected = News {
            report: true,
            device: true,
            new_terminals: vec![path("pts/2")],
            ..News::default()
        };
        assert_eq!(watch.read(), expected);
        drop(report);
        std::fs::remove_file(path("report")).unwrap();
        watch.read();
        assert_eq!(watch.watched.len(), 3);

        watch.clear();
        terminal.read_exact_at(&mut [0], 0).unwrap();
        assert_eq!(watch.read(), News::default());
        watch.add(AccessKind::Terminal, &path("pts/1"));
        terminal.read_exact_at(&mut [0], 0).unwrap();
        assert_eq!(watch.read(), terminal_read);
    }
}
