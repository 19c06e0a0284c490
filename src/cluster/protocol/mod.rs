//! The network protocol: the messages of `proto/nqueens.proto`, their conversion, and channels.

mod channel;
mod connect_error;
mod convert;
mod enrolment;
mod proving;
mod time;
mod version;

pub use channel::{Address, AddressError, Channel, ChannelError, Security};
pub use connect_error::{ConnectError, ConnectErrorKind};
pub use convert::{
    MOST_HELD, MOST_MESSAGE_BYTES, MOST_RESULTS, Malformed, device_label, job_hash, messages,
};
pub use enrolment::{EnrolError, enrol, is_not_valid_yet, not_valid_yet, renew};
pub use proving::{CompletionQuery, ProveCall, TaskAnswer, TaskOutcome, TaskQuery, answered, task};
pub use time::now_ms;
pub use version::{AnotherProtocol, BUILD, PROTOCOL, check, peer};

/// The generated messages and services.
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]
pub mod v1 {
    tonic::include_proto!("nqueens.v1");

    /// The descriptors for the reflection service.
    pub const DESCRIPTORS: &[u8] = tonic::include_file_descriptor_set!("nqueens");
}
