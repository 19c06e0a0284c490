//! The sessions of pages: of guests, and of workers with a token.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use data_encoding::BASE32_NOPAD;

use super::limits::{GUESTS_OF_A_NETWORK, Limits};
use crate::cluster::auth::{
    Authority, EnrollError, InProcessWorker, SessionEntry, SessionError, SessionSecret, Token,
};
use crate::cluster::campaign::{CampaignKey, guest_name, guest_owner};
use crate::cluster::net::network;

/// The beginning of a guest's secret; that of a worker has none.
const GUEST: &str = "guest.";
/// The lifetime of a guest's session: it ends with the day after the one on which it was opened.
const DAY_MS: u64 = 86_400_000;
/// The time after which a guest that makes no call is gone.
const GONE_AFTER: Duration = Duration::from_secs(90);

/// An authenticated page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visitor {
    /// The worker that the page is.
    pub(super) worker: InProcessWorker,
    /// True if it has no credentials.
    pub(super) is_guest: bool,
}

/// The reason that a page has no session.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("open a session first")]
    NoSession,
    #[error("this coordinator admits no guests; use a link with a token")]
    NoGuests,
    #[error("there are as many guests as may count at a time; try again later")]
    TooManyGuests,
    #[error("this coordinator has no authority, so it knows no token; open the page without one")]
    NoAuthority,
    #[error("{0}")]
    Token(String),
    #[error("try again later")]
    Unavailable,
}

/// The sessions of pages.
pub(super) struct Sessions {
    authority: Option<Arc<Authority>>,
    key: CampaignKey,
    most_guests: u32,
    /// The guests that are there, with the time of their last call.
    guests: Mutex<HashMap<String, Instant>>,
}

impl Sessions {
    pub(super) fn new(
        authority: Option<Arc<Authority>>,
        key: CampaignKey,
        most_guests: u32,
    ) -> Self {
        Self { authority, key, most_guests, guests: Mutex::default() }
    }

    pub(super) const fn authority(&self) -> Option<&Arc<Authority>> {
        self.authority.as_ref()
    }

    pub(super) const fn most_guests(&self) -> u32 {
        self.most_guests
    }

    /// Returns the number of guests that are there.
    pub(super) fn guests_here(&self) -> usize {
        self.present_guests().len()
    }

