//! The server side of TLS connections.

use std::sync::{Arc, PoisonError, RwLock};

use rcgen::KeyPair;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use super::ca::{Authority, AuthorityError};
use super::certificates::{self, CertificateError, SERVER_BACKDATED_MS, SERVER_LIFE_MS, Validity};
use super::renewal::Renewal;
use super::tls::{ALPN, provider};

/// The coordinator's server key and certificate, replaced before they expire.
#[derive(Debug)]
pub struct ServerIdentity {
    current: RwLock<Current>,
}

/// The current key and certificate.
#[derive(Debug)]
struct Current {
    certified: Arc<CertifiedKey>,
    chain_pem: String,
    key: Arc<KeyPair>,
    names: Vec<String>,
    validity: Validity,
    renewal_due_ms: u64,
}

impl Current {
    fn new(authority: &Authority, now_ms: u64) -> Result<Self, AuthorityError> {
        let names = authority.server_names()?;
        let key = KeyPair::generate().map_err(CertificateError::Making)?;
        let (certificate, validity) =
            certificates::for_server(&names, &key, authority.issuer(), now_ms)?;
        // The clients look in the chain for the authority's certificate, whose fingerprint they
        // know.
        let chain = vec![certificate.der().clone(), authority.certificate().clone()];
        let chain_pem = certificate.pem() + authority.certificate_pem();
        let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let certified = CertifiedKey::from_der(chain, der, &provider());
        // Both were made above, and ring reads the keys that it makes.
        let certified =
            certified.map_err(|_| CertificateError::Making(rcgen::Error::CouldNotParseKeyPair))?;
        let renewal_due_ms = now_ms.saturating_add(SERVER_LIFE_MS / 3 * 2);
        let (certified, key) = (Arc::new(certified), Arc::new(key));
        Ok(Self { certified, chain_pem, key, names, validity, renewal_due_ms })
    }
}

impl ServerIdentity {
    /// Creates a new key with a certificate for the coordinator's names.
    ///
    /// # Errors
    /// The registry cannot be used, or there are no random numbers.
    pub fn new(authority: &Authority, now_ms: u64) -> Result<Self, AuthorityError> {
        Ok(Self { current: RwLock::new(Current::new(authority, now_ms)?) })
    }

    /// Replaces the key and certificate if less than a third of the lifetime is left, the names
    /// have changed, or the certificate is not valid yet, and returns the reason if so. New
    /// connections use the new ones; open connections continue. Calling this once an hour suffices,
    /// except after the clock was set back.
    ///
    /// # Errors
    /// The registry cannot be used, or there are no random numbers; the current key and certificate
    /// remain in use.
    pub fn renew_if_due(
        &self,
        authority: &Authority,
        now_ms: u64,
    ) -> Result<Option<Renewal>, AuthorityError> {
        let names = authority.server_names()?;
        let renewal = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            let due = now_ms >= current.renewal_due_ms || current.names != names;
            let set_back = current.validity.set_back(SERVER_BACKDATED_MS, now_ms);
            set_back.or_else(|| due.then_some(Renewal::Due))
        };
        if renewal.is_some() {
            let next = Current::new(authority, now_ms)?;
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(renewal)
    }

    /// Returns the certificate, followed by the authority's, and the private key, for a server that
    /// takes PEM. Such a server uses them for as long as it runs.
    pub fn chain_and_key_pem(&self) -> (String, String) {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        (current.chain_pem.clone(), current.key.serialize_pem())
    }

    /// Returns the configuration of TLS 1.3 for HTTP/2, with this identity, that requests a client
    /// certificate of `authority`. A caller without a certificate reaches the handlers, which allow
    /// it to enrol and nothing else. So does a caller whose certificate is not valid yet, which is
    /// allowed to renew it and nothing else. With an invalid or expired certificate, the handshake
    /// fails.
    ///
    /// # Errors
    /// rustls does not accept the authority's certificate.
    pub fn config(
        self: Arc<Self>,
        authority: &Authority,
    ) -> Result<rustls::ServerConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate().clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let verifier = verifier.allow_unauthenticated().build();
        let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
        let builder = rustls::ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13])?;
        let verifier = Arc::new(ClientVerifier(verifier));
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(self);
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }

    /// Returns the configuration of TLS 1.3 for HTTP/1.1, with this identity, that requests no
    /// certificate: browsers use sessions.
    ///
    /// # Errors
    /// rustls does not accept the configuration.
    pub fn config_for_browsers(self: Arc<Self>) -> Result<rustls::ServerConfig, rustls::Error> {
        let builder = rustls::ServerConfig::builder_with_provider(provider());
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13])?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// A verifier that checks a client certificate as webpki does, but accepts one that is not valid
/// yet: the clock was set back since the authority signed it. The registry, which lists every live
/// certificate, restricts its use to renewal.
#[derive(Debug)]
struct ClientVerifier(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match self.0.verify_client_cert(end_entity, intermediates, now) {
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::NotValidYetContext { not_before, .. },
            )) => self.0.verify_client_cert(end_entity, intermediates, not_before),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

impl ResolvesServerCert for ServerIdentity {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current.certified))
    }
}
