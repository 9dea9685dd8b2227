//! A simulated memory server, which has no pages.

use crate::{Sums, host_id};
use futures_util::{SinkExt, StreamExt};
use gleaner_policy::accounting::Categories;
use gleaner_policy::idle::Verdict;
use gleaner_policy::lending::{Action, Event, Lender, Settings};
use gleaner_schemas::lending::{Announcement, Answer, HostMessage, RecruiterMessage, VERSION};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustls::ClientConfig;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, sleep_until};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

const PHYSICAL_BYTES: u64 = 16 << 30;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
type Socket = WebSocketStream<Box<dyn Stream>>;

pub(crate) struct Host {
    id: String,
    lender: Lender,
    random: ChaCha8Rng,
    begin: Instant,
    announce_every: Duration,
    /// Delay of the first announcement. It differs between hosts, so that their announcements are spread over
    /// the interval.
    phase: Duration,
    sums: Arc<Sums>,
}

impl Host {
    pub(crate) fn new(n: usize, hosts: usize, announce_every: Duration, sums: Arc<Sums>) -> Self {
        let settings = Settings {
            rise_after_ms: 0,
            ..Settings::default()
        };
        Self {
            id: host_id(n),
            lender: Lender::new(settings, n as u64 + 1),
            random: ChaCha8Rng::seed_from_u64(n as u64),
            begin: Instant::now(),
            announce_every,
            phase: announce_every.mul_f64(n as f64 / hosts as f64),
            sums,
        }
    }

    fn now_ms(&self) -> i64 {
        i64::try_from(self.begin.elapsed().as_millis()).unwrap()
    }

    /// Connects to the recruiter, and connects again whenever the connection ends.
    pub(crate) async fn run(mut self, url: String, tls: Option<Arc<ClientConfig>>) {
        // If all hosts connected at the same time, they would fill the queue of pending connections.
        sleep(self.phase).await;
        loop {
            let is_lost = match self.connect(&url, tls.clone()).await {
                Ok(mut socket) => {
                    self.sums.linked.fetch_add(1, Ordering::Relaxed);
                    let end = self.serve(&mut socket).await;
                    self.sums.linked.fetch_sub(1, Ordering::Relaxed);
                    end
                }
                Err(error) => Err(error),
            };
            if let Err(error) = is_lost
                && self.sums.lost.fetch_add(1, Ordering::Relaxed) < 3
            {
                eprintln!("host {}: {error}", self.id);
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn connect(&self, url: &str, tls: Option<Arc<ClientConfig>>) -> Result<Socket, Error> {
        let stream = TcpStream::connect(url).await?;
        stream.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match tls {
            Some(config) => {
                let name = "localhost".try_into().unwrap();
                Box::new(TlsConnector::from(config).connect(name, stream).await?)
            }
            None => Box::new(stream),
        };
        let address = format!("ws://{url}/v1/hosts/{}/link", self.id);
        Ok(client_async(address, stream).await?.0)
    }

    async fn serve(&mut self, socket: &mut Socket) -> Result<(), Error> {
        self.sample();
        self.announce(socket).await?;
        let mut due = Instant::now() + self.announce_every;
        loop {
            tokio::select! {
                () = sleep_until(due.into()) => {
                    due += self.announce_every;
                    self.sample();
                    self.announce(socket).await?;
                }
                heard = socket.next() => match heard {
                    Some(Ok(Message::Text(text))) => self.hear(socket, &text).await?,
                    Some(Ok(_)) => (),
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Changes the quota to between a quarter and half of the memory. On one host in ten the owner is present
    /// and the quota is 0.
    fn sample(&mut self) {
        let is_idle = self.random.random_range(0..10) > 0;
        let available = PHYSICAL_BYTES / 4 + self.random.random_range(0..PHYSICAL_BYTES / 4);
        let now_ms = self.now_ms();
        let verdict = if is_idle {
            Verdict::Idle { since_ms: 0 }
        } else {
            Verdict::Waiting {
                at_ms: now_ms + 300_000,
            }
        };
        let event = Event::Sample {
            categories: Categories {
                physical_bytes: PHYSICAL_BYTES,
                available_bytes: available,
                ..Categories::default()
            },
            mem_available_bytes: Some(available),
            headroom_share: 0.15,
            verdict,
        };
        self.lender.step(&event, now_ms);
    }

    async fn hear(&mut self, socket: &mut Socket, text: &str) -> Result<(), Error> {
        let RecruiterMessage::Request(request) = serde_json::from_str(text).unwrap() else {
            panic!("{text}");
        };
        self.sums.requests.fetch_add(1, Ordering::Relaxed);
        let event = Event::Request {
            link: 0,
            request,
            fresh_id: format!("{:032x}", self.random.random::<u128>()),
        };
        let now_ms = self.now_ms();
        for action in self.lender.step(&event, now_ms) {
            match action {
                Action::Answer {
                    request_id,
                    outcome,
                    ..
                } => {
                    let answer = Answer {
                        request_id,
                        outcome,
                        unleased_bytes: self.lender.quota(now_ms).unleased_bytes,
                        requests_per_s: 0.0,
                    };
                    say(socket, &HostMessage::Answer(Box::new(answer))).await?;
                }
                Action::Announce => self.announce(socket).await?,
                _ => (), // there is no memory to release
            }
        }
        Ok(())
    }

    async fn announce(&mut self, socket: &mut Socket) -> Result<(), Error> {
        let now_ms = self.now_ms();
        let mut quota = self.lender.quota(now_ms);
        quota.host_id.clone_from(&self.id);
        let announcement = Announcement {
            version: VERSION,
            memoryd_version: "swarm".to_owned(),
            incarnation: self.id.clone(),
            quota,
            address: Some("192.0.2.1:10809".to_owned()), // for documentation (RFC 5737): no page is requested
            pages_socket: None,
            requests_per_s: 0.0,
            leases: self.lender.leases(now_ms),
            accepts_revocation_lists: false,
        };
        let bytes = say(socket, &HostMessage::Announcement(Box::new(announcement))).await?;
        self.sums.announcements.fetch_add(1, Ordering::Relaxed);
        self.sums
            .announced_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

async fn say(socket: &mut Socket, message: &HostMessage) -> Result<u64, Error> {
    let text = serde_json::to_string(message).unwrap();
    let bytes = text.len() as u64;
    socket.send(Message::Text(text.into())).await?;
    Ok(bytes)
}
