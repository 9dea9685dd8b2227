//! inotify(7): that a program read a terminal, that a session's reporter spoke, that a device came.
//!
//! Each terminal is watched by itself: who watches `/dev/pts` is told of terminals made, but not of reads of
//! them (seen on Linux 6.18). What a program writes to a terminal is no access.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a watch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// A terminal: that something typed was read.
    Terminal,
    /// The file of a session's reporter: that it spoke.
    Report,
    /// The folder of pseudo-terminals: that one was made.
    Terminals,
    /// The folder of input devices: that one was plugged in, or may be opened now.
    Devices,
}

impl Watched {
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

/// What has come since it was last asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// A terminal was read.
    pub(crate) terminal: bool,
    /// A reporter spoke.
    pub(crate) report: bool,
    /// An input device came.
    pub(crate) device: bool,
    /// Terminals that were made.
    pub(crate) new_terminals: Vec<PathBuf>,
}

/// The watches.
#[derive(Debug)]
pub(crate) struct AccessWatch {
    inotify: OwnedFd,
    watched: BTreeMap<i32, (Watched, PathBuf)>,
}

impl AccessWatch {
    /// Watches nothing yet.
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            watched: BTreeMap::new(),
        })
    }

    /// Watches `path` as well; what is watched already, goes on being watched. What is not there is not
    /// watched, nor what exceeds the kernel's number of watches: samples see it.
    pub(crate) fn add(&mut self, kind: Watched, path: &Path) {
        if let Ok(watch) = inotify::add_watch(&self.inotify, path, kind.flags()) {
            self.watched.insert(watch, (kind, path.to_owned()));
        }
    }

    /// Watches nothing any more, and forgets what has come. The instance stays: closing it would wait until
    /// the kernel has let go of every watch, which takes it tens of milliseconds.
    pub(crate) fn clear(&mut self) {
        for watch in std::mem::take(&mut self.watched).into_keys() {
            let _ = inotify::remove_watch(&self.inotify, watch); // its file may be gone, and it with it
        }
        self.read();
    }

    /// What can be read when something has come.
    pub(crate) fn wait_on(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self) -> News {
        let mut news = News::default();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut ended = Vec::new();
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(_) => break, // nothing more
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                (news.terminal, news.report, news.device) = (true, true, true);
            }
            if event.events().contains(ReadFlags::IGNORED) {
                ended.push(event.wd()); // its file is gone
                continue;
            }
            match self.watched.get(&event.wd()) {
                Some((Watched::Terminal, _)) => news.terminal = true,
                Some((Watched::Report, _)) => news.report = true,
                Some((Watched::Devices, _)) => news.device = true,
                Some((Watched::Terminals, folder)) => {
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
        watch.add(Watched::Terminal, &path("pts/1"));
        watch.add(Watched::Terminal, &path("pts/none"));
        watch.add(Watched::Report, &path("report"));
        watch.add(Watched::Terminals, &path("pts"));
        watch.add(Watched::Devices, &path("input"));
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
        watch.add(Watched::Terminal, &path("pts/1"));
        terminal.read_exact_at(&mut [0], 0).unwrap();
        assert_eq!(watch.read(), terminal_read);
    }
}
