//! The certificates: their content, and how they are made and read.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
    SerialNumber, SubjectPublicKeyInfo,
};
use rustls::pki_types::ServerName;
use time::OffsetDateTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

use super::fingerprint::base32;
use super::name::Name;
use super::renewal::Renewal;
use super::role::Role;

const MINUTE_MS: u64 = 60 * 1000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// The authority outlives every campaign: when it expires, every client has to enrol again.
const AUTHORITY_LIFE_MS: u64 = 20 * 365 * DAY_MS;

/// The lifetime of a server certificate. It is replaced once less than a third is left.
pub(super) const SERVER_LIFE_MS: u64 = 90 * DAY_MS;

/// The lifetime of a client certificate. It is renewed after half of it.
pub(super) const CLIENT_LIFE_MS: u64 = 7 * DAY_MS;

/// Client certificates are backdated a little, since clocks differ.
pub(super) const CLIENT_BACKDATED_MS: u64 = 5 * MINUTE_MS;

/// Certificates that clients check are backdated more: this costs nothing, and clients' clocks may
/// be far off.
pub(super) const SERVER_BACKDATED_MS: u64 = DAY_MS;

/// The prefix of the role in a client certificate, a URI among the subject alternative names.
const ROLE_URI: &str = "nqueens:role:";

/// No certificate request for one key is larger.
const MOST_REQUEST_BYTES: usize = 8 << 10;

/// An error in a certificate or in a request for one.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The request cannot be parsed.
    #[error("the certificate request is invalid; send PKCS #10 in DER, at most 8 KiB")]
    Request,
    /// The request is not signed with the private key of its public key.
    #[error("the certificate request is not signed with the key that it contains")]
    RequestSignature,
    /// The kind of key is weak or unknown.
    #[error(
        "the certificate request has an unsupported kind of key; send ECDSA P-256, P-384 or Ed25519"
    )]
    KeyKind,
    /// The certificate is not a client certificate of the authority.
    #[error("this is not a client certificate that a coordinator's authority issued")]
    NotForClient,
    /// The server name is invalid.
    #[error("'{0}' is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The certificate could not be made.
    #[error("the certificate cannot be made: {0}")]
    Making(#[from] rcgen::Error),
    /// The system has no random numbers.
    #[error("the system has no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

/// A validity period, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before_ms: u64,
    pub(super) not_after_ms: u64,
}

impl Validity {
    fn new(now_ms: u64, backdated_ms: u64, life_ms: u64) -> Self {
        let whole = |ms: u64| ms - ms % 1000;
        let not_before_ms = whole(now_ms.saturating_sub(backdated_ms));
        Self { not_before_ms, not_after_ms: whole(now_ms.saturating_add(life_ms)) }
    }

    /// Returns by how much the clock was set back at least, if a certificate with this validity,
    /// issued `backdated_ms` after its start, is not valid yet at `now_ms`.
    pub(super) const fn set_back(self, backdated_ms: u64, now_ms: u64) -> Option<Renewal> {
        if now_ms >= self.not_before_ms {
            return None;
        }
        let issued_ms = self.not_before_ms.saturating_add(backdated_ms);
        Some(Renewal::ClockSetBack { by_ms: issued_ms - now_ms })
    }
}

fn date(ms: u64) -> OffsetDateTime {
    // There are no dates after the year 9999; a certificate that ends in 1970 is never valid.
    let seconds = i64::try_from(ms / 1000).ok();
    seconds
        .and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok())
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Returns the parameters common to all certificates.
fn params(common_name: &str, validity: Validity) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date(validity.not_before_ms);
    params.not_after = date(validity.not_after_ms);
    params.serial_number = Some(random_serial()?);
    Ok(params)
}

/// Returns a serial number of 126 random bits.
fn random_serial() -> Result<SerialNumber, CertificateError> {
    let mut serial = [0; 16];
    getrandom::fill(&mut serial)?;
    // Positive, and of full length.
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&serial))
}

/// Returns the certificate of a new authority.
pub(super) fn for_authority(key: &KeyPair, now_ms: u64) -> Result<Certificate, CertificateError> {
    let mut random = [0; 5];
    getrandom::fill(&mut random)?;
    // Authorities have different names, so that a certificate of another one is recognised at once.
    let name = format!("nqueens authority {}", base32(&random));
    let mut params = params(&name, Validity::new(now_ms, SERVER_BACKDATED_MS, AUTHORITY_LIFE_MS))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(params.self_signed(key)?)
}

/// Returns the issuer for the authority's certificate and key, or `None` if they do not belong
/// together.
pub(super) fn issuer(certificate: &[u8], key: KeyPair) -> Option<Issuer<'static, KeyPair>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    if parsed.public_key().raw != key.subject_public_key_info() {
        return None;
    }
    Issuer::from_ca_cert_der(&certificate.into(), key).ok()
}

