//! `gleaner-clerk export-file` with servers that answer late, in another order, with errors, or with nonsense. Needs
//! root and FUSE.

use gleaner_harness::{wait_for, wait_for_some};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PAGE_BYTES: u64 = 4096;
const PAGES: u64 = 64;
/// Flags of the export: it has flags, flushes, and zeroes.
const FLAGS: u16 = 1 | 1 << 2 | 1 << 6;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const WRITE_ZEROES: u16 = 6;
const EIO: u32 = 5;
const ENOSPC: u32 = 28;

/// A request as the server receives it, without the bytes of a write.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PageRequest {
    command: u16,
    cookie: u64,
    offset: u64,
    bytes: u32,
}

/// A mounted export, whose server the test plays.
struct Mounted {
    folder: TempDir,
    process: Child,
    asked: Receiver<PageRequest>,
    /// Bytes to send.
    answers: Sender<Vec<u8>>,
}

impl Mounted {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("pages.sock");
        let point = folder.path().join("point");
        fs::create_dir(&point).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let (tell_asked, asked) = channel();
        let (answers, to_send) = channel::<Vec<u8>>();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            negotiate(&mut stream).unwrap();
            let mut sender = stream.try_clone().unwrap();
            thread::spawn(move || {
                // An empty answer ends the connection.
                while let Ok(answer) = to_send.recv()
                    && !answer.is_empty()
                    && sender.write_all(&answer).is_ok()
                {}
                let _ = sender.shutdown(std::net::Shutdown::Both);
            });
            while let Ok(request) = next(&mut stream)
                && tell_asked.send(request).is_ok()
            {}
        });
        let mut process = Command::new(env!("CARGO_BIN_EXE_gleaner-clerk"));
        process.arg("export-file").arg(&point).arg(&socket);
        let process = process.stderr(Stdio::inherit()).spawn().unwrap();
        let mounted = Self {
            folder,
            process,
            asked,
            answers,
        };
        wait_for("the mount", || mounted.file().exists());
        mounted
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("point")
    }

    fn file(&self) -> PathBuf {
        self.point().join("disk")
    }

    /// The export's file, whose reads and writes all reach the server.
    fn open(&self) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_DIRECT);
        options.open(self.file()).unwrap()
    }

    fn answer(&self, request: &PageRequest, error: u32, data: &[u8]) {
        let mut answer = 0x6744_6698_u32.to_be_bytes().to_vec();
        answer.extend(error.to_be_bytes());
        answer.extend(request.cookie.to_be_bytes());
        answer.extend(data);
        self.answers.send(answer).unwrap();
    }

    /// Waits until this number of pages is asked for, or nothing for a while; answers, and returns the number. Other
    /// requests succeed.
    fn answer_reads(&self, pages: u64, patience: Duration) -> u64 {
        let mut asked = Vec::new();
        let pages_of = |request: &PageRequest| match request.command {
            READ => u64::from(request.bytes) / PAGE_BYTES,
            _ => 0,
        };
        while asked.iter().map(pages_of).sum::<u64>() < pages
            && let Ok(request) = self.asked.recv_timeout(patience)
        {
            asked.push(request);
        }
        for request in &asked {
            let first = request.offset / PAGE_BYTES;
            let read = first..first + pages_of(request);
            self.answer(request, 0, &read.flat_map(page).collect::<Vec<u8>>());
        }
        asked.iter().map(pages_of).sum()
    }

    /// Unmounts the folder, which ends the process with this code.
    fn ends(&mut self) -> Option<i32> {
        let point = self.point();
        // A loop device that was detached keeps its file a moment longer.
        wait_for("the unmount", || {
            let unmounted = Command::new("umount").arg(&point).status();
            unmounted.unwrap().success()
        });
        let ended = wait_for_some("the end", || self.process.try_wait().unwrap());
        ended.code()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // After a failure alone is there something to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("umount")
            .args(["-q", "-l"])
            .arg(self.point())
            .output();
    }
}

