//! The client's side: connecting to a server. The caller then uses the connection.

mod connect;
mod source;
mod tls;
mod wire;

pub(super) use connect::introduce;
pub use connect::{ConnectError, Export, Server, connect};
pub use source::{ExportUrlError, Source};
pub use tls::Tls;
pub use wire::Wire;
