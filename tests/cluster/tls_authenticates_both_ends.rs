//! Both ends of a TLS connection authenticate each other: real handshakes over loopback, with
//! rustls and with gRPC.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use nqueens::cluster::auth::{
    AccessError, Action, Authority, Credentials, Fingerprint, KeyRequest, Name, PinnedAuthority,
    Renewal, Role, ServerIdentity, client_config,
};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Returns the current time, since rustls reads the clock by itself.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("before the year 584 million")
}

/// An authority in a temporary folder.
struct TestAuthority {
    authority: Arc<Authority>,
    folder: PathBuf,
}

impl TestAuthority {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("nqueens-tls-{}-{count}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let authority =
            Authority::init(&folder, &["coordinator.test".into()], now_ms()).expect("an authority");
        Self { authority: Arc::new(authority), folder }
    }

    fn pin(&self) -> Fingerprint {
        self.authority.fingerprint()
    }

    fn credentials(&self, name: &str, role: Role, now_ms: u64) -> Credentials {
        let name: Name = name.parse().expect("a name");
        let token =
            self.authority.create_token(role, NonZeroU32::MIN, DAY_MS, now_ms).expect("a token");
        let key = KeyRequest::new(&name).expect("a key");
        let issued = self.authority.enroll(&token, &name, key.request(), now_ms).expect("enrolled");
        let answer =
            key.into_credentials(token.authority(), &issued.certificate_pem, &issued.authority_pem);
        answer.expect("an answer")
    }

    fn server_config(&self, now_ms: u64) -> ServerConfig {
        let identity = Arc::new(ServerIdentity::new(&self.authority, now_ms).expect("an identity"));
        identity.config(&self.authority).expect("a configuration")
    }

    /// Starts a server that replies to each caller whether it may sync.
    async fn serve(&self, config: ServerConfig) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let (acceptor, authority) =
            (TlsAcceptor::from(Arc::new(config)), Arc::clone(&self.authority));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, authority) = (acceptor.clone(), Arc::clone(&authority));
                tokio::spawn(async move {
                    let mut stream: TlsStream<TcpStream> = acceptor.accept(stream).await?;
                    let shown =
                        stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
                    let answer = authority.authorize(shown.as_deref(), Action::Sync, now_ms());
                    let answer = answer
                        .map_or_else(|e| e.to_string(), |who| format!("welcome {}", who.name));
                    stream.write_all(answer.as_bytes()).await?;
                    stream.shutdown().await
                });
            }
        });
        address
    }
}

