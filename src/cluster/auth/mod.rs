//! Who may talk to a coordinator, and what each may do: a certificate authority of its own, tokens that let a
//! newcomer in once, client certificates that are short-lived and renewed, sessions of browsers, roles, revocation.
//!
//! # The authority's folder
//! | file | what it is |
//! |---|---|
//! | `authority.key` | the private key that signs every certificate; whoever has it is the authority |
//! | `authority.crt` | its certificate, which everybody may have; its SHA-256 is the authority's *fingerprint* |
//! | `register` | tokens and sessions (hashes only), issued certificates, revocations, the server's names |
//! | `lock` | held while the register is written |
//!
//! The server's own key and certificate live in memory only: [`ServerIdentity`] makes them when a coordinator
//! starts, and anew before they end. The clients trust the authority, not them.
//!
//! # Promises
//! - Only a certificate that stands in the register, entire, is known; what it may do is what the register says.
//! - A token's use is on disk, together with the certificate that it bought, before the certificate is handed
//!   out. Who lost the answer asks again with the same key: that is no second use.
//! - Each certificate has an owner, who enrolled its holder: that of the token that bought it, also after renewals. Nobody
//!   becomes another's owner by choosing a name.
//! - The register is replaced as a whole: a crash leaves the old one or the new one. One that is not as it was
//!   written is refused, and then nobody is let in.
//! - Other processes may create tokens and revoke while a coordinator serves: it sees each at the next call.
//! - A clock that is set back locks nobody out for long: a certificate that stands in the register and is not valid yet is
//!   good for one thing, its renewal; the coordinator replaces its own.
//! - There is no clock in here: `now_ms`, in ms since 1970, is always given.
//!
//! An older copy of the folder that is put back forgets uses and revocations made since; no file can tell.

mod ca;
mod certificates;
mod credentials;
mod files;
mod fingerprint;
mod name;
mod owner;
mod registry;
mod renewal;
mod role;
mod server;
mod sessions;
mod tls;
mod token;

pub use ca::{AccessError, Authority, AuthorityError, EnrollError, Identity, Issued, Revoked};
pub use certificates::CertificateError;
pub use credentials::{Credentials, HolderError, KeyRequest};
pub use files::FileError;
pub(crate) use files::{read_at_most as read_private, replace as write_private};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use name::{Name, NameError};
pub use owner::{Owner, OwnerError};
pub use registry::{CertificateEntry, RegisterError, TokenEntry, TokenId, TokenIdError};
pub use renewal::Renewal;
pub use role::{Action, Role, RoleError};
pub use server::ServerIdentity;
pub use sessions::{InProcessCaller, SessionEntry, SessionError, SessionSecret, SessionSecretError};
pub use tls::{PinnedAuthority, client_config};
pub use token::{Token, TokenError};
