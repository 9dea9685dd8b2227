//! State shared by the HTTP handlers.

use super::feed::Feed;
use super::problem::Problem;
use crate::args::LocalAccess;
use crate::config::Config;
use crate::state::RecruiterState;
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::Server;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of lists of all quotas that are encoded at the same time. Each list takes megabytes.
const WRITERS: usize = 4;

/// State of the recruiter and of its HTTP interface.
pub(crate) struct App {
    pub(crate) state: Arc<RecruiterState>,
    pub(crate) feed: Feed,
    pub(super) local_access: LocalAccess,
    pub(super) writers: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(state: Arc<RecruiterState>, config: &Config) -> Self {
        Self {
            state,
            feed: Feed::default(),
            local_access: config.local_access,
            writers: Arc::new(Semaphore::new(WRITERS)),
        }
    }
}

impl Server for App {
    fn opened(&self) -> Box<dyn Send> {
        Box::new(self.state.metrics.connection())
    }

    fn connection_rejected(&self) {
        self.state.metrics.count_rejection("connections_limit");
    }

    fn failed(&self, address: SocketAddr, error: &io::Error) {
        self.state.metrics.count_rejection("connection");
        let sender = address.ip().to_string();
        self.state.complain(&sender, &error.to_string());
    }

    fn forbidden(&self, why: &str) -> Response {
        Problem::forbidden(why).into_response()
    }
}
