//! The client's side: how a server is reached. What goes over the connection then is up to who has it.

mod connect;
mod source;
mod tls;
mod wire;

pub(super) use connect::introduce;
pub use connect::{ConnectError, Export, Server, connect};
pub use source::{AddressError, Source};
pub use tls::Tls;
pub use wire::Wire;
