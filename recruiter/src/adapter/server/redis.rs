//! Controls the `maxmemory` of Redis and Valkey. They evict data immediately if `maxmemory-policy` allows it,
//! and refuse writes otherwise.

use super::super::FollowArgs;
use super::{Failure, PATIENCE, State};
use ::redis::{
    Client, Connection, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    RedisError, cmd,
};
use std::collections::HashMap;

pub(in super::super) struct Redis {
    address: String,
    info: ConnectionInfo,
    connection: Option<Connection>,
}

impl Redis {
    pub(super) fn new(address: &str, args: &FollowArgs) -> Result<Self, Failure> {
        let mut settings = RedisConnectionInfo::default();
        if let Some(path) = &args.password_file {
            let password = std::fs::read_to_string(path).map_err(|source| Failure::File {
                path: path.clone(),
                source,
            })?;
            settings = settings.set_password(password.trim_end_matches(['\r', '\n']));
        }
        if let Some(user) = &args.user {
            settings = settings.set_username(user);
        }
        let where_it_is = if address.starts_with('/') {
            Some(ConnectionAddr::Unix(address.into()))
        } else {
            let parts = address.rsplit_once(':');
            parts.and_then(|(host, port)| {
                let host = host.trim_start_matches('[').trim_end_matches(']');
                Some(ConnectionAddr::Tcp(host.to_owned(), port.parse().ok()?))
            })
        };
        let info = where_it_is.map(IntoConnectionInfo::into_connection_info);
        match info {
            Some(Ok(info)) => Ok(Self {
                address: address.to_owned(),
                info: info.set_redis_settings(settings),
                connection: None,
            }),
            _ => Err(failure(address, "no address: write it like 127.0.0.1:6379")),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("redis at {}", self.address)
    }

    pub(super) fn state(&mut self) -> Result<State, Failure> {
        let info: String =
            self.try_with(|connection| cmd("INFO").arg("memory").query(connection))?;
        let figure = |name: &str| {
            let value = info
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let value = value.and_then(|value| value.trim().parse().ok());
            value.ok_or_else(|| failure(&self.address, format!("INFO memory has no {name}")))
        };
        Ok(State {
            used_bytes: figure("used_memory_rss")?,
            limit_bytes: figure("maxmemory")?,
        })
    }

    pub(super) fn set_limit(&mut self, bytes: u64) -> Result<(), Failure> {
        self.try_with(|connection| {
            let mut command = cmd("CONFIG");
            command
                .arg("SET")
                .arg("maxmemory")
                .arg(bytes)
                .query(connection)
        })
    }

    /// Makes the allocator return evicted memory, which it would keep otherwise. It returns dirty pages only
    /// slowly.
    pub(super) fn shrink_to_limit(&mut self) -> Result<(), Failure> {
        self.try_with(|connection| cmd("MEMORY").arg("PURGE").query(connection))
    }

    /// Returns true if an eviction policy is set.
    pub(super) fn evicts(&mut self) -> Result<bool, Failure> {
        let found: HashMap<String, String> = self.try_with(|connection| {
            let mut command = cmd("CONFIG");
            command.arg("GET").arg("maxmemory-policy").query(connection)
        })?;
        Ok(found.values().all(|policy| policy != "noeviction"))
    }

    fn try_with<T>(
        &mut self,
        work: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, Failure> {
        let done = match &mut self.connection {
            Some(connection) => work(connection),
            none => connect(&self.info).and_then(|connection| work(none.insert(connection))),
        };
        done.map_err(|e| {
            self.connection = None;
            failure(&self.address, e.to_string())
        })
    }
}

fn connect(info: &ConnectionInfo) -> Result<Connection, RedisError> {
    let connection = Client::open(info.clone())?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

fn failure(address: &str, why: impl Into<String>) -> Failure {
    Failure::Server {
        name: "Redis",
        address: address.to_owned(),
        why: why.into(),
    }
}
