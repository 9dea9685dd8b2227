//! Addresses of members by their host ids. A request names its receiver by the host id, which the receiver's
//! certificate must have; this module finds the address.

use crate::directory::Membership;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// Time for which a resolved name is used.
const RESOLVED_FOR: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct MemberResolver {
    /// `HOST:PORT` of each member, by its host id.
    addresses: HashMap<String, String>,
    resolved: Mutex<HashMap<String, (Instant, Vec<SocketAddr>)>>,
    names: DefaultResolver,
}

impl MemberResolver {
    pub(super) fn new(membership: &Membership) -> Self {
        let members = membership.list().iter();
        Self {
            addresses: members
                .map(|member| (member.host_id.clone(), member.address.clone()))
                .collect(),
            resolved: Mutex::default(),
            names: DefaultResolver::default(),
        }
    }

    fn of(&self, found: &[SocketAddr]) -> ResolvedSocketAddrs {
        let mut all = self.empty();
        for address in found.iter().take(MOST_ADDRESSES) {
            all.push(*address);
        }
        all
    }
}

/// Most addresses that ureq takes.
const MOST_ADDRESSES: usize = 16;

impl Resolver for MemberResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host_id = uri.host().unwrap_or_default();
        let address = self.addresses.get(host_id).ok_or(Error::HostNotFound)?;
        if let Ok(address) = address.parse::<SocketAddr>() {
            return Ok(self.of(&[address]));
        }
        let lock = || self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, found)) = lock().get(host_id)
            && at.elapsed() < RESOLVED_FOR
        {
            return Ok(self.of(found));
        }
        let named = format!("https://{address}/").parse::<Uri>();
        let named = named.map_err(|_| Error::BadUri(address.clone()))?;
        let found = self.names.resolve(&named, config, timeout)?;
        let kept = (Instant::now(), found.iter().copied().collect());
        lock().insert(host_id.to_owned(), kept);
        Ok(found)
    }
}
