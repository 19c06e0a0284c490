//! The rate limits of the page.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::DefaultClock;
use governor::state::keyed::HashMapStateStore;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::cluster::net::network;

/// The maximum number of guests of one network at a time.
pub(super) const GUESTS_OF_A_NETWORK: u32 = 4;
/// The interval at which new guests are admitted, once as many as may be there at a time have come.
const NEW_GUEST: Duration = Duration::from_secs(5);

const fn positive(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("the quota must be positive")
}

/// The rate of attempts to open a session per network.
const SESSIONS: Quota = Quota::per_minute(positive(10));
/// The rate of calls of a page.
const CALLS: Quota = Quota::per_second(positive(20)).allow_burst(positive(100));
/// The rate of requests per network that need no session.
const PUBLIC: Quota = Quota::per_second(positive(20)).allow_burst(positive(200));

type Keyed<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// The rate limiters.
pub(super) struct Limits {
    sessions: Keyed<IpAddr>,
    public: Keyed<IpAddr>,
    calls: Keyed<String>,
    new_guests: RateLimiter<NotKeyed, InMemoryState, DefaultClock>,
}

impl Limits {
    pub(super) fn new(guests: u32) -> Self {
        let new_guests = Quota::with_period(NEW_GUEST).expect("a positive period");
        let new_guests = new_guests.allow_burst(positive(guests.max(1)));
        Self {
            sessions: RateLimiter::keyed(SESSIONS),
            public: RateLimiter::keyed(PUBLIC),
            calls: RateLimiter::keyed(CALLS),
            new_guests: RateLimiter::direct(new_guests),
        }
    }

    /// Returns whether the network of an address may try to open a session now.
    pub(super) fn may_open(&self, address: IpAddr) -> bool {
        self.sessions.check_key(&network(address)).is_ok()
    }

    /// Returns whether the network of an address may make a request without a session now.
    pub(super) fn may_ask(&self, address: IpAddr) -> bool {
        self.public.check_key(&network(address)).is_ok()
    }

    /// Returns whether a page may make a call now.
    pub(super) fn may_call(&self, page: &str) -> bool {
        self.calls.check_key(&page.to_owned()).is_ok()
    }

    /// Returns whether another guest may be admitted now.
    pub(super) fn may_admit_guest(&self) -> bool {
        self.new_guests.check().is_ok()
    }

    /// Forgets callers without recent calls.
    pub(super) fn forget_idle(&self) {
        self.sessions.retain_recent();
        self.public.retain_recent();
        self.calls.retain_recent();
    }
}
