//! `nqueens token`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::coordinator::Data;
use super::report::{counted, predicted};
use super::{Exit, Failure, print};
use crate::cluster::auth::{
    AuthorityError, CertificateEntry, Name, Owner, Role, SessionEntry, TokenEntry, TokenId,
};
use crate::cluster::coordinator::now_ms;

/// Create, list and revoke tokens, by which workers and people enrol with a coordinator.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Print a new token. It is shown this once; the coordinator keeps a hash of it only.
#[derive(Debug, clap::Args)]
struct CreateArgs {
    #[command(flatten)]
    data: Data,
    /// What its holder becomes: worker, operator or viewer.
    #[arg(long, default_value = "worker")]
    role: Role,
    /// How many certificates it buys.
    #[arg(long, value_name = "K", default_value = "1", value_parser = uses, allow_negative_numbers = true)]
    uses: NonZeroU32,
    /// How long it can be used: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = time, allow_negative_numbers = true)]
    expires: Duration,
    /// Who stands behind what it buys: tokens of one owner join their holders into one. Without it each token is an owner
    /// of its own.
    #[arg(long, value_name = "NAME")]
    owner: Option<Name>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Show the tokens that there are, without their secrets, and who holds certificates.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    data: Data,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// End a token. Certificates that it has bought stay; nqueens revoke ends them.
#[derive(Debug, clap::Args)]
struct RevokeArgs {
    #[command(flatten)]
    data: Data,
    /// The token's id, as the list has it.
    id: TokenId,
}

fn uses(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u32 = 1_000_000;
    let uses = text.parse().ok().filter(|uses: &NonZeroU32| uses.get() <= MOST);
    uses.ok_or_else(|| {
        format!("'{text}' is not a number of uses; write a whole number from 1 to {MOST}")
    })
}

/// "90s", "30m", "1h", "7d": a second to a year.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    const MOST_S: u64 = 366 * 86_400;
    let parsed = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => return None,
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let seconds = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(unit)?;
        (1..=MOST_S).contains(&seconds).then(|| Duration::from_secs(seconds))
    };
    let wrong = || {
        format!(
            "'{text}' is not a time; write a number and s, m, h or d, at most 366d, for example 1h"
        )
    };
    parsed().ok_or_else(wrong)
}

/// What `create --json` prints.
#[derive(Debug, Serialize)]
struct Created {
    token: String,
    id: String,
    role: Role,
    owner: String,
    uses: u32,
    expires_in_s: u64,
}

/// What `list --json` prints.
#[derive(Debug, Serialize)]
struct Listed {
    tokens: Vec<ListedToken>,
    certificates: Vec<ListedCertificate>,
    sessions: Vec<ListedSession>,
}

#[derive(Debug, Serialize)]
struct ListedToken {
    id: String,
    role: Role,
    owner: String,
    uses: u32,
    uses_left: u32,
    /// Negative if it has expired.
    expires_in_s: f64,
}

#[derive(Debug, Serialize)]
struct ListedCertificate {
    name: String,
    role: Role,
    owner: String,
    serial: String,
    revoked: bool,
    /// Negative if it has expired.
    expires_in_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

#[derive(Debug, Serialize)]
struct ListedSession {
    name: String,
    role: Role,
    revoked: bool,
    /// Negative if it has expired.
    expires_in_s: f64,
    token: String,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(args) => list(args),
        Command::Revoke(args) => {
            args.data.authority()?.revoke_token(args.id, now_ms())?;
            print(&format!("token {} revoked\n", args.id))?;
            Ok(Exit::Done)
        }
    }
}

fn create(args: &CreateArgs) -> Result<Exit, Failure> {
    let authority = args.data.authority()?;
    let life_ms = args.expires.as_secs() * 1000;
    let owner = args.owner.as_ref();
    let token = authority.create_token_for(owner, args.role, args.uses, life_ms, now_ms())?;
    // The token alone, so that a script can take it as it is.
    let text = if args.json {
        let created = Created {
            token: token.to_string(),
            id: token.id().to_string(),
            role: args.role,
            owner: Owner::of(owner, token.id()).into(),
            uses: args.uses.get(),
            expires_in_s: args.expires.as_secs(),
        };
        serde_json::to_string(&created).expect("numbers and strings serialise")
    } else {
        token.to_string()
    };
    print(&(text + "\n"))?;
    Ok(Exit::Done)
}

fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let authority = args.data.authority()?;
    let tokens = authority.tokens().map_err(AuthorityError::Registry)?;
    let mut certificates = authority.certificates().map_err(AuthorityError::Registry)?;
    certificates.sort_by(|a, b| (&a.name, a.not_after_ms).cmp(&(&b.name, b.not_after_ms)));
    let mut sessions = authority.sessions().map_err(AuthorityError::Registry)?;
    sessions.sort_by(|a, b| (&a.name, a.not_after_ms).cmp(&(&b.name, b.not_after_ms)));
    let now_ms = now_ms();
    if args.json {
        let tokens = tokens.iter().map(|(id, token)| ListedToken {
            id: id.to_string(),
            role: token.role,
            owner: token.owner(*id).into(),
            uses: token.uses,
            uses_left: token.uses_left,
            expires_in_s: seconds_until(token.expires_ms, now_ms),
        });
        let certificates = certificates.iter().map(|certificate| ListedCertificate {
            name: certificate.name.to_string(),
            role: certificate.role,
            owner: certificate.owner().into(),
            serial: certificate.serial.clone(),
            revoked: certificate.revoked_ms.is_some(),
            expires_in_s: seconds_until(certificate.not_after_ms, now_ms),
            token: certificate.token.map(|id| id.to_string()),
        });
        let sessions = sessions.iter().map(|session| ListedSession {
            name: session.name.to_string(),
            role: session.role,
            revoked: session.revoked_ms.is_some(),
            expires_in_s: seconds_until(session.not_after_ms, now_ms),
            token: session.token.to_string(),
        });
        let listed = Listed {
            tokens: tokens.collect(),
            certificates: certificates.collect(),
            sessions: sessions.collect(),
        };
        print(&(serde_json::to_string(&listed).expect("numbers and strings serialise") + "\n"))?;
    } else {
        print(&text(&tokens, &certificates, &sessions, now_ms))?;
    }
    Ok(Exit::Done)
}

fn seconds_until(end_ms: u64, now_ms: u64) -> f64 {
    (end_ms as f64 - now_ms as f64) / 1000.0
}

/// "expires in 59 min" or "expired".
fn expiry(end_ms: u64, now_ms: u64) -> String {
    let left = seconds_until(end_ms, now_ms);
    if left > 0.0 {
        format!("expires in {}", predicted(Duration::from_secs_f64(left)))
    } else {
        "expired".into()
    }
}

fn text(
    tokens: &[(TokenId, TokenEntry)],
    certificates: &[CertificateEntry],
    sessions: &[SessionEntry],
    now_ms: u64,
) -> String {
    let mut lines = vec![counted(tokens.len() as u128, "token")];
    lines.extend(tokens.iter().map(|(id, token)| {
        let TokenEntry { role, uses, uses_left, .. } = token;
        let (expiry, owner) = (expiry(token.expires_ms, now_ms), token.owner(*id));
        format!("  {id:<19} {role:<9} {uses_left} of {uses} left, {expiry}, owner {owner}")
    }));
    let held = |name: &Name, role: Role, revoked_ms: Option<u64>, not_after_ms: u64| {
        let state =
            if revoked_ms.is_some() { "revoked".into() } else { expiry(not_after_ms, now_ms) };
        format!("  {name:<19} {role:<9} {state}")
    };
    lines.push(counted(certificates.len() as u128, "certificate"));
    lines.extend(certificates.iter().map(|c| {
        let held = held(&c.name, c.role, c.revoked_ms, c.not_after_ms);
        format!("{held}, owner {}", c.owner())
    }));
    if !sessions.is_empty() {
        lines.push(counted(sessions.len() as u128, "session"));
        lines.extend(sessions.iter().map(|s| held(&s.name, s.role, s.revoked_ms, s.not_after_ms)));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_number_and_a_unit() {
        for (text, seconds) in
            [("1s", 1), ("30m", 1800), ("1h", 3600), ("7d", 604_800), ("366d", 31_622_400)]
        {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "1",
            "h",
            "0h",
            "-1h",
            "+1h",
            "1.5h",
            "367d",
            "1w",
            "1 h",
            "1é",
            "99999999999999999999d",
        ] {
            let error = time(text).expect_err(text);
            assert!(error.lines().count() == 1 && error.contains("for example 1h"), "{error}");
        }
    }
}
