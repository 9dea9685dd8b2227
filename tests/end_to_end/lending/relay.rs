//! The network between one memory server and one recruiter, which can be cut: what is sent meanwhile comes late, as
//! after a partition, and nobody is told of anything.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TURN: Duration = Duration::from_millis(10);

pub(super) struct Relay {
    pub(super) address: SocketAddr,
    cuts: Cuts,
}

/// The directions that are cut.
#[derive(Clone, Default)]
struct Cuts {
    to_host: Arc<AtomicBool>,
    to_recruiter: Arc<AtomicBool>,
}

/// Where a recruiter listens now; `None` while it is down.
pub(super) type Target = Arc<Mutex<Option<SocketAddr>>>;

impl Relay {
    pub(super) fn start(target: Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Cuts::default();
        let shared = cuts.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let (target, cuts) = (target.clone(), shared.clone());
                std::thread::spawn(move || connect(near, &target, &cuts));
            }
        });
        Self { address, cuts }
    }

    pub(super) fn cut(&self, is_cut: bool) {
        self.cuts.to_host.store(is_cut, Ordering::SeqCst);
        self.cut_answers(is_cut);
    }

    /// Cuts what the memory server says alone: it is still spoken to.
    pub(super) fn cut_answers(&self, is_cut: bool) {
        self.cuts.to_recruiter.store(is_cut, Ordering::SeqCst);
    }
}

/// Nobody there: the connection ends, as if it were refused.
fn connect(near: TcpStream, target: &Target, cuts: &Cuts) {
    while cuts.to_host.load(Ordering::SeqCst) {
        std::thread::sleep(TURN);
    }
    let address = *target.lock().unwrap();
    let Some(far) = address.and_then(|address| TcpStream::connect(address).ok()) else {
        return;
    };
    let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    let to_host = cuts.to_host.clone();
    std::thread::spawn(move || pass_on(far_too, near_too, &to_host));
    pass_on(near, far, &cuts.to_recruiter);
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 16 << 10];
    let _ = from.set_read_timeout(Some(TURN));
    loop {
        if is_cut.load(Ordering::SeqCst) {
            std::thread::sleep(TURN);
            continue;
        }
        match from.read(&mut buffer) {
            Err(e) if is_early(&e) => (),
            Ok(count) if count > 0 => {
                while is_cut.load(Ordering::SeqCst) {
                    std::thread::sleep(TURN);
                }
                if to.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
            _ => break,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// Nothing has come so far.
fn is_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