/// The loopback names, by which a coordinator is always reachable from its own machine.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Checks that each name is a DNS name or an IP address, and removes duplicates.
pub(super) fn server_names(names: &[String]) -> Result<Vec<String>, CertificateError> {
    let mut checked: Vec<String> = Vec::new();
    for name in names {
        ServerName::try_from(name.as_str())
            .map_err(|_| CertificateError::ServerName(name.clone()))?;
        if !checked.contains(name) && !OWN_NAMES.contains(&name.as_str()) {
            checked.push(name.clone());
        }
    }
    Ok(checked)
}

/// Returns a server certificate for names that were checked, and its validity.
pub(super) fn for_server(
    names: &[String],
    key: &KeyPair,
    issuer: &Issuer<'_, KeyPair>,
    now_ms: u64,
) -> Result<(Certificate, Validity), CertificateError> {
    let validity = Validity::new(now_ms, SERVER_BACKDATED_MS, SERVER_LIFE_MS);
    let mut params = params("nqueens coordinator", validity)?;
    for name in names.iter().map(String::as_str).chain(OWN_NAMES) {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.try_into()?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    Ok((params.signed_by(key, issuer)?, validity))
}

/// A new client certificate, with the fields that the registry records.
#[derive(Debug)]
pub(super) struct ClientCertificate {
    pub(super) certificate: Certificate,
    pub(super) serial: String,
    pub(super) validity: Validity,
}

/// Returns a client certificate. It cannot be used as a server certificate.
pub(super) fn for_client(
    name: &Name,
    role: Role,
    key: &SubjectPublicKeyInfo,
    issuer: &Issuer<'_, KeyPair>,
    now_ms: u64,
) -> Result<ClientCertificate, CertificateError> {
    let validity = Validity::new(now_ms, CLIENT_BACKDATED_MS, CLIENT_LIFE_MS);
    let mut params = params(name.as_str(), validity)?;
    params.subject_alt_names = vec![SanType::URI(format!("{ROLE_URI}{role}").try_into()?)];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    let serial = params.serial_number.iter().flat_map(SerialNumber::to_bytes);
    let serial = serial.map(|byte| format!("{byte:02x}")).collect();
    Ok(ClientCertificate { certificate: params.signed_by(key, issuer)?, serial, validity })
}

/// Returns a certificate request in DER. The name is only informative: the authority decides on the
/// name.
pub(super) fn request(name: &Name, key: &KeyPair) -> Result<Vec<u8>, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name.as_str());
    Ok(params.serialize_request(key)?.der().to_vec())
}

/// Returns the public key of a request after verifying its signature. Everything else in the
/// request is ignored.
pub(super) fn requested_key(request: &[u8]) -> Result<SubjectPublicKeyInfo, CertificateError> {
    if request.len() > MOST_REQUEST_BYTES {
        return Err(CertificateError::Request);
    }
    let (rest, parsed) =
        X509CertificationRequest::from_der(request).map_err(|_| CertificateError::Request)?;
    if !rest.is_empty() {
        return Err(CertificateError::Request);
    }
    let key = SubjectPublicKeyInfo::from_der(parsed.certification_request_info.subject_pki.raw);
    let key = key.map_err(|_| CertificateError::KeyKind)?;
    let supported =
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519];
    if !supported.contains(&key.algorithm()) {
        return Err(CertificateError::KeyKind);
    }
    parsed.verify_signature().map_err(|_| CertificateError::RequestSignature)?;
    Ok(key)
}

/// The content of a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParsedClientCertificate {
    pub(super) name: Name,
    pub(super) role: Role,
    pub(super) validity: Validity,
    /// The public key in DER.
    pub(super) key: Vec<u8>,
}

/// Reads a client certificate that `authority` has signed.
pub(super) fn read_client(
    certificate: &[u8],
    authority: &[u8],
) -> Result<ParsedClientCertificate, CertificateError> {
    let read = || {
        let (rest, parsed) = X509Certificate::from_der(certificate).ok()?;
        let (_, issuer) = X509Certificate::from_der(authority).ok()?;
        parsed.verify_signature(Some(issuer.public_key())).ok()?;
        // The only byte that is neither covered by the signature nor checked above.
        (parsed.signature_value.unused_bits == 0).then_some(())?;
        let name = parsed.subject().iter_common_name().next()?.as_str().ok()?.parse().ok()?;
        let names = parsed.subject_alternative_name().ok()??;
        let role = names.value.general_names.iter().find_map(|name| match name {
            GeneralName::URI(uri) => uri.strip_prefix(ROLE_URI)?.parse().ok(),
            _ => None,
        })?;
        let ms = |time: x509_parser::time::ASN1Time| {
            u64::try_from(time.timestamp()).ok()?.checked_mul(1000)
        };
        let (not_before_ms, not_after_ms) =
            (ms(parsed.validity().not_before)?, ms(parsed.validity().not_after)?);
        let key = parsed.public_key().raw.to_vec();
        let validity = Validity { not_before_ms, not_after_ms };
        rest.is_empty().then_some(ParsedClientCertificate { name, role, validity, key })
    };
    read().ok_or(CertificateError::NotForClient)
}
