//! Connections for a router of axum's, as collector and recruiter take them: TLS with certificates of the deployment, or plain
//! HTTP from this machine; slow clients are disconnected; each request has its [`Caller`] among its extensions.
//! Upgraded connections (WebSocket) and answers that never end are let be. [`until_ended`] is their life as a service.

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
