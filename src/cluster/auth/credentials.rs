//! The certificate holder's side: workers, operators and viewers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rcgen::{KeyPair, PublicKeyData};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};

use super::certificates::{self, CLIENT_BACKDATED_MS, CertificateError, ParsedClientCertificate};
use super::files::{self, FileError};
use super::fingerprint::Fingerprint;
use super::name::Name;
use super::renewal::Renewal;
use super::role::Role;

const CREDENTIALS: &str = "credentials.json";
const ENROLMENT_KEY: &str = "enrolment.key";
const FORMAT: &str = "nqueens-credentials/1";
const MOST_BYTES: u64 = 256 << 10;

/// The reason why a certificate cannot be requested, stored or used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no certificate.
    #[error("there is no certificate in {path}; enrol with a token", path = .0.display())]
    Missing(PathBuf),
    /// The file is damaged.
    #[error("{path} is damaged; remove it and enrol with a new token", path = .0.display())]
    Damaged(PathBuf),
    /// Others can access the private key, so it may be compromised.
    #[error("{path} has mode {mode:o}, so every user of this machine can access it; run chmod 600 on it", path = path.display())]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The answer does not match the request.
    #[error("the certificate received is for another key or from another authority")]
    WrongAnswer,
    /// The certificate or the request is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// A new private key with its certificate request. The key never leaves this machine.
#[derive(Debug)]
pub struct KeyRequest {
    key: KeyPair,
    request: Vec<u8>,
}

impl KeyRequest {
    /// Creates a key for the next certificate of a holder. If the answer is lost, the current
    /// certificate remains valid.
    ///
    /// # Errors
    /// There are no random numbers.
    pub fn new(name: &Name) -> Result<Self, CredentialsError> {
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let request = certificates::request(name, &key)?;
        Ok(Self { key, request })
    }

    /// Creates a key for a first certificate and keeps it in `folder` until [`Credentials::save`]:
    /// if the answer is lost or this process is killed, the request is repeated with the same key,
    /// and the token is not used twice.
    ///
    /// # Errors
    /// The key cannot be stored.
    pub fn for_enrolment(folder: &Path, name: &Name) -> Result<Self, CredentialsError> {
        let path = folder.join(ENROLMENT_KEY);
        files::create_private_folder(folder).map_err(FileError::at(folder, "created"))?;
        if let Some(pem) = read_private(&path)? {
            let damaged = || CredentialsError::Damaged(path.clone());
            let pem = String::from_utf8(pem).map_err(|_| damaged())?;
            let key = KeyPair::from_pem(&pem).map_err(|_| damaged())?;
            let request = certificates::request(name, &key)?;
            return Ok(Self { key, request });
        }
        let created = Self::new(name)?;
        files::replace(&path, created.key.serialize_pem().as_bytes())?;
        Ok(created)
    }

    /// Returns the request, PKCS #10 in DER.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Returns the credentials from the answer of the authority with this fingerprint, which is
    /// known from the token or the earlier credentials.
    ///
    /// # Errors
    /// The certificate is for another key or from another authority.
    pub fn into_credentials(
        self,
        authority: Fingerprint,
        certificate_pem: &str,
        authority_pem: &str,
    ) -> Result<Credentials, CredentialsError> {
        let stored = Stored {
            format: FORMAT.into(),
            authority,
            authority_certificate: authority_pem.to_owned(),
            certificate: certificate_pem.to_owned(),
            key: self.key.serialize_pem(),
        };
        Credentials::read(stored).ok_or(CredentialsError::WrongAnswer)
    }
}

/// The content of the credentials file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: String,
    /// The fingerprint of the authority's certificate.
    authority: Fingerprint,
    authority_certificate: String,
    certificate: String,
    key: String,
}

/// A certificate with its private key, and the authority that both ends trust.
#[derive(Clone)]
pub struct Credentials {
    stored: Stored,
    parsed: ParsedClientCertificate,
    certificate: CertificateDer<'static>,
}

