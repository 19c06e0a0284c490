//! The client's side of a connection.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use super::credentials::Credentials;
use super::fingerprint::Fingerprint;

/// HTTP/2, as gRPC wants it.
pub(super) const ALPN: &[u8] = b"h2";

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Takes a server for the coordinator if its certificate is signed by the authority of this fingerprint, is in
/// date, and has the name by which it was reached. The network is trusted for nothing: a token has the
/// fingerprint, and so do credentials.
#[derive(Debug)]
pub struct PinnedAuthority {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

/// The server's chain has no authority of the fingerprint.
#[derive(thiserror::Error)]
#[error(
    "the server is not the coordinator of this token or certificate: its authority is another; check the address"
)]
struct AnotherAuthority;

/// The sentence, because rustls shows other people's errors like this.
impl fmt::Debug for AnotherAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PinnedAuthority {
    /// Trusts the authority of this fingerprint alone.
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
        let authority =
            authority.ok_or_else(|| CertificateError::Other(OtherError(Arc::new(AnotherAuthority))))?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        let provider = Arc::clone(&self.provider);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
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

/// TLS 1.3 for HTTP/2 to the coordinator whose authority has this fingerprint, with a client certificate if there
/// is one.
///
/// # Errors
/// The credentials' key is not one that rustls takes.
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
