//! `nqueens revoke`.

use super::coordinator::Data;
use super::{Exit, Failure, note, print};
use crate::cluster::auth::{Name, Revoked};
use crate::cluster::coordinator::now_ms;
use crate::report::counted;

/// Revoke the certificates and sessions of a worker, an operator or a viewer.
///
/// Takes effect at the holder's next call.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    data: Data,
    /// The name of the holder, as nqueens token list shows it.
    name: Name,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let Revoked { certificates, sessions, tokens } =
        args.data.authority()?.revoke(&args.name, now_ms())?;
    let ended: Vec<String> = [(certificates, "certificate"), (sessions, "session")]
        .into_iter()
        .filter(|&(number, _)| number > 0)
        .map(|(number, word)| counted(number as u128, word))
        .collect();
    print(&format!("{} of {} revoked\n", ended.join(" and "), args.name))?;
    for token in tokens {
        note(&format!(
            "token {token}, with which {} enrolled, is still valid; revoke it with nqueens token revoke",
            args.name
        ));
    }
    Ok(Exit::Done)
}
