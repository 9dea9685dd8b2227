//! Connections of clients that are not authenticated yet.
//!
//! Anybody may connect and send nothing. So such connections have their own limit, and a smaller one per
//! address. At a limit, a new connection replaces the oldest one of its own address, or of the address with
//! most connections. A client that negotiates promptly, within milliseconds, succeeds among any number of
//! silent ones.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of simultaneous connections of one address.
const MOST_OF_ADDRESS: usize = 16;
/// Maximum number of simultaneous connections of all addresses.
const MOST: usize = 256;

/// Negotiating connections by remote address, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<WaitingConnections>);

#[derive(Debug, Default)]
struct WaitingConnections {
    next: u64,
    count: usize,
    by_address: BTreeMap<IpAddr, VecDeque<(u64, TcpStream)>>,
}

/// Registration of an unauthenticated client; removed when the client is authenticated or disconnected.
#[derive(Debug)]
pub(super) struct Place {
    strangers: Arc<Strangers>,
    address: IpAddr,
    number: u64,
}

impl Strangers {
    fn waiting(&self) -> MutexGuard<'_, WaitingConnections> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection that was just accepted; closes the oldest if there are too many.
    ///
    /// # Errors
    /// The connection has ended, or no descriptor is left.
    pub(super) fn enter(self: &Arc<Self>, stream: &TcpStream) -> std::io::Result<Place> {
        let address = stream.peer_addr()?.ip().to_canonical();
        let own = stream.try_clone()?;
        let mut waiting = self.waiting();
        if waiting.of(address) >= MOST_OF_ADDRESS {
            waiting.close_oldest(address);
        } else if waiting.count >= MOST
            && let Some(crowded) = waiting.address_with_most_connections()
        {
            waiting.close_oldest(crowded);
        }
        waiting.next += 1;
        waiting.count += 1;
        let number = waiting.next;
        let of_address = waiting.by_address.entry(address).or_default();
        of_address.push_back((number, own));
        Ok(Place {
            strangers: self.clone(),
            address,
            number,
        })
    }
}

impl WaitingConnections {
    fn of(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).map_or(0, VecDeque::len)
    }

    fn address_with_most_connections(&self) -> Option<IpAddr> {
        let crowded = self.by_address.iter().max_by_key(|(_, all)| all.len());
        crowded.map(|(address, _)| *address)
    }

    fn close_oldest(&mut self, address: IpAddr) {
        let oldest = self
            .by_address
            .get(&address)
            .and_then(|all| all.front())
            .map(|(number, stream)| {
                let _ = stream.shutdown(Shutdown::Both); // the connection's thread notices the end
                *number
            });
        if let Some(number) = oldest {
            self.leave(address, number);
        }
    }

    fn leave(&mut self, address: IpAddr, number: u64) {
        let Some(all) = self.by_address.get_mut(&address) else {
            return;
        };
        if let Some(at) = all.iter().position(|(there, _)| *there == number) {
            all.remove(at);
            self.count -= 1;
        }
        if all.is_empty() {
            self.by_address.remove(&address);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.waiting().leave(self.address, self.number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nbd::{Address, Door, Leases, Listener, Load};
    use crate::store::{Options, Store};
    use gleaner_daemon::shares::Shares;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    #[test]
    fn the_newest_of_an_address_takes_the_place_of_its_oldest() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let strangers = Arc::new(Strangers::default());
        let enter = || {
            let client = TcpStream::connect(at).unwrap();
            let (server, _) = listener.accept().unwrap();
            let place = strangers.enter(&server).unwrap();
            (client, server, place)
        };
        let mut first = enter();
        let others: Vec<_> = (0..MOST_OF_ADDRESS).map(|_| enter()).collect();
        assert_eq!(first.1.read(&mut [0]).unwrap(), 0, "the oldest is closed");
        assert_eq!(strangers.waiting().count, MOST_OF_ADDRESS);
        drop(first);
        assert_eq!(strangers.waiting().count, MOST_OF_ADDRESS);
        drop(others);
        let waiting = strangers.waiting();
        assert!(waiting.count == 0 && waiting.by_address.is_empty());
    }

    #[test]
    fn a_crowd_that_says_nothing_shuts_no_client_out() {
        let options = Options {
            wants_huge: false,
            wants_locked: false,
        };
        let store = Arc::new(Store::new(4 << 20, 1, options).unwrap());
        store.open("a", "client", 4 << 20);
        let leases = Leases {
            store,
            default: Some(("a".to_owned(), 1)),
            shares: Arc::new(Shares::whole(4)),
        };
        let any = Address::Tcp(([127, 0, 0, 1], 0).into());
        let listener = Listener::open(&any).unwrap();
        let at = listener.tcp_address().unwrap().unwrap();
        let load = Arc::new(Load::default());
        let most_connections = 4;
        listener
            .serve(Arc::new(leases), Door::Open, load.clone(), most_connections)
            .unwrap();
        let _crowd: Vec<_> = (0..60).map(|_| TcpStream::connect(at).unwrap()).collect();
        let _clients: Vec<_> = (0..most_connections)
            .map(|_| {
                let mut client = TcpStream::connect(at).unwrap();
                client.read_exact(&mut [0; 18]).unwrap();
                // Sends flags, then EXPORT_NAME of the default export. The answer consists of size and flags.
                client.write_all(&3_u32.to_be_bytes()).unwrap();
                client.write_all(b"IHAVEOPT").unwrap();
                client.write_all(&1_u32.to_be_bytes()).unwrap();
                client.write_all(&0_u32.to_be_bytes()).unwrap();
                let mut answer = [0; 10];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(answer[..8], (4_u64 << 20).to_be_bytes());
                client
            })
            .collect();
        // The server counts a client only just after it has answered.
        let begun = Instant::now();
        while load.counted().connections < most_connections {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::yield_now();
        }
    }
}