impl Credentials {
    /// Returns `None` unless all parts belong together.
    fn read(stored: Stored) -> Option<Self> {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).ok();
        let (certificate, authority) =
            (der(&stored.certificate)?, der(&stored.authority_certificate)?);
        let parsed = certificates::read_client(&certificate, &authority).ok()?;
        let key = KeyPair::from_pem(&stored.key).ok()?;
        let is_consistent = stored.format == FORMAT
            && Fingerprint::of(&authority) == stored.authority
            && key.subject_public_key_info() == parsed.key;
        is_consistent.then_some(Self { stored, parsed, certificate })
    }

    /// Loads the credentials in `folder`.
    ///
    /// # Errors
    /// There are none, they are damaged, or others may read them.
    pub fn load(folder: &Path) -> Result<Self, CredentialsError> {
        let path = folder.join(CREDENTIALS);
        let bytes =
            read_private(&path)?.ok_or_else(|| CredentialsError::Missing(folder.to_owned()))?;
        let stored = serde_json::from_slice(&bytes).ok();
        stored.and_then(Self::read).ok_or(CredentialsError::Damaged(path))
    }

    /// Stores the credentials in `folder` in place of earlier ones. After a crash, either the
    /// earlier or the new ones are there.
    ///
    /// # Errors
    /// The credentials cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), CredentialsError> {
        let json = serde_json::to_vec(&self.stored).expect("strings serialise");
        files::create_private_folder(folder).map_err(FileError::at(folder, "created"))?;
        files::replace(&folder.join(CREDENTIALS), &json)?;
        let key = folder.join(ENROLMENT_KEY);
        match fs::remove_file(&key) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(FileError::at(&key, "removed")(error).into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the holder's name.
    pub const fn name(&self) -> &Name {
        &self.parsed.name
    }

    /// Returns the holder's role.
    pub const fn role(&self) -> Role {
        self.parsed.role
    }

    /// Returns the end of the certificate's validity, in ms since 1970.
    pub const fn not_after_ms(&self) -> u64 {
        self.parsed.validity.not_after_ms
    }

    /// Returns why the certificate should be renewed, if it should: half of its lifetime is over,
    /// or it is not valid yet.
    pub const fn renewal(&self, now_ms: u64) -> Option<Renewal> {
        let validity = self.parsed.validity;
        if now_ms >= validity.not_before_ms.midpoint(validity.not_after_ms) {
            return Some(Renewal::Due);
        }
        validity.set_back(CLIENT_BACKDATED_MS, now_ms)
    }

    /// Returns the fingerprint of the authority's certificate.
    pub const fn authority(&self) -> Fingerprint {
        self.stored.authority
    }

    /// Returns the authority's certificate in PEM.
    pub fn authority_pem(&self) -> &str {
        &self.stored.authority_certificate
    }

    /// Returns the certificate in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.stored.certificate
    }

    /// Returns the private key in PEM.
    pub fn key_pem(&self) -> &str {
        &self.stored.key
    }

    pub(super) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.stored.key.as_bytes()).expect("it was read before")
    }
}

/// Omits the private key.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ParsedClientCertificate { name, role, validity, .. } = &self.parsed;
        let mut shown = f.debug_struct("Credentials");
        shown
            .field("name", name)
            .field("role", role)
            .field("validity", validity)
            .finish_non_exhaustive()
    }
}

/// Reads a file that no other user may read. Returns `None` if it does not exist.
fn read_private(path: &Path) -> Result<Option<Vec<u8>>, CredentialsError> {
    let exposed = |path, mode| CredentialsError::OpenToOthers { path, mode };
    match files::read_private(path, MOST_BYTES, exposed) {
        Ok((_, bytes)) => Ok(Some(bytes)),
        Err(CredentialsError::File(error)) if error.source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
