//! Connections of servers: how many may be open, for whom, and how long each may take.
//!
//! | file | what it is |
//! |---|---|
//! | `quota.rs` | [`KeyedQuota`]: limits on what each key may hold, and on what all may hold together |
//! | `limits.rs` | [`ConnectionLimits`]: the limits of a listener, and the open files that they need |
//! | `accept.rs` | the accept loop: handshakes, pools, displacement |
//! | `http1.rs` | HTTP/1.1 on top of it |
//! | `write_timeout.rs` | `WriteTimeout`: a stream that fails if its other end does not read |

mod accept;
mod http1;
mod limits;
mod quota;
mod write_timeout;

#[cfg(test)]
pub(crate) use accept::Holder;
pub(crate) use accept::{Accepted, Handshake, Identity, accept, network};
pub(crate) use http1::{PeerAddress, serve_http1};
pub(crate) use limits::raise_open_files;
pub use limits::{ConnectionLimits, PoolLimits};
pub(crate) use quota::{KeyedQuota, Overflow};
