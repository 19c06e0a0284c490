//! The limits of a listener, and the number of open files that they need.

use std::net::IpAddr;
use std::time::Duration;

/// The capacity of a connection pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Connections from other machines.
    pub total: usize,
    /// Of these, the connections of one address (one /64 network for IPv6), or of one certificate
    /// where one was presented.
    pub per_key: usize,
    /// Connections from this machine, counted separately: a reserve that no other machine can take.
    pub local: usize,
}

impl PoolLimits {
    const fn capacity(self) -> usize {
        self.total.saturating_add(self.local)
    }

    /// Scales the pool to its share of `files`, where all pools need `all`. At least one connection
    /// of each kind stays possible.
    fn scaled(self, files: usize, all: usize) -> Self {
        let scale = |limit: usize| {
            let share = limit as u128 * files as u128 / all.max(1) as u128;
            usize::try_from(share).unwrap_or(limit).clamp(1, limit.max(1))
        };
        let total = scale(self.total);
        Self { total, per_key: self.per_key.min(total), local: scale(self.local) }
    }
}

/// The limits of a listener on the number and duration of connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Connections whose handshake is in progress.
    pub handshakes: PoolLimits,
    /// Connections without a certificate.
    pub anonymous: PoolLimits,
    /// Connections with a certificate, and all connections where none is needed.
    pub certified: PoolLimits,
    /// The time limit for the handshake and the first bytes of the protocol; without a certificate,
    /// also for the first allowed call. It starts when the connection is accepted.
    pub time_limit: Duration,
    /// The time for which a connection without a certificate stays open after an allowed call.
    pub after_enrolment: Duration,
    /// The test whether an address belongs to this machine.
    pub is_local: fn(IpAddr) -> bool,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            handshakes: PoolLimits { total: 2048, per_key: 512, local: 512 },
            anonymous: PoolLimits { total: 1024, per_key: 128, local: 256 },
            certified: PoolLimits { total: 12_288, per_key: 256, local: 2048 },
            time_limit: Duration::from_secs(10),
            after_enrolment: Duration::from_secs(10),
            is_local: |address| address.to_canonical().is_loopback(),
        }
    }
}

impl ConnectionLimits {
    /// Creates the limits of an HTTP/1.1 listener, where every peer is anonymous.
    pub(crate) fn for_http1(anonymous: PoolLimits, time_limit: Duration) -> Self {
        let handshakes = anonymous;
        Self { handshakes, anonymous, time_limit, ..Self::default() }
    }

    /// Returns the capacity of all pools together.
    fn capacity(&self) -> usize {
        [self.handshakes, self.anonymous, self.certified]
            .map(PoolLimits::capacity)
            .into_iter()
            .sum()
    }

    /// Scales the pools down to the number of files that the process may open, less `others` for
    /// other uses. Logs a warning if that makes them smaller.
    #[must_use]
    pub(crate) fn bounded_by(self, open_files: Option<u64>, others: usize) -> Self {
        let Some(open_files) = open_files.and_then(|files| usize::try_from(files).ok()) else {
            return self;
        };
        let (available, wanted) = (open_files.saturating_sub(others), self.capacity());
        if wanted <= available {
            return self;
        }
        let scale = |pool: PoolLimits| pool.scaled(available, wanted);
        let handshakes = scale(self.handshakes);
        let (anonymous, certified) = (scale(self.anonymous), scale(self.certified));
        let bounded = Self { handshakes, anonymous, certified, ..self };
        tracing::warn!(
            open_files,
            certified = bounded.certified.total,
            "the process may open {open_files} files, so at most {} connections are accepted instead of {wanted}; raise \
             the hard limit (ulimit -Hn, LimitNOFILE=) to {} or more",
            bounded.capacity(),
            wanted + others,
        );
        bounded
    }
}

/// Raises the limit on open files to the hard limit. Returns the limit then in force, or `None` if
/// there is no limit or it cannot be determined.
#[cfg(unix)]
pub(crate) fn raise_open_files() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    // A system without a hard limit may still have a largest value that it accepts: 10,240 on
    // macOS.
    for current in [before.maximum, Some(10_240)] {
        let is_more = |before| current.is_none_or(|current| current > before);
        let wanted = Rlimit { current, maximum: before.maximum };
        if !before.current.is_some_and(is_more) || setrlimit(Resource::Nofile, wanted).is_ok() {
            break;
        }
    }
    getrlimit(Resource::Nofile).current
}

/// Returns `None`: this system has no such limit.
#[cfg(not(unix))]
pub(crate) const fn raise_open_files() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_fit_into_the_open_files_and_keep_their_proportions() {
        let limits = ConnectionLimits::default();
        let all = limits.capacity();
        let same = limits.bounded_by(Some(all as u64 + 100), 100);
        assert_eq!((same.capacity(), same.certified), (all, limits.certified));
        assert_eq!(limits.bounded_by(None, 100).capacity(), all);
        for files in [300, 1024, 4096, all as u64 + 99] {
            let bounded = limits.bounded_by(Some(files), 100);
            assert!(
                bounded.capacity() <= usize::try_from(files).expect("small") - 100,
                "{files}: {bounded:?}"
            );
            for pool in [bounded.handshakes, bounded.anonymous, bounded.certified] {
                assert!(
                    pool.total > 0 && pool.local > 0 && pool.per_key > 0,
                    "{files}: {bounded:?}"
                );
                assert!(pool.per_key <= pool.total, "{files}: {bounded:?}");
            }
            assert!(bounded.certified.total > bounded.handshakes.total, "{files}: {bounded:?}");
        }
        // Even without any file to spare, each pool can serve one connection.
        assert_eq!(
            limits.bounded_by(Some(10), 100).certified,
            PoolLimits { total: 1, per_key: 1, local: 1 }
        );
    }

    #[cfg(unix)]
    #[test]
    fn the_soft_limit_on_open_files_is_raised_to_the_hard_one() {
        use rustix::process::{Resource, getrlimit};
        let raised = raise_open_files();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(raised, now.current);
        assert!(now.current == now.maximum || cfg!(target_os = "macos"), "{now:?}");
    }
}
