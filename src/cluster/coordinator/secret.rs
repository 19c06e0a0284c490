//! The secret of a coordinator's campaign: 32 random bytes in a private file beside the ledger, by which it recognises
//! the leases that it granted before a restart.

use std::path::Path;

use crate::cluster::auth::{read_private, write_private};
use crate::cluster::campaign::CampaignKey;

/// Its name in the coordinator's folder.
const FILE: &str = "campaign.key";

/// Returns the key of the campaign whose ledger is at `ledger`; a new one if there is none yet. If a new one cannot be
/// kept, that costs no more than the leases that are out at the next restart, so it is used all the same.
pub(super) fn campaign_key(ledger: &Path) -> CampaignKey {
    let path = ledger.with_file_name(FILE);
    if let Ok((_, bytes)) = read_private(&path, 32)
        && let Ok(bytes) = <[u8; 32]>::try_from(bytes)
    {
        return CampaignKey::from_bytes(bytes);
    }
    let mut bytes = [0; 32];
    if getrandom::fill(&mut bytes).is_err() {
        fastrand::fill(&mut bytes);
    }
    if let Err(error) = write_private(&path, &bytes) {
        tracing::warn!("leases will not outlive this start of the coordinator: {error}");
    }
    CampaignKey::from_bytes(bytes)
}
