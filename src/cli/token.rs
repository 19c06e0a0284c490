//! `nqueens token`.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;

use super::args::parse_duration;
use super::coordinator::Data;
use super::{Exit, Failure, json_line, print, print_report};
use crate::cluster::auth::{
    AuthorityError, CertificateEntry, Name, Owner, Role, SessionEntry, TokenEntry, TokenId,
};
use crate::cluster::coordinator::now_ms;
use crate::report::{counted, predicted};

/// Create, list or revoke the tokens with which workers and users enrol.
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

/// Create a token and print it.
///
/// It is printed only once: the coordinator stores only its hash.
#[derive(Debug, clap::Args)]
struct CreateArgs {
    #[command(flatten)]
    data: Data,
    /// The role of the holder: worker, operator or viewer.
    #[arg(long, default_value = "worker")]
    role: Role,
    /// The number of certificates that can be obtained with the token.
    #[arg(long, value_name = "K", default_value = "1", value_parser = uses, allow_negative_numbers = true)]
    uses: NonZeroU32,
    /// The time for which the token is valid: a number and s, m, h or d.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_duration, allow_negative_numbers = true)]
    expires: Duration,
    /// The owner of the workers that enrol with the token (default: a separate owner for each
    /// token). Checks are made across owners, so all workers of one person should have one owner.
    #[arg(long, value_name = "NAME")]
    owner: Option<Name>,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// List the tokens, without their secrets, and the holders of certificates.
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    data: Data,
    /// Print the result as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Revoke a token.
///
/// Certificates that were obtained with it stay valid; nqueens revoke revokes them.
#[derive(Debug, clap::Args)]
struct RevokeArgs {
    #[command(flatten)]
    data: Data,
    /// The id of the token, as nqueens token list shows it.
    id: TokenId,
}

fn uses(text: &str) -> Result<NonZeroU32, String> {
    const MOST: u32 = 1_000_000;
    let uses = text.parse().ok().filter(|uses: &NonZeroU32| uses.get() <= MOST);
    uses.ok_or_else(|| {
        format!("invalid number of uses '{text}'; use a whole number from 1 to {MOST}")
    })
}

/// The output of `create --json`.
#[derive(Debug, Serialize)]
struct Created {
    token: String,
    id: String,
    role: Role,
    owner: String,
    uses: u32,
    expires_in_s: u64,
}

/// The output of `list --json`.
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
    let created = Created {
        token: token.to_string(),
        id: token.id().to_string(),
        role: args.role,
        owner: Owner::of(owner, token.id()).into(),
        uses: args.uses.get(),
        expires_in_s: args.expires.as_secs(),
    };
    // The text is only the token, for use in scripts.
    print_report(args.json, &created, || format!("{token}\n"))?;
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
        print(&json_line(&listed))?;
    } else {
        print(&text(&tokens, &certificates, &sessions, now_ms))?;
    }
    Ok(Exit::Done)
}

fn seconds_until(end_ms: u64, now_ms: u64) -> f64 {
    (end_ms as f64 - now_ms as f64) / 1000.0
}

/// Formats a time of expiry: "expires in 59 min" or "expired".
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
        format!("  {id:<19} {role:<9} {uses_left} of {uses} uses left, {expiry}, owner {owner}")
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
