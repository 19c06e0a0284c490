//! The classification of failed connections.

use std::error::Error;
use std::{io, iter};

use tonic::Status;

/// A failed connection; the coordinator itself sent no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    /// The kind of failure, as far as callers distinguish it.
    pub kind: ConnectErrorKind,
    /// A description on one line.
    pub message: String,
}

/// The kind of a connection failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectErrorKind {
    /// The connection was refused: nothing listens at the address.
    Refused,
    /// The server speaks TLS, but its certificate is not the coordinator's. This may be transient
    /// while a network is only partly up.
    UntrustedServer,
    /// The client used TLS, and the server does not.
    TlsUnsupported,
    /// The client did not use TLS, and the server does not answer in HTTP/2; most probably it uses
    /// TLS.
    PlainUnsupported,
    /// Any other failure, which may be transient.
    Other,
}

impl ConnectError {
    /// Returns the failure of the connection on which a call failed, or `None` if the status is the
    /// coordinator's own answer.
    pub fn of(status: &Status) -> Option<Self> {
        let causes = || iter::successors(status.source(), |cause| (*cause).source());
        // The innermost cause is the most specific.
        let innermost = causes().last()?.to_string();
        let kind = causes().find_map(classify).unwrap_or(ConnectErrorKind::Other);
        let message = match kind {
            ConnectErrorKind::TlsUnsupported => "it does not speak TLS",
            ConnectErrorKind::PlainUnsupported => "it does not speak HTTP/2 without TLS",
            _ => innermost.lines().next().unwrap_or_default(),
        };
        Some(Self { kind, message: message.to_owned() })
    }
}

/// Classifies a single cause.
fn classify(cause: &(dyn Error + 'static)) -> Option<ConnectErrorKind> {
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        return match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(tls) => classify_tls(tls),
            None => (error.kind() == io::ErrorKind::ConnectionRefused)
                .then_some(ConnectErrorKind::Refused),
        };
    }
    if let Some(error) = cause.downcast_ref::<h2::Error>() {
        // The first bytes of a TLS alert, or of a line of HTTP/1, are read as a frame's length.
        return (error.reason() == Some(h2::Reason::FRAME_SIZE_ERROR))
            .then_some(ConnectErrorKind::PlainUnsupported);
    }
    classify_tls(cause.downcast_ref()?)
}

const fn classify_tls(error: &rustls::Error) -> Option<ConnectErrorKind> {
    match error {
        rustls::Error::InvalidCertificate(_) => Some(ConnectErrorKind::UntrustedServer),
        rustls::Error::InvalidMessage(_) => Some(ConnectErrorKind::TlsUnsupported),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::cluster::auth::Fingerprint;
    use crate::cluster::protocol::{Address, Channel, Security, v1};

    /// Returns the failure of a call to a server that reads a little, writes these bytes and ends.
    async fn error_of_response(security: Security, bytes: &'static [u8]) -> ConnectError {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: Address =
            listener.local_addr().expect("one").to_string().parse().expect("one");
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
                // Read the remaining input, so that the answer is not lost by a reset.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let error = error_of_call(&address, &security).await;
        server.abort();
        error
    }

    /// Returns the failure of a call to an address at which there is no coordinator.
    async fn error_of_call(address: &Address, security: &Security) -> ConnectError {
        let channel = Channel::new(address, security, Duration::from_secs(30)).expect("a channel");
        let called = channel.operations().status(v1::StatusRequest::default()).await;
        let status = called.expect_err("no coordinator");
        ConnectError::of(&status).expect("of the connection")
    }

    #[tokio::test]
    async fn a_server_of_another_protocol_is_distinguished_from_an_absent_one() {
        const ALERT: &[u8] = &[0x15, 3, 3, 0, 2, 2, 10];
        for bytes in [ALERT, b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
            let error = error_of_response(Security::Plain, bytes).await;
            assert_eq!(error.kind, ConnectErrorKind::PlainUnsupported, "{error:?}");
        }
        assert_eq!(error_of_response(Security::Plain, b"").await.kind, ConnectErrorKind::Other);
        let pin: Fingerprint =
            "m4cqsdvsad4vujcgsid3uphbij5ncrj5umfeqp2zhirpowrrlpja".parse().expect("one");
        // The settings frame with which an HTTP/2 server begins.
        let error = error_of_response(Security::Tls(pin, None), &[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
        assert_eq!(error.kind, ConnectErrorKind::TlsUnsupported, "{error:?}");
        let nobody =
            TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("one");
        let nobody: Address = nobody.to_string().parse().expect("one");
        let error = error_of_call(&nobody, &Security::Plain).await;
        assert_eq!(error.kind, ConnectErrorKind::Refused, "{error:?}");
    }

    #[test]
    fn a_response_is_not_a_connection_error() {
        assert_eq!(
            ConnectError::of(&Status::unavailable("the coordinator stops; try again later")),
            None
        );
    }
}
