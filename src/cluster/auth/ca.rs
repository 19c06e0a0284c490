//! The certificate authority: its key, certificate and registry, its tokens, and revocation.

use std::fmt;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rcgen::{Issuer, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::certificates::{self, CertificateError};
use super::files::{self, FileError};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::registry::{CertificateEntry, Content, Registry, RegistryError, TokenEntry};
use super::role::Role;
use super::token::{Token, TokenId};
use crate::atomic_file;

const KEY: &str = "authority.key";
const CERTIFICATE: &str = "authority.crt";

/// Keys and certificates are far smaller.
const MOST_PEM_BYTES: u64 = 64 << 10;

/// A certificate authority with its registry, in a directory. Threads may share the value, and
/// processes the directory.
///
/// Every method that writes waits for the disk: in async code, call it where blocking is allowed.
pub struct Authority {
    certificate_pem: String,
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
    issuer: Issuer<'static, KeyPair>,
    registry: Registry,
}

/// The reason why an authority cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The directory is not empty.
    #[error("{path} is not empty; choose another directory", path = .0.display())]
    Exists(PathBuf),
    /// There is no authority in the directory.
    #[error("there is no authority in {path}; create one with nqueens coordinator init", path = .0.display())]
    Missing(PathBuf),
    /// The key or the certificate is damaged, or they do not belong together.
    #[error("{path} is damaged or belongs to another authority; restore it from a backup", path = .0.display())]
    Damaged(PathBuf),
    /// Others can access the key, so it may be compromised.
    #[error("{path} has mode {mode:o}, so every user of this machine can access it; run chmod 600 on it", path = path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The registry cannot be used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A certificate cannot be made, or a server name is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The name has no live certificate or session.
    #[error("'{0}' has no certificate or session to revoke; nqueens token list shows who has one")]
    NoSuchName(Name),
    /// There is no token with this ID.
    #[error("there is no token '{0}'; nqueens token list shows all tokens")]
    NoSuchToken(TokenId),
}

/// The effects of a revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The number of live certificates that were revoked.
    pub certificates: usize,
    /// The number of live browser sessions that were revoked.
    pub sessions: usize,
    /// The tokens with which the name was enrolled and that can still be used.
    pub tokens: Vec<TokenId>,
}

impl Authority {
    /// Creates a new authority in `folder`, which must be empty or missing. `names` are the
    /// coordinator's DNS names and IP addresses, in addition to the loopback names. The directory
    /// appears complete or not at all.
    ///
    /// # Errors
    /// The directory is not empty, a name is invalid, or a file operation fails.
    pub fn init(folder: &Path, names: &[String], now_ms: u64) -> Result<Self, AuthorityError> {
        let names = certificates::server_names(names)?;
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(AuthorityError::Exists(folder.to_owned()));
        }
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let certificate = certificates::for_authority(&key, now_ms)?;
        let content = Content::new(Fingerprint::of(certificate.der()), names);

