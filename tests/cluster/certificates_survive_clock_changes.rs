//! After a coordinator's clock was set back, certificates issued before begin in the future. They
//! are replaced without manual action, and allow nothing else meanwhile.

use crate::support;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nqueens::cluster::auth::{
    AccessError, Action, Authority, Credentials, KeyRequest, Name, Renewal, Role, ServerIdentity,
};
use nqueens::cluster::coordinator::{now_ms, operator_folder};
use nqueens::cluster::protocol::v1::enrolment_server::{Enrolment, EnrolmentServer};
use nqueens::cluster::protocol::v1::work_server::{Work, WorkServer};
use nqueens::cluster::protocol::{
    Channel, Security, is_not_valid_yet, not_valid_yet, peer, renew, v1,
};
use nqueens::cluster::worker::{self, WorkerOptions};
use nqueens::engine::{DeviceChoice, DeviceName};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use support::{Coordinator, PATIENCE, Scratch, Worker, authority, run};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Creates credentials as enrolment at that time does.
fn credentials(authority: &Authority, name: &str, role: Role, at_ms: u64) -> Credentials {
    let name: Name = name.parse().expect("a name");
    let token =
        authority.create_token(role, 1.try_into().expect("one"), DAY_MS, at_ms).expect("a token");
    let key = KeyRequest::new(&name).expect("a key");
    let issued = authority.enroll(&token, &name, key.request(), at_ms).expect("enrolled");
    key.into_credentials(authority.fingerprint(), &issued.certificate_pem, &issued.authority_pem)
        .expect("an answer")
}

/// A coordinator in this process whose clock is a day behind.
#[derive(Clone, Debug)]
struct CoordinatorBehind {
    authority: Arc<Authority>,
    syncs: Arc<Mutex<Vec<Result<String, String>>>>,
    renewals: Arc<AtomicU32>,
}

fn day_before_ms() -> u64 {
    now_ms() - DAY_MS
}

impl TimeProvider for CoordinatorBehind {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(day_before_ms())))
    }
}

fn client_certificate<T>(request: &Request<T>) -> Option<Vec<u8>> {
    request.peer_certs()?.first().map(|der| der.to_vec())
}

#[tonic::async_trait]
impl Work for CoordinatorBehind {
    async fn listen(
        &self,
        _: Request<v1::ListenRequest>,
    ) -> Result<Response<v1::ListenResponse>, Status> {
        Err(Status::unimplemented("as an older coordinator"))
    }

    async fn sync(
        &self,
        request: Request<v1::SyncRequest>,
    ) -> Result<Response<v1::SyncResponse>, Status> {
        let known = self.authority.authorize(
            client_certificate(&request).as_deref(),
            Action::Sync,
            day_before_ms(),
        );
        let caller = known.as_ref().map(|who| who.name.to_string()).map_err(ToString::to_string);
        self.syncs.lock().expect("no thread panicked").push(caller);
        match known {
            Ok(_) => {
                Ok(Response::new(v1::SyncResponse { next_sync_ms: 100, ..Default::default() }))
            }
            Err(error @ AccessError::NotYetValid) => Err(not_valid_yet(error.to_string())),
            Err(error) => Err(Status::unauthenticated(error.to_string())),
        }
    }

    async fn complete(
        &self,
        _request: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        Err(Status::unimplemented("there is nothing to complete"))
    }

    async fn fail(
        &self,
        _request: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        Err(Status::unimplemented("there is nothing that could fail"))
    }
}

#[tonic::async_trait]
impl Enrolment for CoordinatorBehind {
    async fn enroll(
        &self,
        _request: Request<v1::EnrollRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        Err(Status::unauthenticated("no worker should enrol again"))
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Response<v1::EnrollResponse>, Status> {
        self.renewals.fetch_add(1, Ordering::Relaxed);
        let shown = client_certificate(&request).expect("a certificate");
        let issued = self.authority.renew(&shown, &request.get_ref().request, day_before_ms());
        let issued = issued.map_err(|error| Status::unauthenticated(error.to_string()))?;
        let (certificate_pem, authority_pem) = (issued.certificate_pem, issued.authority_pem);
        Ok(Response::new(v1::EnrollResponse { certificate_pem, authority_pem }))
    }
}

impl CoordinatorBehind {
    /// Serves with the handshakes of a coordinator, which use the same clock.
    async fn serve(&self) -> String {
        let identity =
            Arc::new(ServerIdentity::new(&self.authority, day_before_ms()).expect("an identity"));
        let mut config = identity.config(&self.authority).expect("a configuration");
        config.time_provider = Arc::new(self.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        let (sender, incoming) = tokio::sync::mpsc::channel::<std::io::Result<_>>(8);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let _ = sender.send(Ok(stream)).await;
                }
            }
        });
        let server = Server::builder().add_service(WorkServer::new(self.clone()));
        let server = server.add_service(EnrolmentServer::new(self.clone()));
        tokio::spawn(server.serve_with_incoming(ReceiverStream::new(incoming)));
        address
    }
}

