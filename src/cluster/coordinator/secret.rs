//! The secret of a campaign: 32 random bytes in a private file beside the ledger. With it, a
//! coordinator recognises the leases that it granted before a restart.

use std::io;
use std::path::Path;

use crate::cluster::auth::{read_private, write_private};
use crate::cluster::campaign::CampaignKey;

/// The name of the file in the data directory.
const FILE: &str = "campaign.key";

/// Returns the key of the campaign whose ledger is at `ledger`, or a new one if no key exists.
/// A new key that cannot be saved is used all the same: this costs only the leases that are
/// outstanding at the next restart.
///
/// # Errors
/// The system has no random bytes. Anything less random would let workers forge leases.
pub(super) fn campaign_key(ledger: &Path) -> io::Result<CampaignKey> {
    let path = ledger.with_file_name(FILE);
    if let Ok((_, bytes)) = read_private(&path, 32)
        && let Ok(bytes) = <[u8; 32]>::try_from(bytes)
    {
        return Ok(CampaignKey::from_bytes(bytes));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    if let Err(error) = write_private(&path, &bytes) {
        tracing::warn!(
            "the campaign key cannot be saved, so leases will not survive a restart: {error}"
        );
    }
    Ok(CampaignKey::from_bytes(bytes))
}