    /// Returns the guests that are there, after removing those that are gone.
    fn present_guests(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        let mut guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner);
        guests.retain(|_, called| called.elapsed() < GONE_AFTER);
        guests
    }

    /// Returns the pseudonym of a network: 60 bits that cannot be computed without the key.
    fn pseudonym(&self, address: IpAddr) -> String {
        let code = self.key.mac("network of guests", &[network(address).to_string().as_bytes()]);
        let mut text = BASE32_NOPAD.encode(&code).to_ascii_lowercase();
        text.truncate(12);
        text
    }

    /// Returns the code of a guest's session: valid for the network and the number on a day.
    fn guest_code(&self, address: IpAddr, number: u32, day: u64) -> String {
        let network = network(address).to_string();
        let fields = [network.as_bytes(), &number.to_be_bytes(), &day.to_be_bytes()];
        BASE32_NOPAD.encode(&self.key.mac("session of a guest", &fields)[..16])
    }

    fn guest(&self, address: IpAddr, number: u32) -> Visitor {
        let name = guest_name(&self.pseudonym(address), number);
        let owner = guest_owner(&name).to_owned();
        Visitor { worker: InProcessWorker { name, owner, address }, is_guest: true }
    }

    /// Opens the session of a guest. Returns its secret.
    pub(super) fn open_guest(
        &self,
        address: IpAddr,
        limits: &Limits,
        now_ms: u64,
    ) -> Result<(String, Visitor), Refused> {
        if self.most_guests == 0 {
            return Err(Refused::NoGuests);
        }
        let mut present = self.present_guests();
        let numbers = 1..=GUESTS_OF_A_NETWORK;
        let mut visitors = numbers.map(|number| (number, self.guest(address, number)));
        let free = visitors.find(|(_, visitor)| !present.contains_key(&visitor.worker.name));
        let Some((number, visitor)) = free.filter(|_| present.len() < self.most_guests as usize)
        else {
            return Err(Refused::TooManyGuests);
        };
        if !limits.may_admit_guest() {
            return Err(Refused::TooManyGuests);
        }
        present.insert(visitor.worker.name.clone(), Instant::now());
        let day = now_ms / DAY_MS;
        let code = self.guest_code(address, number, day);
        Ok((format!("{GUEST}{number}.{day}.{code}"), visitor))
    }

    /// Redeems a token for the session of a worker. Returns its secret. Waits for the disk.
    pub(super) fn open_worker(
        &self,
        token: &str,
        address: IpAddr,
        now_ms: u64,
    ) -> Result<(String, Visitor), Refused> {
        let authority = self.authority.as_ref().ok_or(Refused::NoAuthority)?;
        let token: Token =
            token.parse().map_err(|error| Refused::Token(format!("the link is wrong: {error}")))?;
        match authority.open_page(&token, now_ms) {
            Ok((secret, session)) => Ok((secret.to_string(), worker(session, address))),
            Err(EnrollError::Registry(error)) => {
                tracing::error!("no page is admitted: {error}");
                Err(Refused::Unavailable)
            }
            Err(error) => Err(Refused::Token(error.to_string())),
        }
    }

    /// Returns the page with this secret. May wait for the disk, to extend the session of a worker.
    pub(super) fn visitor(
        &self,
        secret: &str,
        address: IpAddr,
        now_ms: u64,
    ) -> Result<Visitor, Refused> {
        match secret.strip_prefix(GUEST) {
            Some(secret) => self.known_guest(secret, address, now_ms),
            None => self.known_worker(secret, address, now_ms),
        }
    }

    fn known_guest(&self, secret: &str, address: IpAddr, now_ms: u64) -> Result<Visitor, Refused> {
        let mut fields = secret.splitn(3, '.');
        let mut next = || fields.next().ok_or(Refused::NoSession);
        let number: u32 = next()?.parse().map_err(|_| Refused::NoSession)?;
        let day: u64 = next()?.parse().map_err(|_| Refused::NoSession)?;
        let code = next()?;
        let today = now_ms / DAY_MS;
        let is_valid = (1..=GUESTS_OF_A_NETWORK).contains(&number)
            && day <= today
            && today - day <= 1
            // Constant time is unnecessary: a guess takes a call, and 2^127 calls are infeasible.
            && code == self.guest_code(address, number, day);
        if !is_valid || self.most_guests == 0 {
            return Err(Refused::NoSession);
        }
        let visitor = self.guest(address, number);
        let mut present = self.present_guests();
        // After a restart of the coordinator, guests return in any order.
        let is_full = present.len() >= self.most_guests as usize;
        if is_full && !present.contains_key(&visitor.worker.name) {
            return Err(Refused::TooManyGuests);
        }
        present.insert(visitor.worker.name.clone(), Instant::now());
        Ok(visitor)
    }

    fn known_worker(&self, secret: &str, address: IpAddr, now_ms: u64) -> Result<Visitor, Refused> {
        let authority = self.authority.as_ref().ok_or(Refused::NoSession)?;
        let secret: SessionSecret = secret.parse().map_err(|_| Refused::NoSession)?;
        match authority.extend_page(&secret, now_ms) {
            Ok(session) => Ok(worker(session, address)),
            Err(SessionError::Registry(error)) => {
                tracing::error!("no page is admitted: {error}");
                Err(Refused::Unavailable)
            }
            Err(_) => Err(Refused::NoSession),
        }
    }

    /// Records that a guest has left.
    pub(super) fn leave(&self, visitor: &Visitor) {
        self.present_guests().remove(&visitor.worker.name);
    }
}

