//! The dashboard: one page for browsers that shows what a coordinator does, and lets operators steer it.
//!
//! It knows a coordinator by the calls of the protocol only (`protocol::v1`, service Operations), made within the process, and
//! vouches for whoever makes them ([`crate::cluster::auth::InProcessCaller`]); the coordinator asks again whether that role may.
//!
//! | route | for | what it is |
//! |---|---|---|
//! | `GET /sign-in`, `/sign-in/known`, scripts and style | everybody | the page that takes a token; whether there is a session |
//! | `POST /sign-in` | everybody, a few times a minute | buys a session with a token |
//! | `GET /`, `/app.js` | viewers | the page; without a session the first leads to the sign-in page |
//! | `GET /api/live` | viewers | server-sent events: all there is, then what changes, at most once a second |
//! | `GET /api/me` | viewers | who they are |
//! | `GET /api/jobs/JOB` | viewers | the report of a job, as `nqueens status --json` has it |
//! | `GET /api/jobs/JOB/map/VERSION` | viewers | the map of its units, empty if VERSION is the newest |
//! | `GET /api/jobs/JOB/history/MS` | viewers | how far it was after a time |
//! | `GET /api/jobs/JOB/certificate` | viewers | the certificate of a finished proof, as a file |
//! | `POST /api/jobs/JOB/pause`, `resume`, `cancel` | operators | |
//! | `POST /api/workers/NAME/drain`, `release` | operators | |
//! | `POST /sign-out` | viewers | ends the session |
//!
//! # What a browser is held to
//! - Where the coordinator has an authority, TLS 1.3 with that authority, and a session for everything but the sign-in page. A
//!   session is a cookie (`__Host-`, HttpOnly, Secure, SameSite=Strict) that a one-use token bought; the register knows its hash.
//!   Where there is none, everybody on this machine may do everything already, and the dashboard is served on loopback only.
//! - The Host must be an address, `localhost` or a name of the coordinator, so no name of a stranger's can be bound to it.
//! - What changes anything is a POST of JSON that the browser itself says comes from this origin.
//! - An address has 32 connections, a session 8 streams and 2 certificates on their way, a request ends within 10 s, and whoever takes nothing of an answer
//!   for 15 s loses the connection.
//! - The page's policy allows scripts, styles and connections of this origin alone, and nothing inline. All that workers say of
//!   themselves becomes text nodes.

mod authenticator;
mod live;
mod model;
mod replies;
mod routes;
mod serve;

pub use serve::{AuthMode, Bound, serve};

use serde_json::Value;

use crate::cluster::protocol::v1::{JobStatus, ProofStatus};

/// How jobs are told, at a time in ms since 1970: the reports that the command line prints.
#[derive(Clone, Copy, Debug)]
pub struct Reports {
    /// Of a count.
    pub job: fn(JobStatus, u64) -> Value,
    /// Of a proof.
    pub proof: fn(ProofStatus, u64) -> Value,
}
