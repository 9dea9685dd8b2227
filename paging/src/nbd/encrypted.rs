//! TLS over a socket, with few system calls: one receive takes all records that have arrived, and one send
//! takes all records of a write.
//!
//! rustls alone receives at most one record (16 KiB) in a call, and sends after 64 KiB.

use rustls::{ConnectionCommon, SideData};
use std::io::{self, IoSlice, Read, Write};
use std::ops::{Deref, DerefMut};

/// Size of the receive buffer of a connection that waits for its peer: three records.
const SMALL_BYTES: usize = 64 << 10;
/// Size of the receive buffer while more bytes wait than fit into the small one; a write request of 128 KiB
/// fits. It is smaller than the buffers of callers that poll (`device::run`), so that one read leaves nothing
/// behind that poll(2) does not see.
const LARGE_BYTES: usize = 192 << 10;
/// Limit of encrypted bytes that the socket has not accepted yet: as much as the server sends at one time.
const UNSENT_BYTES: usize = 256 << 10;

/// A socket from which bytes can be received without waiting.
pub(super) trait Receive {
    /// Receives bytes into the spare capacity of `into`, which must not be 0. Returns the number of bytes; 0
    /// means the end of the connection. If no bytes have arrived and `may_wait` is false, returns
    /// [`io::ErrorKind::WouldBlock`].
    fn receive(&mut self, into: &mut Vec<u8>, may_wait: bool) -> io::Result<usize>;
}

/// A TLS connection after its handshake, and its socket.
#[derive(Debug)]
pub(super) struct EncryptedStream<C, T> {
    connection: C,
    socket: ReceiveBuffer<T>,
    /// Error found behind bytes that a read has returned; the next read returns it.
    error: Option<io::Error>,
}

impl<C, D, T> EncryptedStream<C, T>
where
    C: DerefMut + Deref<Target = ConnectionCommon<D>>,
    D: SideData,
    T: Receive + Write,
{
    pub(super) fn new(mut connection: C, socket: T) -> Self {
        connection.set_buffer_limit(Some(UNSENT_BYTES));
        Self {
            connection,
            socket: ReceiveBuffer {
                socket,
                bytes: Vec::new(),
                from: 0,
                may_receive: false,
            },
            error: None,
        }
    }

    pub(super) fn connection(&self) -> &C {
        &self.connection
    }

    pub(super) fn socket(&self) -> &T {
        &self.socket.socket
    }

    /// Returns the stream for one call. Only reads may receive.
    fn stream(&mut self, may_receive: bool) -> rustls::Stream<'_, C, ReceiveBuffer<T>> {
        self.socket.may_receive = may_receive;
        rustls::Stream::new(&mut self.connection, &mut self.socket)
    }
}

impl<C, D, T> Read for EncryptedStream<C, T>
where
    C: DerefMut + Deref<Target = ConnectionCommon<D>>,
    D: SideData,
    T: Receive + Write,
{
    /// Returns the data of all records that one receive took, as far as `into` has room.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let mut filled = self.stream(true).read(into)?;
        while 0 < filled && filled < into.len() {
            match self.stream(false).read(&mut into[filled..]) {
                Ok(0) => break, // the next read finds the end again
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => {
                    self.error = Some(e);
                    break;
                }
            }
        }
        Ok(filled)
    }
}

