//! Renewal of the coordinator's own certificates: that of the server, and that of the operator on
//! this machine.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::access::Access;
use super::clock::MonotonicClock;
use super::options::ServeError;
use super::write_failures::WriteFailures;
use super::{now_ms, operator_folder};
use crate::cluster::auth::{
    Authority, AuthorityError, Credentials, KeyRequest, Name, Renewal, Role, ServerIdentity,
};

/// The name of the operator's certificate in reports that it cannot be written.
pub(super) const OPERATOR: &str = "the operator's certificate";

/// Renews the certificates of the server and the operator before they expire, and soon after the
/// clock was set back.
pub(super) async fn renew(
    authority: Arc<Authority>,
    identity: Arc<ServerIdentity>,
    data: PathBuf,
    access: Arc<Access>,
    write_failures: WriteFailures,
) {
    const EVERY: Duration = Duration::from_secs(60);
    let mut clock = MonotonicClock::start();
    loop {
        tokio::time::sleep(EVERY).await;
        access.forget_idle();
        let (authority, identity, data) =
            (Arc::clone(&authority), Arc::clone(&identity), data.clone());
        let now_ms = now_ms();
        let renewed =
            tokio::task::spawn_blocking(move || renew_if_due(&authority, &identity, &data, now_ms));
        match renewed.await {
            Ok(Ok(renewal)) => {
                write_failures.record(OPERATOR, Ok::<(), ServeError>(()));
                log_clock_set_back(renewal, clock.now_ms().saturating_sub(now_ms));
                clock = if renewal.is_some() { MonotonicClock::start() } else { clock };
            }
            Ok(Err(error)) => write_failures.record(OPERATOR, Err(error)),
            Err(_) => {}
        }
    }
}

/// Renews the certificates of the server and the operator if due. Returns the reason if it renewed
/// any.
fn renew_if_due(
    authority: &Authority,
    identity: &ServerIdentity,
    data: &Path,
    now_ms: u64,
) -> Result<Option<Renewal>, ServeError> {
    let of_server = identity.renew_if_due(authority, now_ms)?;
    Ok(of_server.max(renew_operator(authority, data, now_ms)?))
}

/// Renews the operator's certificate if needed, and logs if it was replaced because the clock was
/// set back.
pub(super) fn renew_operator_and_log(
    authority: &Authority,
    data: &Path,
    now_ms: u64,
) -> Result<(), ServeError> {
    log_clock_set_back(renew_operator(authority, data, now_ms)?, 0);
    Ok(())
}

/// Logs that the clock was set back, if certificates were replaced for that reason. `by_ms` is a
/// second measurement of the shift; the larger one is logged.
fn log_clock_set_back(renewal: Option<Renewal>, by_ms: u64) {
    if let Some(set_back @ Renewal::ClockSetBack { .. }) = renewal {
        let set_back = set_back.max(Renewal::ClockSetBack { by_ms });
        tracing::warn!(
            "{set_back}: the coordinator's own certificates that were not valid yet are replaced"
        );
    }
}

/// Ensures that the operator on this machine has a valid certificate. Returns the reason if it
/// issued one.
fn renew_operator(
    authority: &Authority,
    data: &Path,
    now_ms: u64,
) -> Result<Option<Renewal>, ServeError> {
    const A_MINUTE_MS: u64 = 60_000;
    let folder = operator_folder(data);
    let kept =
        Credentials::load(&folder).ok().filter(|kept| kept.authority() == authority.fingerprint());
    let renewal = kept.as_ref().map_or(Some(Renewal::Due), |kept| kept.renewal(now_ms));
    let is_live = |kept: &Credentials| {
        authority.certificates().is_ok_and(|all| {
            all.iter().any(|one| one.name == *kept.name() && one.revoked_ms.is_none())
        })
    };
    if renewal.is_none() && kept.as_ref().is_some_and(is_live) {
        return Ok(None);
    }
    // The constant is a valid name.
    let Ok(name) = "local-operator".parse::<Name>() else { return Ok(None) };
    match authority.revoke(&name, now_ms) {
        Err(AuthorityError::NoSuchName(_)) => {}
        revoked => drop(revoked?),
    }
    let token = authority.create_token(Role::Operator, NonZeroU32::MIN, A_MINUTE_MS, now_ms)?;
    let key = KeyRequest::new(&name)?;
    let issued = authority.enroll(&token, &name, key.request(), now_ms);
    let issued = issued
        .map_err(|error| ServeError::Folder(folder.clone(), io::Error::other(error.to_string())))?;
    let credentials = key.into_credentials(
        authority.fingerprint(),
        &issued.certificate_pem,
        &issued.authority_pem,
    )?;
    credentials.save(&folder)?;
    Ok(renewal.or(Some(Renewal::Due)))
}

#[cfg(test)]
mod tests;
