//! The client side of TLS connections.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use super::credentials::Credentials;
use super::fingerprint::Fingerprint;

/// HTTP/2, which gRPC requires.
pub(super) const ALPN: &[u8] = b"h2";

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A verifier that accepts a server as the coordinator if its certificate is signed by the
/// authority with this fingerprint, is currently valid, and has the name by which the server was
/// reached. The network is not trusted: the fingerprint comes from a token or from credentials.
#[derive(Debug)]
pub struct PinnedAuthority {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

/// The error if the server's chain contains no certificate with the fingerprint.
#[derive(thiserror::Error)]
#[error(
    "the server is not the coordinator of this token or certificate: its authority differs; check the address"
)]
struct AnotherAuthority;

/// Writes the message, because rustls shows foreign errors by `Debug`.
impl fmt::Debug for AnotherAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PinnedAuthority {
    /// Creates a verifier that trusts only the authority with this fingerprint.
    pub fn new(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, provider: provider() }
    }
}

impl ServerCertVerifier for PinnedAuthority {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates.iter().find(|sent| Fingerprint::of(sent) == self.fingerprint);
        let authority = authority
            .ok_or_else(|| CertificateError::Other(OtherError(Arc::new(AnotherAuthority))))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let provider = Arc::clone(&self.provider);
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the configuration of TLS 1.3 for HTTP/2 to the coordinator whose authority has this
/// fingerprint, with a client certificate if there is one.
///
/// # Errors
/// rustls does not accept the credentials' key.
pub fn client_config(
    authority: Fingerprint,
    credentials: Option<&Credentials>,
) -> Result<rustls::ClientConfig, rustls::Error> {
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13])?;
    let verifier = Arc::new(PinnedAuthority::new(authority));
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match credentials {
        None => builder.with_no_client_auth(),
        Some(credentials) => {
            builder.with_client_auth_cert(vec![credentials.certificate()], credentials.key())?
        }
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(config)
}