impl<C, D, T> Write for EncryptedStream<C, T>
where
    C: DerefMut + Deref<Target = ConnectionCommon<D>>,
    D: SideData,
    T: Receive + Write,
{
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self.stream(false).write(from)? {
            0 if !from.is_empty() => Err(io::ErrorKind::WouldBlock.into()), // the limit is reached
            count => Ok(count),
        }
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.stream(false).write_vectored(from)? {
            0 if from.iter().any(|part| !part.is_empty()) => Err(io::ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream(false).flush()
    }
}

/// Bytes received from the socket that rustls has not taken yet. The memory is large only while bytes wait in
/// the socket: idle connections hold the small buffer.
#[derive(Debug)]
struct ReceiveBuffer<T> {
    socket: T,
    bytes: Vec<u8>,
    from: usize,
    /// If false, reads return [`io::ErrorKind::WouldBlock`] once all received bytes are taken.
    may_receive: bool,
}

impl<T: Receive> ReceiveBuffer<T> {
    /// Receives the next bytes, after all earlier ones are taken.
    fn receive(&mut self) -> io::Result<()> {
        let capacity = self.bytes.capacity();
        let is_full = self.bytes.len() == capacity;
        self.bytes.clear();
        self.from = 0;
        if capacity == 0 {
            self.bytes = Vec::with_capacity(SMALL_BYTES);
        } else if is_full && capacity < LARGE_BYTES {
            self.bytes = Vec::with_capacity(LARGE_BYTES);
        }
        if self.bytes.capacity() >= LARGE_BYTES {
            match self.socket.receive(&mut self.bytes, false) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    self.bytes = Vec::with_capacity(SMALL_BYTES);
                }
                received => return received.map(drop),
            }
        }
        self.socket.receive(&mut self.bytes, true).map(drop)
    }
}

impl<T: Receive> Read for ReceiveBuffer<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.from == self.bytes.len() {
            if !self.may_receive {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.receive()?;
        }
        let count = (&self.bytes[self.from..]).read(into)?;
        self.from += count;
        Ok(count)
    }
}

