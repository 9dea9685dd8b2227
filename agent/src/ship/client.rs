//! The collector, spoken to: one connection, kept open from one interval to the next.

use crate::clock::Moment;
use crate::ship::address::Address;
use crate::ship::answer::{Answer, Reply, Trouble};
use gleaner_dataset::batch::MEDIA_TYPE;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Response;
use ureq::{Agent, Body};

/// Longest answer that is read.
const LONGEST_ANSWER_BYTES: u64 = 64 << 10;

/// Of the time for an answer, so much is for the name, and for the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A whole exchange may take so many times what its answer may: a batch goes through a slow link.
const WHOLE_EXCHANGE: u32 = 5;

/// A connection idle for longer is not used again.
const LONGEST_IDLE: Duration = Duration::from_secs(900);

pub(crate) struct Client {
    agent: Agent,
    address: Address,
}

impl Client {
    /// `patience`: how long an answer may take to come once a request was sent.
    pub(crate) fn new(address: Address, patience: Duration) -> Self {
        let config = Config::builder()
            .http_status_as_error(false)
            .max_redirects(0) // nobody else is to hear of the trace
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("gleaner-agent/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT.min(patience)))
            .timeout_connect(Some(CONNECT.min(patience)))
            .timeout_recv_response(Some(patience))
            .timeout_recv_body(Some(patience))
            .timeout_global(Some(patience * WHOLE_EXCHANGE))
            .max_idle_connections(1)
            .max_idle_age(LONGEST_IDLE)
            .build();
        Self {
            agent: config.new_agent(),
            address,
        }
    }

    pub(crate) const fn address(&self) -> &Address {
        &self.address
    }

    /// The highest sequence of this database that is durable there.
    pub(crate) fn mark(&self, host_id: &str, database_id: &str) -> Result<Option<i64>, Trouble> {
        let path = format!("/v1/mark?host={host_id}&database={database_id}");
        let reply = self.reply(self.agent.get(self.address.of(&path)).call())?;
        reply.to_mark(&self.address.to_string())
    }

    /// Sends a batch whose last record is `last_sequence`.
    pub(crate) fn send(&self, batch: &[u8], last_sequence: i64) -> Result<Answer, Trouble> {
        let request = self
            .agent
            .post(self.address.of("/v1/batches"))
            .content_type(MEDIA_TYPE)
            .header("Content-Encoding", "zstd")
            .header("Gleaner-Sent-Ms", Moment::now().time_ms.to_string());
        let reply = self.reply(request.send(batch))?;
        reply.to_batch(&self.address.to_string(), last_sequence)
    }

    fn reply(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Reply, Trouble> {
        let unreachable = |error: ureq::Error| Trouble::Unreachable {
            address: self.address.to_string(),
            why: error.to_string(),
        };
        let mut answer = answer.map_err(unreachable)?;
        let retry_after = answer.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| Some(value.to_str().ok()?.to_owned()));
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config();
        let body = body.limit(LONGEST_ANSWER_BYTES).lossy_utf8(true);
        Ok(Reply {
            status,
            retry_after,
            body: body.read_to_string().map_err(unreachable)?,
        })
    }
}
