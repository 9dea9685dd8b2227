//! Connections for a router of axum's, as collector and recruiter take them: TLS with certificates of the deployment, or plain
//! HTTP from this machine; who is slow is given up; each request says who asks ([`Caller`], among its extensions).
//! Upgraded connections (WebSocket) and answers that never end are let be.

mod caller;
mod log;
mod serve;
mod sockets;

pub use caller::{Caller, Who};
pub use log::Log;
pub use serve::{Limits, Server, serve};
pub use sockets::{allow_descriptors, bind, follow_files};