impl<T: Write> Write for ReceiveBuffer<T> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.socket.write(from)
    }

    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.write_vectored(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_trust::{Authority, ClientPaths, ClientTrust, Role, ServerPaths, ServerTrust};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};

    const MESSAGE_BYTES: usize = 16 + (128 << 10);

    /// End of a connection in memory that counts calls. It never waits.
    struct CountingSocket {
        arrived: Vec<u8>,
        sent: Vec<u8>,
        /// Number of bytes that it accepts.
        room: usize,
        receives: u32,
        sends: u32,
    }

    impl Receive for CountingSocket {
        fn receive(&mut self, into: &mut Vec<u8>, _may_wait: bool) -> io::Result<usize> {
            if self.arrived.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.receives += 1;
            let count = self.arrived.len().min(into.capacity() - into.len());
            into.extend(self.arrived.drain(..count));
            Ok(count)
        }
    }

    impl Write for CountingSocket {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(from)])
        }

        fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.sends += 1;
            let mut accepted = 0;
            for part in from {
                let count = part.len().min(self.room);
                self.sent.extend(&part[..count]);
                self.room -= count;
                accepted += count;
            }
            Ok(accepted)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type ClientStream = EncryptedStream<ClientConnection, CountingSocket>;
    type ServerStream = EncryptedStream<ServerConnection, CountingSocket>;

    /// Passes what one side has to send to the other side.
    fn pass<A, B>(from: &mut ConnectionCommon<A>, to: &mut ConnectionCommon<B>) {
        let mut records = Vec::new();
        while from.wants_write() {
            from.write_tls(&mut records).unwrap();
        }
        let mut rest = &records[..];
        while !rest.is_empty() {
            to.read_tls(&mut rest).unwrap();
            to.process_new_packets().unwrap();
        }
    }

    /// Returns both ends of a connection after its handshake.
    fn pair() -> (ClientStream, ServerStream) {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let authority = Authority::init(&file("pki"), "here", 1).unwrap();
        let host_id = "a".repeat(32); // a name of digits alone is no DNS name
        let name = ServerName::try_from(host_id.clone()).unwrap();
        let host = authority.issue(&Role::Host { host_id }, 1).unwrap();
        host.write(&file("host.crt"), &file("host.key")).unwrap();
        let client = Role::Client {
            name: "client".to_owned(),
        };
        let client = authority.issue(&client, 1).unwrap();
        client.write(&file("crt"), &file("key")).unwrap();
        let of_server = ServerTrust::load(&ServerPaths {
            certificate: file("host.crt"),
            key: file("host.key"),
            authority: authority.certificate_path(),
            revocation_list: None,
        });
        let of_client = ClientTrust::load(&ClientPaths {
            certificate: file("crt"),
            key: file("key"),
            authority: authority.certificate_path(),
        });
        let of_client = of_client.unwrap().credentials().config();
        let mut client = ClientConnection::new(of_client, name).unwrap();
        let mut server = ServerConnection::new(of_server.unwrap().config()).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            pass(&mut client, &mut server);
            pass(&mut server, &mut client);
        }
        let socket = || CountingSocket {
            arrived: Vec::new(),
            sent: Vec::new(),
            room: usize::MAX,
            receives: 0,
            sends: 0,
        };
        (
            EncryptedStream::new(client, socket()),
            EncryptedStream::new(server, socket()),
        )
    }

    #[test]
    fn a_message_of_128_kib_is_sent_by_one_call_and_received_by_two() {
        let (mut client, mut server) = pair();
        let message: Vec<u8> = (0..MESSAGE_BYTES).map(|i| (i % 251) as u8).collect();
        server.write_all(&message).unwrap();
        server.flush().unwrap();
        assert_eq!(server.socket().sends, 1);

        client.socket.socket.arrived = std::mem::take(&mut server.socket.socket.sent);
        let (mut found, mut reads) = (vec![0; 2 * MESSAGE_BYTES], 0);
        let mut filled = 0;
        while filled < MESSAGE_BYTES {
            filled += client.read(&mut found[filled..]).unwrap();
            reads += 1;
        }
        assert_eq!((client.socket().receives, reads), (2, 2));
        assert!(found[..filled] == message);
    }

    #[test]
    fn a_connection_that_waits_holds_the_small_buffer() {
        let (mut client, mut server) = pair();
        let mut found = vec![0; MESSAGE_BYTES];
        for _ in 0..2 {
            server.write_all(&found).unwrap();
            client.socket.socket.arrived = std::mem::take(&mut server.socket.socket.sent);
            client.read_exact(&mut found).unwrap();
            assert!(client.socket.bytes.capacity() >= LARGE_BYTES);
            let ended = client.read(&mut found).unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::WouldBlock);
            assert!(client.socket.bytes.capacity() < LARGE_BYTES);
        }
    }

    #[test]
    fn pages_that_have_arrived_are_received_together() {
        let (mut client, mut server) = pair();
        let message = [7; 28 + 4096];
        for _ in 0..40 {
            client.write_all(&message).unwrap();
        }
        assert_eq!(client.socket().sends, 40);
        server.socket.socket.arrived = std::mem::take(&mut client.socket.socket.sent);
        let mut found = vec![0; 40 * message.len()];
        server.read_exact(&mut found).unwrap();
        assert_eq!(server.socket().receives, 2);
        assert!(found.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn data_before_a_damaged_record_are_read_first() {
        let (mut client, mut server) = pair();
        let record = [7; 16 << 10];
        client.write_all(&record).unwrap();
        client.write_all(&record).unwrap();
        *client.socket.socket.sent.last_mut().unwrap() ^= 1;
        server.socket.socket.arrived = std::mem::take(&mut client.socket.socket.sent);
        let mut found = vec![0; 4 * record.len()];
        assert_eq!(server.read(&mut found).unwrap(), record.len());
        let ended = server.read(&mut found).unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_socket_that_accepts_little_gets_all_bytes_later() {
        let (mut client, mut server) = pair();
        let message = vec![7; UNSENT_BYTES];
        server.socket.socket.room = 100;
        assert_eq!(server.write(&message).unwrap(), UNSENT_BYTES);
        server.socket.socket.room = 50;
        let refused = server.write(&message).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        server.socket.socket.room = usize::MAX;
        server.flush().unwrap();
        client.socket.socket.arrived = std::mem::take(&mut server.socket.socket.sent);
        let mut found = vec![0; UNSENT_BYTES];
        client.read_exact(&mut found).unwrap();
        assert!(found == message);
    }
}
