//! Background tasks: the renewal of the certificate, and rests.

use std::convert::Infallible;
use std::time::Duration;

use super::WorkerLoop;
use crate::cluster::auth::Renewal;
use crate::cluster::protocol::{Security, now_ms, renew};
use crate::cluster::worker::WorkerError;
use crate::cluster::worker::environment::{Pause, Rest};

impl WorkerLoop {
    /// Renews the certificate when half of its lifetime is over, and when it is not valid yet
    /// because a clock was set back, according to the coordinator or to the local clock.
    pub(super) async fn renewal_loop(&self) -> Result<Infallible, WorkerError> {
        const AT_MOST: Duration = Duration::from_secs(3600);
        let mut is_requested = false;
        let mut is_behind = false;
        loop {
            let Security::Tls(authority, Some(credentials)) = self.connection.security() else {
                return std::future::pending().await;
            };
            let renewal = credentials.renewal(now_ms()).filter(|renewal| {
                // Another certificate would not be valid yet either.
                !(is_behind && matches!(renewal, Renewal::ClockSetBack { .. }))
            });
            if is_requested || renewal.is_some() {
                match renew(
                    self.connection.address(),
                    &credentials,
                    self.data_dir.path(),
                    self.connection.deadline(),
                )
                .await
                {
                    Ok(renewed) => {
                        match renewal {
                            Some(set_back @ Renewal::ClockSetBack { .. }) => {
                                tracing::warn!(
                                    "{set_back}: the certificate was not valid yet and was replaced"
                                );
                            }
                            _ if is_requested => tracing::warn!(
                                "the coordinator's clock was set back: the certificate was not valid yet and was replaced"
                            ),
                            _ => tracing::info!("the certificate was renewed"),
                        }
                        let ahead = renewed.renewal(now_ms());
                        is_behind = matches!(ahead, Some(Renewal::ClockSetBack { .. }));
                        if is_behind {
                            tracing::warn!(
                                "the clock of this machine is minutes behind the coordinator's: set it"
                            );
                        }
                        self.connection
                            .secure(Security::Tls(authority, Some(Box::new(renewed))))?;
                    }
                    Err(error) => {
                        tracing::warn!(
                            "the certificate could not be renewed, trying again: {error}"
                        )
                    }
                }
            }
            // Try several times before the certificate expires, however short its lifetime.
            let left = Duration::from_millis(credentials.not_after_ms().saturating_sub(now_ms()));
            is_requested = tokio::select! {
                () = tokio::time::sleep((left / 8).clamp(Duration::from_secs(1), AT_MOST)) => false,
                () = self.connection.not_valid_yet() => true,
            };
        }
    }

    /// Rests outside the configured hours and while the machine is too hot.
    pub(super) async fn rest_loop(&self) -> Infallible {
        const INTERVAL: Duration = Duration::from_secs(5);
        if self.rest == Rest::default() {
            return std::future::pending().await;
        }
        let mut pause = Pause::default();
        let mut resting = None;
        loop {
            let reason = pause.reason(&self.rest, &*self.environment);
            match &reason {
                Some(why) if resting.is_none() => tracing::info!("resting: {why}"),
                None if resting.is_some() => tracing::info!("counting again"),
                _ => {}
            }
            self.queue.rest(reason.is_some());
            resting = reason;
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