impl Drop for TestAuthority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns the server's reply, or the error that ended the connection.
async fn call(address: SocketAddr, name: &str, config: ClientConfig) -> io::Result<String> {
    let talk = async {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    tokio::time::timeout(Duration::from_secs(20), talk).await.expect("no handshake takes that long")
}

fn config(pin: Fingerprint, credentials: Option<&Credentials>) -> ClientConfig {
    client_config(pin, credentials).expect("a configuration")
}

fn assert_refused(answer: &io::Result<String>, word: &str) {
    let error = answer.as_ref().expect_err("a refused connection").to_string();
    assert!(error.contains(word), "'{word}' is missing in: {error}");
}

#[tokio::test]
async fn a_worker_with_its_certificate_is_known_by_name_under_every_name_of_the_server() {
    let setup = TestAuthority::new();
    let worker = setup.credentials("a", Role::Worker, now_ms());
    let address = setup.serve(setup.server_config(now_ms())).await;
    for name in ["localhost", "127.0.0.1", "::1", "coordinator.test"] {
        let answer = call(address, name, config(setup.pin(), Some(&worker))).await;
        assert_eq!(answer.expect("a reply"), "welcome a", "{name}");
    }
    assert_refused(
        &call(address, "another.test", config(setup.pin(), Some(&worker))).await,
        "not valid for name",
    );
}

#[tokio::test]
async fn callers_without_a_valid_certificate_are_refused_by_the_handlers() {
    let setup = TestAuthority::new();
    let address = setup.serve(setup.server_config(now_ms())).await;
    let answer = call(address, "localhost", config(setup.pin(), None)).await.expect("a reply");
    assert!(answer.contains("no client certificate was presented"), "{answer}");
    let viewer = setup.credentials("v", Role::Viewer, now_ms());
    let answer =
        call(address, "localhost", config(setup.pin(), Some(&viewer))).await.expect("a reply");
    assert_eq!(answer, "the role viewer may not sync");
    let worker = setup.credentials("a", Role::Worker, now_ms());
    setup.authority.revoke(worker.name(), now_ms()).expect("revoked");
    let answer =
        call(address, "localhost", config(setup.pin(), Some(&worker))).await.expect("a reply");
    assert_eq!(answer, "the client certificate was revoked");
}

#[tokio::test]
async fn expired_certificates_and_those_of_another_authority_end_the_handshake() {
    let (setup, another) = (TestAuthority::new(), TestAuthority::new());
    let address = setup.serve(setup.server_config(now_ms())).await;
    let expired = setup.credentials("old", Role::Worker, now_ms() - 8 * DAY_MS);
    assert_refused(
        &call(address, "localhost", config(setup.pin(), Some(&expired))).await,
        "CertificateExpired",
    );
    let foreign = another.credentials("a", Role::Worker, now_ms());
    let answer = call(address, "localhost", config(setup.pin(), Some(&foreign))).await;
    assert!(answer.is_err(), "{answer:?}");
}

#[tokio::test]
async fn on_first_contact_only_the_authority_of_the_token_is_trusted() {
    let (setup, another) = (TestAuthority::new(), TestAuthority::new());
    let token = setup
        .authority
        .create_token(Role::Worker, NonZeroU32::MIN, DAY_MS, now_ms())
        .expect("a token");
    let address = setup.serve(setup.server_config(now_ms())).await;
    assert!(call(address, "localhost", config(token.authority(), None)).await.is_ok());
    let wrong = call(address, "localhost", config(another.pin(), None)).await;
    assert_refused(&wrong, "its authority differs");
}

/// Presents a certificate chain with a key, whether or not they match.
#[derive(Debug)]
struct Impostor(Arc<CertifiedKey>);

impl ResolvesServerCert for Impostor {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

fn impostor(chain_pem: &str, key_pem: &str) -> ServerConfig {
    let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("PEM");
    let key = rustls::crypto::ring::sign::any_supported_type(&key).expect("a key");
    let shown = Arc::new(Impostor(Arc::new(CertifiedKey::new(chain, key))));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.expect("versions").with_no_client_auth().with_cert_resolver(shown)
}

#[tokio::test]
async fn impostors_are_not_accepted_as_the_coordinator() {
    let (setup, another) = (TestAuthority::new(), TestAuthority::new());
    let real = ServerIdentity::new(&setup.authority, now_ms()).expect("an identity");
    let (real_chain, real_key) = real.chain_and_key_pem();
    let foreign = ServerIdentity::new(&another.authority, now_ms()).expect("an identity");
    let (foreign_chain, foreign_key) = foreign.chain_and_key_pem();
    let worker = setup.credentials("a", Role::Worker, now_ms());
    let with_authority = |chain: &str| format!("{chain}{}", setup.authority.certificate_pem());

    let own = call(
        setup.serve(impostor(&real_chain, &real_key)).await,
        "localhost",
        config(setup.pin(), None),
    )
    .await;
    assert!(own.is_ok(), "{own:?}");
    for (what, chain, key) in [
        ("another authority's server", foreign_chain.clone(), &foreign_key),
        (
            "the same with our authority's certificate beside it",
            with_authority(&foreign_chain),
            &foreign_key,
        ),
        ("the real chain without its key", real_chain.clone(), &foreign_key),
        (
            "a worker's certificate as a server's",
            with_authority(worker.certificate_pem()),
            &worker.key_pem().to_owned(),
        ),
        (
            "the authority's certificate as a server's",
            setup.authority.certificate_pem().repeat(2),
            &foreign_key,
        ),
    ] {
        let address = setup.serve(impostor(&chain, key)).await;
        let answer = call(address, "localhost", config(setup.pin(), None)).await;
        assert!(answer.is_err(), "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn an_expired_server_certificate_is_refused_and_one_near_expiry_is_renewed_while_serving() {
    let setup = TestAuthority::new();
    let long_ago_ms = now_ms() - 91 * DAY_MS;
    let identity =
        Arc::new(ServerIdentity::new(&setup.authority, long_ago_ms).expect("an identity"));
    let address =
        setup.serve(Arc::clone(&identity).config(&setup.authority).expect("a configuration")).await;
    assert_refused(&call(address, "localhost", config(setup.pin(), None)).await, "expired");
    let renew = |now_ms| identity.renew_if_due(&setup.authority, now_ms).expect("renewed");
    assert_eq!(renew(long_ago_ms + 59 * DAY_MS), None);
    assert_eq!((renew(now_ms()), renew(now_ms())), (Some(Renewal::Due), None));
    call(address, "localhost", config(setup.pin(), None)).await.expect("a reply");

    setup.authority.add_server_names(&["new.test".into()], now_ms()).expect("a name");
    assert_eq!(renew(now_ms()), Some(Renewal::Due));
    call(address, "new.test", config(setup.pin(), None)).await.expect("a reply");
}

#[tokio::test]
async fn a_server_whose_clock_was_set_back_replaces_its_certificate() {
    let setup = TestAuthority::new();
    let ahead_ms = now_ms() + 3 * DAY_MS;
    let identity = Arc::new(ServerIdentity::new(&setup.authority, ahead_ms).expect("an identity"));
    let address =
        setup.serve(Arc::clone(&identity).config(&setup.authority).expect("a configuration")).await;
    assert_refused(&call(address, "localhost", config(setup.pin(), None)).await, "not valid yet");
    let renew = |now_ms| identity.renew_if_due(&setup.authority, now_ms).expect("renewed");
    // Now it is backdated by a day.
    assert_eq!(renew(ahead_ms - DAY_MS), None);
    match renew(now_ms()) {
        Some(Renewal::ClockSetBack { by_ms }) => {
            assert!((2 * DAY_MS..=3 * DAY_MS).contains(&by_ms), "{by_ms}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(renew(now_ms()), None);
    call(address, "localhost", config(setup.pin(), None)).await.expect("a reply");
}

#[tokio::test]
async fn a_certificate_that_is_not_valid_yet_reaches_the_handlers_and_a_foreign_one_does_not() {
    let (setup, another) = (TestAuthority::new(), TestAuthority::new());
    let address = setup.serve(setup.server_config(now_ms())).await;
    let ahead_ms = now_ms() + DAY_MS;
    let early = setup.credentials("early", Role::Worker, ahead_ms);
    let answer =
        call(address, "localhost", config(setup.pin(), Some(&early))).await.expect("a reply");
    assert!(answer.contains("not valid yet"), "{answer}");
    let foreign = another.credentials("early", Role::Worker, ahead_ms);
    let answer = call(address, "localhost", config(setup.pin(), Some(&foreign))).await;
    assert!(answer.is_err(), "{answer:?}");

    // A forged certificate: by an authority of the same name, and by none.
    let issuer = |certificate: &CertificateDer<'static>, key: KeyPair| {
        Issuer::from_ca_cert_der(certificate, key).expect("it reads as one")
    };
    let forged = issuer(setup.authority.certificate(), KeyPair::generate().expect("a key"));
    let (key, own) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "early");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = rcgen::date_time_ymd(2100, 1, 1);
    params.not_after = rcgen::date_time_ymd(2101, 1, 1);
    let by_namesake = params.signed_by(&key, &forged).expect("signed");
    let by_itself = params.self_signed(&own).expect("signed");
    for (certificate, key) in [(by_namesake, key), (by_itself, own)] {
        let (certificate, key) =
            (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13]).expect("TLS 1.3");
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(PinnedAuthority::new(setup.pin())));
        let mut config = builder.with_client_auth_cert(vec![certificate], key).expect("they fit");
        config.alpn_protocols = vec![b"h2".to_vec()];
        let answer = call(address, "localhost", config).await;
        assert!(answer.is_err(), "{answer:?}");
    }
}

/// Passes workers to the inner service, as a handler would.
fn only_workers(
    authority: &Arc<Authority>,
) -> impl Fn(tonic::Request<()>) -> Result<tonic::Request<()>, tonic::Status>
+ Clone
+ Send
+ Sync
+ 'static {
    let authority = Arc::clone(authority);
    move |request| {
        let shown = request.peer_certs();
        let shown = shown.as_ref().and_then(|chain| chain.first());
        match authority.authorize(shown.map(AsRef::as_ref), Action::Sync, now_ms()) {
            Ok(_) => Ok(request),
            Err(error @ AccessError::Forbidden { .. }) => {
                Err(tonic::Status::permission_denied(error.to_string()))
            }
            Err(error) => Err(tonic::Status::unauthenticated(error.to_string())),
        }
    }
}

/// Starts gRPC's health service by tonic: with its own TLS, or with the handshakes of `config`.
async fn serve_grpc(setup: &TestAuthority, config: Option<ServerConfig>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let workers = InterceptorLayer::new(only_workers(&setup.authority));
    let (_, health) = tonic_health::server::health_reporter();
    let Some(config) = config else {
        let identity = ServerIdentity::new(&setup.authority, now_ms()).expect("an identity");
        let (chain, key) = identity.chain_and_key_pem();
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(chain, key))
            .client_auth_optional(true);
        let tls = tls.client_ca_root(Certificate::from_pem(setup.authority.certificate_pem()));
        let server = Server::builder().tls_config(tls).expect("a configuration");
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(async {
            server.layer(workers).add_service(health).serve_with_incoming(incoming).await
        });
        return address;
    };
    let (sender, receiver) = tokio::sync::mpsc::channel::<io::Result<TlsStream<TcpStream>>>(8);
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, sender) = (acceptor.clone(), sender.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let _ = sender.send(Ok(stream)).await;
                }
            });
        }
    });
    let server = Server::builder().layer(workers).add_service(health);
    tokio::spawn(server.serve_with_incoming(ReceiverStream::new(receiver)));
    address
}

