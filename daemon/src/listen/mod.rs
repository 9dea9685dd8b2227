//! Connections for an axum router, as used by collector, recruiter and commons: TLS with certificates of the
//! deployment, or plain HTTP from this machine. Slow clients are disconnected. Each request has its
//! [`Caller`] among its extensions. Upgraded connections (WebSocket) and endless answers have no time limit.
//! [`until_ended`] runs the server as a service.

mod caller;
mod log;
mod serve;
mod service;
mod sockets;

pub use caller::{Caller, CallerIdentity};
pub use log::Log;
pub use serve::{Limits, Server, serve};
pub use service::{Signals, until_ended};
pub use sockets::{allow_descriptors, bind, follow_files};
