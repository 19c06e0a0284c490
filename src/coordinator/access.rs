//! Who calls, what they may do, and how often.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::clock::DefaultClock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use tonic::{Code, Request, Status};

use super::now_ms;
use crate::authority::{AccessError, Action, Authority, Name, Vouched};

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

const fn quota(per_s: u32, burst: u32) -> Quota {
    let (Some(per_s), Some(burst)) = (NonZeroU32::new(per_s), NonZeroU32::new(burst)) else {
        panic!("a quota of nothing")
    };
    Quota::per_second(per_s).allow_burst(burst)
}

/// Calls of whoever is known: a worker makes about one a second if its units are short.
const CALLS: Quota = quota(100, 400);
/// Calls from an address that enrol, or are refused for want of credentials.
const STRANGERS: Quota = quota(5, 100);

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) name: String,
}

/// Lets callers in.
pub(super) struct Access {
    /// None if everybody on this machine is trusted.
    authority: Option<Arc<Authority>>,
    calls: Limiter<String>,
    strangers: Limiter<IpAddr>,
}

/// The address of the other end.
pub(super) fn address<T>(request: &Request<T>) -> IpAddr {
    request.remote_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| address.ip())
}

/// The certificate (DER) that the other end shows.
pub(super) fn shown<T>(request: &Request<T>) -> Option<Vec<u8>> {
    request.peer_certs()?.first().map(|der| der.to_vec())
}

impl Access {
    pub(super) fn new(authority: Option<Arc<Authority>>) -> Self {
        Self { authority, calls: RateLimiter::hashmap(CALLS), strangers: RateLimiter::hashmap(STRANGERS) }
    }

    pub(super) const fn authority(&self) -> Option<&Arc<Authority>> {
        self.authority.as_ref()
    }

    /// Who calls, if they may do that. For whoever calls from within this process, that part of it vouches. Without an
    /// authority a caller is who it says it is.
    pub(super) fn admit<T>(
        &self,
        request: &Request<T>,
        action: Action,
        claimed: &str,
    ) -> Result<Caller, Status> {
        if let Some(Vouched { name, role }) = request.extensions().get::<Vouched>() {
            let (name, role) = (name.to_string(), *role);
            let forbidden = AccessError::Forbidden { role, action };
            return match role.may(action) {
                true => self.within_quota(name),
                false => Err(Status::permission_denied(forbidden.to_string())),
            };
        }
        if self.authority.is_none() {
            let claimed = if claimed.is_empty() { "operator" } else { claimed };
            let name: Name = claimed.parse().map_err(|error| Status::invalid_argument(format!("{error}")))?;
            return self.within_quota(name.to_string());
        }
        match self.authorize(shown(request).as_deref(), action) {
            Ok(name) => self.within_quota(name),
            Err(status) if status.code() == Code::Unauthenticated => {
                self.stranger(request)?;
                Err(status)
            }
            Err(status) => Err(status),
        }
    }

    /// The name of whoever shows a certificate (DER), if it may do that at this moment. Without an authority
    /// everybody may, and has no name.
    pub(super) fn authorize(&self, certificate: Option<&[u8]>, action: Action) -> Result<String, Status> {
        let Some(authority) = &self.authority else { return Ok(String::new()) };
        match authority.authorize(certificate, action, now_ms()) {
            Ok(identity) => Ok(identity.name.to_string()),
            Err(AccessError::Register(error)) => {
                tracing::error!("nobody is let in: {error}");
                Err(Status::unavailable("try again later"))
            }
            // The clock was set back: that passes, and nobody is to give up for it.
            Err(error @ AccessError::NotYetValid) => Err(Status::unavailable(error.to_string())),
            Err(error @ AccessError::Forbidden { .. }) => Err(Status::permission_denied(error.to_string())),
            Err(error) => Err(Status::unauthenticated(error.to_string())),
        }
    }

    /// Whether a caller without credentials may try once more.
    pub(super) fn stranger<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let within = self.strangers.check_key(&address(request));
        within.map_err(|_| Status::resource_exhausted("too many calls without credentials; try again later"))
    }

    fn within_quota(&self, name: String) -> Result<Caller, Status> {
        match self.calls.check_key(&name) {
            Ok(()) => Ok(Caller { name }),
            Err(_) => Err(Status::resource_exhausted("too many calls; wait a little")),
        }
    }

    /// Forgets callers that have not called for a while.
    pub(super) fn tidy(&self) {
        self.calls.retain_recent();
        self.strangers.retain_recent();
    }
}
