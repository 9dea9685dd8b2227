//! Tests of certificates, tokens and connections, with real files and sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod authority;
mod deployment;
mod handshake;
mod hostile;
mod http;
mod loopback;
mod openssl;
mod own_pki;
mod received;
mod rotation;
mod tokens;
