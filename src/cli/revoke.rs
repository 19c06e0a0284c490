//! `nqueens revoke`.

use super::coordinator::Data;
use super::report::counted;
use super::{Exit, Failure, note, print};
use crate::cluster::auth::{Name, Revoked};
use crate::cluster::coordinator::now_ms;

/// Revoke the certificates and sessions of a worker, an operator or a viewer: the next call is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    data: Data,
    /// Whose certificate, as nqueens token list shows it.
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
            "token {token}, by which {} enrolled, can be used still; nqueens token revoke ends it",
            args.name
        ));
    }
    Ok(Exit::Done)
}