/// The server's side of the handshake: fixed newstyle, and one option, `GO`.
fn negotiate(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    let mut head = [0; 4 + 16];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes(*head.last_chunk().unwrap());
    io::copy(&mut stream.take(length.into()), &mut io::sink())?;
    let mut reply = |kind: u32, data: &[u8]| {
        let mut bytes = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
        bytes.extend(7_u32.to_be_bytes()); // GO
        bytes.extend(kind.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        stream.write_all(&bytes)
    };
    let mut facts = 0_u16.to_be_bytes().to_vec();
    facts.extend((PAGES * PAGE_BYTES).to_be_bytes());
    facts.extend(FLAGS.to_be_bytes());
    reply(3, &facts)?;
    reply(1, &[])
}

fn next(stream: &mut UnixStream) -> io::Result<PageRequest> {
    let mut head = [0; 28];
    stream.read_exact(&mut head)?;
    let number = |from: usize| u64::from_be_bytes(*head[from..].first_chunk().unwrap());
    let request = PageRequest {
        command: number(0) as u16,
        cookie: number(8),
        offset: number(16),
        bytes: (number(20) & 0xffff_ffff) as u32,
    };
    if request.command == WRITE {
        io::copy(&mut stream.take(request.bytes.into()), &mut io::sink())?;
    }
    Ok(request)
}

/// Contents of a page of the export.
fn page(number: u64) -> Vec<u8> {
    (0..PAGE_BYTES)
        .map(|at| (at * 7 + number * 31) as u8)
        .collect()
}

/// A page in memory where direct reads and writes need it.
struct Aligned(Vec<u8>);

impl Aligned {
    fn new() -> Self {
        Self(vec![0; 2 * PAGE_BYTES as usize])
    }

    fn page(&mut self) -> &mut [u8] {
        let at = self.0.as_ptr().align_offset(PAGE_BYTES as usize);
        &mut self.0[at..][..PAGE_BYTES as usize]
    }
}

fn read_page(file: &File, number: u64) -> io::Result<Vec<u8>> {
    let mut buffer = Aligned::new();
    file.read_exact_at(buffer.page(), number * PAGE_BYTES)?;
    Ok(buffer.page().to_vec())
}

#[test]
fn answers_in_another_order_reach_their_readers() {
    let mut mounted = Mounted::new();
    let file = mounted.open();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..PAGES)
            .map(|number| {
                let file = &file;
                scope.spawn(move || read_page(file, number))
            })
            .collect();
        let mut asked: Vec<PageRequest> =
            (0..PAGES).map(|_| mounted.asked.recv().unwrap()).collect();
        assert!(asked.iter().all(|request| request.command == READ));
        asked.sort_by_key(|request| std::cmp::Reverse(request.offset));
        for request in &asked {
            mounted.answer(request, 0, &page(request.offset / PAGE_BYTES));
        }
        for (number, reader) in (0..).zip(readers) {
            assert!(reader.join().unwrap().unwrap() == page(number), "{number}");
        }
    });
    drop(file);
    assert_eq!(mounted.ends(), Some(0));
    let last = mounted.asked.iter().last().unwrap();
    assert_eq!(last.command, DISCONNECT, "the server is told of the end");
}

/// A loop device of the export, without a cache, as `gleaner-clerk attach` makes it.
struct LoopDevice(String);

