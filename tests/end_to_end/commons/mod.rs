//! The commons with the built program: real FUSE mounts, whose every byte is compared with the sealed folder.

mod faults;
mod fleet;
mod hostile;
mod http;
mod https;
mod injection;
mod lifetime;
mod mounted;
mod privileges;
mod readers;
mod recruited;
mod renewed;
mod rounds;
mod server;
mod shared;
mod stage;
mod toolchain;
mod verified;