        let parent = files::parent_of(folder);
        fs::create_dir_all(parent).map_err(FileError::at(parent, "created"))?;
        let mut name = std::ffi::OsString::from(".");
        name.push(folder.file_name().unwrap_or_default());
        name.push(format!(".{}.part", std::process::id()));
        let staging = folder.with_file_name(name);
        // Left behind by a killed process with the same ID.
        let _ = fs::remove_dir_all(&staging);
        let create = || {
            files::create_private_folder(&staging).map_err(FileError::at(&staging, "created"))?;
            files::replace(&staging.join(KEY), key.serialize_pem().as_bytes())?;
            files::replace(&staging.join(CERTIFICATE), certificate.pem().as_bytes())?;
            files::replace(&staging.join(Registry::FILE), &content.to_bytes())?;
            // This fails if another process was faster.
            fs::rename(&staging, folder).map_err(FileError::at(folder, "created"))?;
            atomic_file::sync_directory_of(folder).map_err(FileError::at(folder, "made durable"))
        };
        if let Err(error) = create() {
            let _ = fs::remove_dir_all(&staging);
            return Err(error.into());
        }
        Self::open(folder)
    }

    /// Opens the authority in `folder`.
    ///
    /// # Errors
    /// There is no authority, one of its files is damaged, or others may access its key.
    pub fn open(folder: &Path) -> Result<Self, AuthorityError> {
        let (key_path, certificate_path) = (folder.join(KEY), folder.join(CERTIFICATE));
        let exposed = |path, mode| AuthorityError::OpenToOthers { path, mode };
        let (_, key) = files::read_private(&key_path, MOST_PEM_BYTES, exposed).map_err(
            |error| match error {
                AuthorityError::File(error) if error.source.kind() == io::ErrorKind::NotFound => {
                    AuthorityError::Missing(folder.to_owned())
                }
                error => error,
            },
        )?;
        let registry = Registry::open(folder)?;
        let content = registry.read()?;
        let (_, certificate_pem) = files::read_at_most(&certificate_path, MOST_PEM_BYTES)?;
        let certificate = CertificateDer::from_pem_slice(&certificate_pem).ok();
        let certificate_pem = String::from_utf8(certificate_pem).ok();
        let fits = |der: &CertificateDer<'_>| Fingerprint::of(der) == content.authority;
        let Some((certificate, certificate_pem)) = certificate.filter(fits).zip(certificate_pem)
        else {
            return Err(AuthorityError::Damaged(certificate_path));
        };
        let key = String::from_utf8(key).ok().and_then(|pem| KeyPair::from_pem(&pem).ok());
        let issuer = key.and_then(|key| certificates::issuer(&certificate, key));
        let issuer = issuer.ok_or(AuthorityError::Damaged(key_path))?;
        let fingerprint = content.authority;
        Ok(Self { certificate_pem, certificate, fingerprint, issuer, registry })
    }

    /// Returns the SHA-256 of the authority's certificate, which identifies the authority.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the authority's certificate in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Returns the authority's certificate in DER.
    pub const fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub(super) const fn issuer(&self) -> &Issuer<'static, KeyPair> {
        &self.issuer
    }

    /// Returns the coordinator's names, without the loopback names.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn server_names(&self) -> Result<Vec<String>, RegistryError> {
        Ok(self.registry.read()?.server_names.clone())
    }

    /// Adds names of the coordinator. They take effect with its next server certificate.
    ///
    /// # Errors
    /// A name is invalid, or the registry cannot be used.
    pub fn add_server_names(&self, names: &[String], now_ms: u64) -> Result<(), AuthorityError> {
        let known = self.server_names()?;
        let all = certificates::server_names(&[known.as_slice(), names].concat())?;
        if all == known {
            return Ok(());
        }
        self.registry.change(now_ms, |content| {
            content.server_names = all;
            Ok(())
        })
    }

    /// Creates a token that can be redeemed for `uses` certificates of `role` within `life_ms`. It
    /// cannot be shown again: only a hash of it is stored.
    ///
    /// # Errors
    /// The registry cannot be used, or there are no random numbers.
    pub fn create_token(
        &self,
        role: Role,
        uses: NonZeroU32,
        life_ms: u64,
        now_ms: u64,
    ) -> Result<Token, AuthorityError> {
        self.create_token_for(None, role, uses, life_ms, now_ms)
    }

    /// Creates a token as [`Self::create_token`] does. The certificates that it is redeemed for
    /// belong to `owner`, like those from the owner's other tokens; without an owner, the token
    /// counts as a separate one.
    ///
    /// # Errors
    /// The registry cannot be used, or there are no random numbers.
    pub fn create_token_for(
        &self,
        owner: Option<&Name>,
        role: Role,
        uses: NonZeroU32,
        life_ms: u64,
        now_ms: u64,
    ) -> Result<Token, AuthorityError> {
        self.registry.change(now_ms, |content| {
            let mut token = Token::random(self.fingerprint).map_err(CertificateError::Random)?;
            while content.tokens.contains_key(&token.id()) {
                token = Token::random(self.fingerprint).map_err(CertificateError::Random)?;
            }
            let (uses, expires_ms) = (uses.get(), now_ms.saturating_add(life_ms));
            let hash = token.hash();
            let owner = owner.cloned();
            let entry = TokenEntry {
                role,
                uses,
                uses_left: uses,
                created_ms: now_ms,
                expires_ms,
                hash,
                owner,
            };
            content.tokens.insert(token.id(), entry);
            Ok(token)
        })
    }

    /// Returns all recorded tokens; expired ones are kept for a week.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn tokens(&self) -> Result<Vec<(TokenId, TokenEntry)>, RegistryError> {
        Ok(self.registry.read()?.tokens.iter().map(|(id, entry)| (*id, entry.clone())).collect())
    }

    /// Returns all recorded certificates; expired ones are kept for a week.
    ///
    /// # Errors
    /// The registry cannot be used.
    pub fn certificates(&self) -> Result<Vec<CertificateEntry>, RegistryError> {
        Ok(self.registry.read()?.certificates.values().cloned().collect())
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// There is no such token, or the registry cannot be used.
    pub fn revoke_token(&self, id: TokenId, now_ms: u64) -> Result<(), AuthorityError> {
        self.registry.change(now_ms, |content| {
            content.tokens.remove(&id).map(drop).ok_or(AuthorityError::NoSuchToken(id))
        })
    }

    /// Revokes every live certificate and session of `name`, which is then free again.
    ///
    /// # Errors
    /// There is no such certificate or session, or the registry cannot be used.
    pub fn revoke(&self, name: &Name, now_ms: u64) -> Result<Revoked, AuthorityError> {
        self.registry.change(now_ms, |content| {
            let mut certificates = 0;
            for entry in content.certificates.values_mut() {
                if entry.name == *name && entry.is_live(now_ms) {
                    entry.revoked_ms = Some(now_ms);
                    certificates += 1;
                }
            }
            let mut sessions = 0;
            for session in content.sessions.values_mut() {
                if session.name == *name && session.is_live(now_ms) {
                    session.revoked_ms = Some(now_ms);
                    sessions += 1;
                }
            }
            if certificates + sessions == 0 {
                return Err(AuthorityError::NoSuchName(name.clone()));
            }
            let usable = |id: &TokenId| {
                content
                    .tokens
                    .get(id)
                    .is_some_and(|token| token.uses_left > 0 && now_ms < token.expires_ms)
            };
            let enrolled = content.certificates.values().filter(|entry| entry.name == *name);
            let signed_in = content.sessions.values().filter(|session| session.name == *name);
            let redeemed = enrolled
                .filter_map(|entry| entry.token)
                .chain(signed_in.map(|session| session.token));
            let mut tokens: Vec<TokenId> = redeemed.filter(usable).collect();
            tokens.sort_unstable();
            tokens.dedup();
            Ok(Revoked { certificates, sessions, tokens })
        })
    }

    pub(super) const fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// Omits the key.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::cluster::auth::KeyRequest;
    use crate::cluster::auth::testing::{HOUR_MS, NOW_MS, authority, name, one_use};

    #[test]
    fn ten_thousand_tokens_and_certificates_are_handled_quickly() {
        let (_scratch, folder, authority) = authority();
        let (token, worker) = (one_use(&authority), KeyRequest::new(&name("a")).expect("a key"));
        let filled = authority.registry().change(NOW_MS, |content| {
            let template = content.tokens.values().next().expect("one").clone();
            for i in 0..10_000_u32 {
                let hash = Fingerprint::of(&i.to_le_bytes());
                content
                    .tokens
                    .insert(TokenId::of(hash.as_bytes()), TokenEntry { hash, ..template.clone() });
                let entry = CertificateEntry {
                    serial: "40".repeat(16),
                    name: name(&format!("worker-{i}")),
                    role: Role::Worker,
                    not_before_ms: NOW_MS,
                    not_after_ms: NOW_MS + HOUR_MS,
                    revoked_ms: None,
                    key: hash,
                    token: None,
                    owner: None,
                };
                content.certificates.insert(hash, entry);
            }
            Ok::<_, AuthorityError>(())
        });
        filled.expect("written");
        let timed = |what: &str, most_ms: u128, run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            let took = start.elapsed();
            assert!(took.as_millis() < most_ms, "{what} took {took:?}");
            let _ = std::io::Write::write_all(
                &mut io::stdout(),
                format!("{what}: {took:?}\n").as_bytes(),
            );
        };
        // The limits are generous, since other tests share the machine and its disk.
        timed("open", 2000, &mut || drop(Authority::open(&folder).expect("opens")));
        let mut issued = None;
        timed("enrol", 2000, &mut || {
            issued = authority.enroll(&token, &name("a"), worker.request(), NOW_MS).ok();
        });
        let pem = issued.expect("enrolled").certificate_pem;
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        timed("1000 calls identified", 1000, &mut || {
            for _ in 0..1000 {
                authority.identify(&der, NOW_MS).expect("known");
            }
        });
    }

    #[test]
    fn in_a_registry_without_owners_each_certificate_has_its_own() {
        let (_scratch, folder, authority) = authority();
        let (enrolled, renewed) = (b"a certificate".as_slice(), b"another".as_slice());
        let json = format!(
            concat!(
                r#"{{"format":"nqueens-register/1","authority":"{authority}","server_names":[],"tokens":{{"aaaaaaaa":"#,
                r#"{{"role":"worker","uses":2,"uses_left":1,"created_ms":1799999990000,"expires_ms":1800003600000,"#,
                r#""hash":"{hash}"}}}},"certificates":{{"{enrolled}":{{"serial":"41","name":"anna","role":"worker","#,
                r#""not_before_ms":1799999700000,"not_after_ms":1800604800000,"key":"{hash}","token":"aaaaaaaa"}},"#,
                r#""{renewed}":{{"serial":"42","name":"bert","role":"worker","not_before_ms":1799999700000,"#,
                r#""not_after_ms":1800604800000,"key":"{hash}"}}}}}}"#,
            ),
            authority = authority.fingerprint(),
            enrolled = Fingerprint::of(enrolled),
            renewed = Fingerprint::of(renewed),
            hash = "a".repeat(52),
        );
        let line = format!("{} {json}\n", Fingerprint::of(json.as_bytes()));
        fs::write(folder.join(Registry::FILE), line).expect("written");
        drop(authority);

        let authority = Authority::open(&folder).expect("it opens");
        let (id, token) = authority.tokens().expect("readable").remove(0);
        assert_eq!(token.owner(id).as_str(), "token:aaaaaaaa");
        let request = KeyRequest::new(&name("a")).expect("a key");
        for (certificate, owner) in [(enrolled, "token:aaaaaaaa"), (renewed, "certificate:bert")] {
            let holder = authority.identify(certificate, NOW_MS).expect("known");
            assert_eq!(holder.owner.as_str(), owner);
            let issued = authority.renew(certificate, request.request(), NOW_MS).expect("renewed");
            assert_eq!(issued.identity.owner.as_str(), owner, "it is inherited");
        }
        Authority::open(&folder).expect("what was written in its place opens, too");
    }
}
