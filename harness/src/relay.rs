//! An unreliable network between clients and a server: it delays, cuts and alters data.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

const TURN: Duration = Duration::from_millis(5);

/// Address of the server to which relays forward; `None` while the server is down. Relays then close new
/// connections immediately.
pub type Target = Arc<Mutex<Option<SocketAddr>>>;

type Change = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// Relay that forwards connections to a server until the relay is dropped.
pub struct Relay {
    /// Address to which clients connect.
    pub address: SocketAddr,
    network: Arc<Network>,
}

#[derive(Default)]
struct Network {
    target: Target,
    to_server: Direction,
    to_client: Direction,
    open: Mutex<Vec<Weak<TcpStream>>>,
    has_ended: AtomicBool,
}

/// State of one direction, shared by all connections of a relay.
#[derive(Default)]
struct Direction {
    is_held: AtomicBool,
    change: Mutex<Option<Change>>,
}

impl Relay {
    /// Starts a relay to the server at `address`.
    ///
    /// # Panics
    /// If this machine has no free port.
    #[must_use]
    pub fn to(address: Option<SocketAddr>) -> Self {
        Self::start(Arc::new(Mutex::new(address)))
    }

    /// Starts a relay that forwards each new connection to the address in `target` at that moment.
    ///
    /// # Panics
    /// If this machine has no free port.
    #[must_use]
    pub fn start(target: Target) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let network = Arc::new(Network {
            target,
            ..Network::default()
        });
        let forwarding = network.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if forwarding.has_ended.load(Ordering::SeqCst) {
                    break;
                }
                let network = forwarding.clone();
                thread::spawn(move || network.forward(client));
            }
        });
        Self { address, network }
    }

    /// Sets the server to which new connections are forwarded.
    pub fn lead_to(&self, address: Option<SocketAddr>) {
        *lock(&self.network.target) = address;
    }

    /// Holds all bytes sent in either direction, or lets them pass; neither end notices.
    pub fn hold(&self, is_held: bool) {
        self.network
            .to_client
            .is_held
            .store(is_held, Ordering::SeqCst);
        self.hold_to_server(is_held);
    }

    /// Holds only the bytes that clients send.
    pub fn hold_to_server(&self, is_held: bool) {
        self.network
            .to_server
            .is_held
            .store(is_held, Ordering::SeqCst);
    }

    /// Applies `change` to all data that the server sends from now on, one received piece after the other.
    pub fn alter(&self, change: impl FnMut(&mut Vec<u8>) + Send + 'static) {
        *lock(&self.network.to_client.change) = Some(Box::new(change));
    }

    /// Stops altering data.
    pub fn alter_nothing(&self) {
        *lock(&self.network.to_client.change) = None;
    }

    /// Closes all connections.
    pub fn cut(&self) {
        for stream in lock(&self.network.open).drain(..) {
            if let Some(stream) = stream.upgrade() {
                let _ = stream.shutdown(Shutdown::Both); // fails if the connection has ended
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.network.has_ended.store(true, Ordering::SeqCst);
        self.cut();
        let _ = TcpStream::connect(self.address); // wakes the relay's thread
    }
}

/// Locks the mutex, even if a failed test has poisoned it.
fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Network {
    fn forward(self: Arc<Self>, client: TcpStream) {
        self.wait(&self.to_client);
        let target = *lock(&self.target);
        let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) else {
            return; // the connection is closed, as if it had been refused
        };
        let ends = [client, server].map(Arc::new);
        let mut open = lock(&self.open);
        open.retain(|stream| stream.strong_count() > 0);
        for stream in &ends {
            let _ = stream.set_nodelay(true); // fails if the connection has ended
            open.push(Arc::downgrade(stream));
        }
        drop(open);
        let [client, server] = ends;
        let (network, from, to) = (self.clone(), client.clone(), server.clone());
        thread::spawn(move || network.pass(&from, &to, &network.to_server));
        self.pass(&server, &client, &self.to_client);
    }

    /// Forwards data as it arrives, and the end of the stream.
    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, way: &Direction) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            self.wait(way);
            let mut bytes = buffer[..count].to_vec();
            if let Some(change) = lock(&way.change).as_mut() {
                change(&mut bytes);
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        self.wait(way);
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both); // fails if the connection has ended
        }
    }

    /// Waits while this direction is held.
    fn wait(&self, way: &Direction) {
        while way.is_held.load(Ordering::SeqCst) && !self.has_ended.load(Ordering::SeqCst) {
            thread::sleep(TURN);
        }
    }
}
