//! Server connections: limits on their number, per peer and in total, and on their duration.
//!
//! | file | content |
//! |---|---|
//! | `quota.rs` | [`KeyedQuota`]: limits on the number of slots per key and in total |
//! | `limits.rs` | [`ConnectionLimits`]: the limits of a listener, and the open files they need |
//! | `accept.rs` | the accept loop: handshakes, pools, displacement |
//! | `http1.rs` | HTTP/1.1 on top of the accept loop |
//! | `bound.rs` | [`Bound`]: an address that is bound before it is served |
//! | `origin.rs`, `replies.rs` | requests of browsers: their host and origin; responses and their headers |
//! | `write_timeout.rs` | `WriteTimeout`: a stream that fails if its peer does not read |

mod accept;
mod bound;
mod http1;
mod limits;
mod origin;
mod quota;
pub(crate) mod replies;
mod write_timeout;

#[cfg(test)]
pub(crate) use accept::QuotaKey;
pub(crate) use accept::{Accepted, Handshake, Identity, accept, network};
pub use bound::Bound;
pub(crate) use http1::{PeerAddress, serve_http1};
pub(crate) use limits::raise_open_files;
pub use limits::{ConnectionLimits, PoolLimits};
pub(crate) use origin::{check_change, is_own_host};
pub(crate) use quota::{KeyedQuota, Overflow};