/// Calls the health service by tonic.
async fn check(
    address: SocketAddr,
    pin: Fingerprint,
    credentials: Option<&Credentials>,
) -> Result<(), String> {
    let mut tls = ClientTlsConfig::new();
    if let Some(credentials) = credentials {
        tls =
            tls.identity(Identity::from_pem(credentials.certificate_pem(), credentials.key_pem()));
    }
    let endpoint =
        Endpoint::from_shared(format!("https://localhost:{}", address.port())).expect("an address");
    let endpoint =
        endpoint.tls_config_with_verifier(tls, Arc::new(PinnedAuthority::new(pin))).expect("TLS");
    call_health(endpoint).await
}

async fn call_health(endpoint: Endpoint) -> Result<(), String> {
    let channel =
        endpoint.timeout(Duration::from_secs(20)).connect().await.map_err(|e| format!("{e:?}"))?;
    let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await;
    answer.map(drop).map_err(|status| format!("{:?}: {}", status.code(), status.message()))
}

#[tokio::test]
async fn grpc_identifies_callers_with_its_own_tls_or_ours() {
    let (setup, another) = (TestAuthority::new(), TestAuthority::new());
    let worker = setup.credentials("a", Role::Worker, now_ms());
    let viewer = setup.credentials("v", Role::Viewer, now_ms());
    let foreign = another.credentials("a", Role::Worker, now_ms());
    for ours in [false, true] {
        let config = ours.then(|| setup.server_config(now_ms()));
        let address = serve_grpc(&setup, config).await;
        check(address, setup.pin(), Some(&worker)).await.expect("a worker");
        // With the authority's certificate in place of its fingerprint.
        let tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(worker.authority_pem()))
            .identity(Identity::from_pem(worker.certificate_pem(), worker.key_pem()));
        let endpoint = Endpoint::from_shared(format!("https://localhost:{}", address.port()))
            .expect("an address");
        call_health(endpoint.tls_config(tls).expect("TLS")).await.expect("a worker");

        let refused = check(address, setup.pin(), Some(&viewer)).await.expect_err("a viewer");
        assert!(refused.contains("PermissionDenied"), "{refused}");
        let refused = check(address, setup.pin(), None).await.expect_err("no certificate");
        assert!(refused.contains("Unauthenticated"), "{refused}");
        assert!(check(address, setup.pin(), Some(&foreign)).await.is_err());
        let refused = check(address, another.pin(), None).await.expect_err("the wrong coordinator");
        assert!(refused.contains("its authority differs"), "{refused}");
    }
}

#[tokio::test]
async fn a_revocation_applies_to_the_next_call_on_an_open_connection() {
    let setup = TestAuthority::new();
    let worker = setup.credentials("a", Role::Worker, now_ms());
    let address = serve_grpc(&setup, Some(setup.server_config(now_ms()))).await;
    let identity = Identity::from_pem(worker.certificate_pem(), worker.key_pem());
    let tls = ClientTlsConfig::new().identity(identity);
    let endpoint =
        Endpoint::from_shared(format!("https://localhost:{}", address.port())).expect("an address");
    let endpoint = endpoint
        .tls_config_with_verifier(tls, Arc::new(PinnedAuthority::new(setup.pin())))
        .expect("TLS");
    let mut client = HealthClient::new(endpoint.connect().await.expect("a connection"));
    client.check(HealthCheckRequest::default()).await.expect("authorised");
    // Revoked by another process.
    let elsewhere = Authority::open(&setup.folder).expect("opens");
    elsewhere.revoke(worker.name(), now_ms()).expect("revoked");
    let refused = client.check(HealthCheckRequest::default()).await.expect_err("refused");
    assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused:?}");
}