#[tokio::test]
async fn a_worker_replaces_its_certificate_when_the_coordinators_clock_alone_was_set_back() {
    let scratch = Scratch::new("coordinators-clock");
    let authority = Arc::new(authority(&scratch.path("data")));
    let folder = scratch.path("worker");
    let before = credentials(&authority, "w", Role::Worker, now_ms());
    assert_eq!(before.renewal(now_ms()), None, "by the worker's own clock it is valid");
    before.save(&folder).expect("saved");
    let coordinator =
        CoordinatorBehind { authority, syncs: Arc::default(), renewals: Arc::default() };
    let join = coordinator.serve().await.parse().expect("an address");
    let options = WorkerOptions {
        devices: DeviceChoice::These(vec![DeviceName::Cpu]),
        threads: 1.try_into().ok(),
        exit_when_idle: true,
        ..WorkerOptions::new(join, folder.clone())
    };
    let worked = tokio::time::timeout(PATIENCE, worker::run(options, std::future::pending())).await;
    worked.expect("it continues without help").expect("it ends without an error");
    let syncs = coordinator.syncs.lock().expect("no thread panicked").clone();
    let is_refused =
        |sync: &Result<_, String>| sync.as_ref().is_err_and(|why| why.contains("not valid yet"));
    assert!(is_refused(&syncs[0]) && syncs.last() == Some(&Ok("w".into())), "{syncs:?}");
    assert_eq!(coordinator.renewals.load(Ordering::Relaxed), 1);
    let after = Credentials::load(&folder).expect("kept");
    assert_ne!(after.certificate_pem(), before.certificate_pem());
    coordinator
        .authority
        .authorize(Some(&der(&after)), Action::Sync, day_before_ms())
        .expect("valid");
}

/// The certificate in DER.
fn der(credentials: &Credentials) -> Vec<u8> {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    CertificateDer::from_pem_slice(credentials.certificate_pem().as_bytes()).expect("PEM").to_vec()
}

/// Starts a coordinator whose clock was set back by a day after it had issued certificates.
fn set_back(data: &Path) -> (Authority, Coordinator) {
    let authority = authority(data);
    let operator = credentials(&authority, "local-operator", Role::Operator, now_ms() + DAY_MS);
    operator.save(&operator_folder(data)).expect("saved");
    (authority, Coordinator::start(data, &[]))
}

#[tokio::test]
async fn certificates_that_are_not_valid_yet_allow_only_their_replacement() {
    let scratch = Scratch::new("set-back");
    let (authority, coordinator) = set_back(&scratch.path("data"));
    let pin = authority.fingerprint();
    let channel = |credentials: &Credentials| {
        let security = Security::Tls(pin, Some(Box::new(credentials.clone())));
        Channel::new(&coordinator.address, &security, PATIENCE).expect("a channel")
    };
    // Its own operator certificate is replaced when it starts.
    let operator = coordinator.channel().operations().status(v1::StatusRequest::default()).await;
    operator.expect("the local operator is authorised");

    let early = credentials(&authority, "early", Role::Worker, now_ms() + DAY_MS);
    assert!(matches!(early.renewal(now_ms()), Some(Renewal::ClockSetBack { .. })));
    let refused = Worker::new("early", channel(&early)).sync().await.expect_err("not valid yet");
    assert_eq!(
        (refused.code(), is_not_valid_yet(&refused)),
        (Code::Unavailable, true),
        "{refused:?}"
    );
    let folder = scratch.path("early");
    let renewed = renew(&coordinator.address, &early, &folder, PATIENCE).await.expect("renewed");
    Worker::new("early", channel(&renewed)).sync().await.expect("authorised");

    // A revoked certificate stays revoked.
    let revoked = credentials(&authority, "revoked", Role::Worker, now_ms() + DAY_MS);
    authority.revoke(revoked.name(), now_ms()).expect("revoked");
    let request = v1::RenewRequest { peer: peer(), request: Vec::new() };
    let refused = channel(&revoked).enrolment().renew(request).await.expect_err("revoked");
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
    assert!(!is_not_valid_yet(&refused));
}

#[tokio::test]
async fn a_remote_operator_is_asked_to_repeat_the_command() {
    let scratch = Scratch::new("person");
    let (authority, coordinator) = set_back(&scratch.path("data"));
    let folder = scratch.path("viewer");
    credentials(&authority, "viewer", Role::Viewer, now_ms() + DAY_MS)
        .save(&folder)
        .expect("saved");
    let address = coordinator.address.to_string();
    let command =
        ["jobs", "--coordinator", &address, "--credentials", folder.to_str().expect("UTF-8")];
    let first = run(&command);
    let message = String::from_utf8_lossy(&first.stderr).into_owned();
    assert_eq!((first.status.code(), message.lines().count()), (Some(8), 1), "{message}");
    assert!(message.contains("set back") && message.contains("again"), "{message}");
    assert_eq!(run(&command).status.code(), Some(0));
}

#[test]
fn a_worker_whose_own_clock_was_set_back_reports_it_and_works() {
    let scratch = Scratch::new("both");
    let (authority, coordinator) = set_back(&scratch.path("data"));
    let folder = scratch.path("worker");
    credentials(&authority, "w", Role::Worker, now_ms() + DAY_MS).save(&folder).expect("saved");
    let (address, folder) = (coordinator.address.to_string(), folder.to_str().expect("UTF-8"));
    let fixed =
        ["worker", "--device", "cpu", "--threads", "1", "--exit-when-idle", "--log-level", "warn"];
    let worked = run(&[&fixed[..], &["--join", &address, "--data", folder]].concat());
    let message = String::from_utf8_lossy(&worked.stderr).into_owned();
    assert_eq!(worked.status.code(), Some(0), "{message}");
    assert!(
        message.contains("the clock was set back by at least 2")
            && message.contains(" h: the cert"),
        "{message}"
    );
}
