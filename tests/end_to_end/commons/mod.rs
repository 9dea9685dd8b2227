//! The commons with the built program: real FUSE mounts, whose every byte is compared with the sealed folder.

mod faults;
mod fleet;
mod hostile;
mod http;
mod https;
mod lifetime;
mod mounted;
mod privileges;
mod recruited;
mod renewed;
mod rounds;
mod server;
mod shared;
mod stage;
mod toolchain;
mod verified;