impl LoopDevice {
    fn new(mounted: &Mounted) -> Self {
        let mut command = Command::new("losetup");
        command.args(["--find", "--show", "--direct-io=on", "--sector-size=4096"]);
        command.arg(mounted.file()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The kernel flushes the file first.
        while child.try_wait().unwrap().is_none() {
            mounted.answer_reads(1, Duration::from_millis(10));
        }
        let made = child.wait_with_output().unwrap();
        assert!(made.status.success());
        Self(String::from_utf8(made.stdout).unwrap().trim().to_owned())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

/// Swap has many pages under way: none of them waits for another one's answer.
#[test]
fn a_loop_devices_reads_are_under_way_together() {
    let mut mounted = Mounted::new();
    let device = LoopDevice::new(&mounted);
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_DIRECT);
    let file = options.read(true).open(&device.0).unwrap();
    let mut together = Vec::new();
    thread::scope(|scope| {
        let file = &file;
        let readers: Vec<_> = (0..PAGES)
            .map(|number| scope.spawn(move || read_page(file, number)))
            .collect();
        let mut patience = Duration::from_secs(10);
        while !readers.iter().all(thread::ScopedJoinHandle::is_finished) {
            together.push(mounted.answer_reads(PAGES, patience));
            patience = Duration::from_millis(50);
        }
        for (number, reader) in (0..).zip(readers) {
            assert!(reader.join().unwrap().unwrap() == page(number), "{number}");
        }
    });
    assert_eq!(together[0], PAGES, "{together:?}");
    drop(file);
    drop(device);
    assert_eq!(mounted.ends(), Some(0));
}

#[test]
fn a_servers_errors_are_its_readers_and_writers_errors() {
    let mut mounted = Mounted::new();
    let file = mounted.open();
    // What is done to the file, and the server's answer.
    let answered = |done: fn(&File) -> io::Result<()>, error: u32| {
        thread::scope(|scope| {
            let done = scope.spawn(|| done(&file));
            let request = mounted.asked.recv().unwrap();
            mounted.answer(&request, error, &[]);
            let result = done.join().unwrap();
            (
                request.command,
                result.map_err(|error| error.raw_os_error()),
            )
        })
    };
    let read = |file: &File| read_page(file, 0).map(drop);
    let write = |file: &File| file.write_all_at(Aligned::new().page(), 0);
    let discard = |file: &File| fallocate(file, libc::FALLOC_FL_PUNCH_HOLE);
    let zero = |file: &File| fallocate(file, libc::FALLOC_FL_ZERO_RANGE);
    for (done, command, error) in [
        (read as fn(&File) -> io::Result<()>, READ, EIO),
        (write, WRITE, ENOSPC),
        (discard, WRITE_ZEROES, EIO),
        (File::sync_all, FLUSH, EIO),
    ] {
        let error_number = Some(error.cast_signed());
        assert_eq!(answered(done, error), (command, Err(error_number)));
    }
    for unknown in [600, u32::MAX] {
        assert_eq!(answered(read, unknown), (READ, Err(Some(libc::EINVAL))));
    }
    for (done, command) in [
        (write as fn(&File) -> io::Result<()>, WRITE),
        (discard, WRITE_ZEROES),
        (zero, WRITE_ZEROES),
        (File::sync_all, FLUSH),
    ] {
        assert_eq!(answered(done, 0), (command, Ok(())));
    }
    drop(file);
    assert_eq!(mounted.ends(), Some(0));
}

fn fallocate(file: &File, mode: i32) -> io::Result<()> {
    let mode = (mode | libc::FALLOC_FL_KEEP_SIZE).cast_unsigned();
    let mode = rustix::fs::FallocateFlags::from_bits_retain(mode);
    Ok(rustix::fs::fallocate(file, mode, 0, PAGE_BYTES)?)
}

/// A server that ends, answers what nobody asked, or speaks something else: all requests fail, those that wait and those
/// that come later, and the folder can be unmounted.
#[test]
fn nothing_waits_for_a_server_that_is_lost() {
    let stranger = {
        let mut answer = 0x6744_6698_u32.to_be_bytes().to_vec();
        answer.extend([0; 4]);
        answer.extend(99_u64.to_be_bytes());
        answer
    };
    for last in [
        Vec::new(),
        stranger,
        b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
    ] {
        let mut mounted = Mounted::new();
        let file = mounted.open();
        thread::scope(|scope| {
            let waits = scope.spawn(|| read_page(&file, 3));
            mounted.asked.recv().unwrap();
            mounted.answers.send(last).unwrap();
            let error = waits.join().unwrap().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(EIO.cast_signed()));
        });
        let error = read_page(&file, 4).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(EIO.cast_signed()));
        drop(file);
        assert_eq!(mounted.ends(), Some(0));
    }
}

#[test]
fn a_server_that_is_absent_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_gleaner-clerk"))
        .arg("export-file")
        .arg(folder.path())
        .arg(Path::new("/nobody.sock"))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        said.starts_with("gleaner-clerk: /nobody.sock: connection: No such file"),
        "{said}"
    );
}
