//! Enrolment with a token, and renewal of certificates.

use std::path::Path;
use std::time::Duration;

use tonic::Status;
use tonic::metadata::MetadataValue;

use super::channel::{Address, Channel, ChannelError, Security};
use super::{peer, v1};
use crate::cluster::auth::{Credentials, CredentialsError, KeyRequest, Name, Token};

/// The reason why a certificate was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// The channel cannot be set up.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The key or the certificate cannot be stored, or the certificate does not match the request.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The coordinator does not answer, or refuses.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
}

impl From<Status> for EnrolError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(status))
    }
}

/// The metadata key of an answer that reports a certificate that is not valid yet.
const CERTIFICATE: &str = "nqueens-certificate";
const NOT_VALID_YET: &str = "not-valid-yet";

/// Returns the answer to a caller whose certificate is not valid yet by the coordinator's clock:
/// the same call may succeed later, and at once after [`renew`].
pub fn not_valid_yet(message: impl Into<String>) -> Status {
    let mut status = Status::unavailable(message);
    status.metadata_mut().insert(CERTIFICATE, MetadataValue::from_static(NOT_VALID_YET));
    status
}

/// Returns whether an answer reports that the caller's certificate is not valid yet.
pub fn is_not_valid_yet(status: &Status) -> bool {
    status.metadata().get(CERTIFICATE).is_some_and(|value| value == NOT_VALID_YET)
}

/// Redeems a token for a certificate for `name` and stores it in `folder`. If the answer is lost,
/// the repeated call does not use the token twice.
///
/// # Errors
/// The coordinator refuses, or the directory cannot be written.
pub async fn enrol(
    address: &Address,
    token: &Token,
    name: &Name,
    folder: &Path,
    deadline: Duration,
) -> Result<Credentials, EnrolError> {
    let key = KeyRequest::for_enrolment(folder, name)?;
    let channel = Channel::new(address, &Security::Tls(token.authority(), None), deadline)?;
    let request = v1::EnrollRequest {
        peer: peer(),
        token: token.to_string(),
        name: name.to_string(),
        request: key.request().to_vec(),
    };
    let answer = channel.enrolment().enroll(request).await?.into_inner();
    let credentials =
        key.into_credentials(token.authority(), &answer.certificate_pem, &answer.authority_pem)?;
    credentials.save(folder)?;
    Ok(credentials)
}

/// Obtains the next certificate for the holder of `credentials` and stores it in `folder`.
///
/// # Errors
/// The coordinator refuses, or the directory cannot be written; the current credentials remain
/// valid.
pub async fn renew(
    address: &Address,
    credentials: &Credentials,
    folder: &Path,
    deadline: Duration,
) -> Result<Credentials, EnrolError> {
    let authority = credentials.authority();
    let key = KeyRequest::new(credentials.name())?;
    let security = Security::Tls(authority, Some(Box::new(credentials.clone())));
    let channel = Channel::new(address, &security, deadline)?;
    let request = v1::RenewRequest { peer: peer(), request: key.request().to_vec() };
    let answer = channel.enrolment().renew(request).await?.into_inner();
    let renewed =
        key.into_credentials(authority, &answer.certificate_pem, &answer.authority_pem)?;
    renewed.save(folder)?;
    Ok(renewed)
}
