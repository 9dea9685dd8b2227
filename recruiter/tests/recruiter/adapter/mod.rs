//! Tests of `follow` with real memory servers: Debian's memcached and Redis, which tests/setup unpacks.

mod following;
mod memcached;
mod redis;
mod servers;
mod sources;
mod watched;