fn worker(session: SessionEntry, address: IpAddr) -> Visitor {
    let SessionEntry { name, owner, .. } = session;
    let owner = owner.map_or_else(|| name.to_string(), Into::into);
    Visitor { worker: InProcessWorker { name: name.into(), owner, address }, is_guest: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 20_000 * DAY_MS + 1;

    fn sessions(guests: u32) -> (Sessions, Limits) {
        (Sessions::new(None, CampaignKey::from_seed(1), guests), Limits::new(guests))
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([203, 0, 113, last])
    }

    #[test]
    fn guests_of_a_network_have_one_owner_and_are_few() {
        let (sessions, limits) = sessions(100);
        let open = |address| sessions.open_guest(address, &limits, NOW_MS);
        let of_one: Vec<_> = (0..4).map(|_| open(address(1)).expect("a place").1).collect();
        assert!(of_one.iter().all(|visitor| visitor.worker.owner == of_one[0].worker.owner));
        assert_ne!(of_one[0].worker.name, of_one[1].worker.name);
        assert_eq!(open(address(1)), Err(Refused::TooManyGuests));
        let (_, other) = open(address(2)).expect("a place");
        assert_ne!(other.worker.owner, of_one[0].worker.owner);
        // A /64 of IPv6 is one network.
        let six = |text: &str| open(text.parse().expect("an address")).expect("a place").1;
        let (a, b, c) = (six("2001:db8::1"), six("2001:db8::ffff"), six("2001:db8:0:1::1"));
        assert_eq!(a.worker.owner, b.worker.owner);
        assert_ne!(a.worker.owner, c.worker.owner);
        // No enrolled worker has such a name.
        assert!(a.worker.name.parse::<crate::cluster::auth::Name>().is_err());
        // The pseudonym does not contain the address.
        assert!(!of_one[0].worker.name.contains("203"));
        sessions.leave(&of_one[2]);
        assert_eq!(open(address(1)).expect("a place").1, of_one[2]);
    }

    #[test]
    fn all_guests_together_are_at_most_as_many_as_allowed() {
        let (sessions, limits) = sessions(3);
        for last in 0..3 {
            sessions.open_guest(address(last), &limits, NOW_MS).expect("a place");
        }
        assert_eq!(sessions.guests_here(), 3);
        let refused = sessions.open_guest(address(9), &limits, NOW_MS);
        assert_eq!(refused, Err(Refused::TooManyGuests));
        let (none, limits) = self::sessions(0);
        assert_eq!(none.open_guest(address(1), &limits, NOW_MS), Err(Refused::NoGuests));
    }

    #[test]
    fn a_guests_secret_is_valid_for_its_network_and_for_two_days_also_after_a_restart() {
        let (before, limits) = sessions(5);
        let (secret, visitor) = before.open_guest(address(1), &limits, NOW_MS).expect("a place");
        let (sessions, _) = self::sessions(5);
        assert_eq!(sessions.visitor(&secret, address(1), NOW_MS), Ok(visitor.clone()));
        assert_eq!(sessions.visitor(&secret, address(1), NOW_MS + DAY_MS), Ok(visitor));
        let refused = Err(Refused::NoSession);
        assert_eq!(sessions.visitor(&secret, address(2), NOW_MS), refused);
        assert_eq!(sessions.visitor(&secret, address(1), NOW_MS + 2 * DAY_MS), refused);
        assert_eq!(sessions.visitor(&secret, address(1), NOW_MS - DAY_MS), refused);
        for wrong in [
            "",
            "guest.",
            "guest.1",
            "guest.1.20000",
            "guest.1.20000.",
            "guest.0.20000.AAAA",
            "guest.99999999999.1.A",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            &secret.replace("guest.1", "guest.2"),
            &secret[..secret.len() - 1],
        ] {
            assert_eq!(sessions.visitor(wrong, address(1), NOW_MS), refused, "{wrong}");
        }
        let (other, _) = (Sessions::new(None, CampaignKey::from_seed(2), 5), Limits::new(5));
        assert_eq!(other.visitor(&secret, address(1), NOW_MS), refused, "another campaign");
    }
}
