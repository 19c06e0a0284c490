//! The dashboard: a web page that shows what a coordinator does, and with which operators control
//! it.
//!
//! It uses a coordinator only through the calls of the protocol (`protocol::v1`, service
//! Operations), made within the process, and attaches the authenticated user to each call
//! ([`crate::cluster::auth::InProcessCaller`]); the coordinator checks the role's permission again.
//!
//! | route | for | content |
//! |---|---|---|
//! | `GET /sign-in`, `/sign-in/known`, scripts and style | all | the sign-in page; whether there is a session |
//! | `POST /sign-in` | all, a few times a minute | redeems a token for a session |
//! | `GET /play/` and its files | all | the page to play with, if its folder was given |
//! | `GET /`, `/app.js` and its modules | viewers | the page; without a session the first redirects to the sign-in page |
//! | `GET /api/live` | viewers | server-sent events: the whole state, then changes, at most once a second |
//! | `GET /api/me` | viewers | the user's name and role |
//! | `GET /api/jobs/JOB` | viewers | the report of a job, as in `nqueens status --json` |
//! | `GET /api/jobs/JOB/map/VERSION` | viewers | the map of its units, empty if VERSION is the newest |
//! | `GET /api/jobs/JOB/history/MS` | viewers | its progress after a time |
//! | `GET /api/jobs/JOB/certificate` | viewers | the certificate of a finished proof, as a file |
//! | `POST /api/jobs/JOB/pause`, `resume`, `cancel` | operators | |
//! | `POST /api/workers/NAME/drain`, `release` | operators | |
//! | `POST /sign-out` | viewers | ends the session |
//!
//! # Security
//! - If the coordinator has an authority, the dashboard requires TLS 1.3 with a certificate of that
//!   authority, and a session for everything but the sign-in page. A session is a cookie
//!   (`__Host-`, HttpOnly, Secure, SameSite=Strict) that was obtained with a token; the registry
//!   stores its hash. Without an authority, every user of this machine has full access anyway, and
//!   the dashboard is served on loopback only.
//! - The Host must be an IP address, `localhost` or a name of the coordinator, which prevents DNS
//!   rebinding.
//! - Every change is a POST of JSON that the browser itself reports to come from this origin.
//! - An address has at most 32 connections, and a session 8 streams and 2 certificate downloads. A
//!   response starts within 10 s of its request, and a client that reads nothing of a response for
//!   15 s is disconnected.
//! - The content security policy allows only scripts, styles and connections of this origin, and
//!   nothing inline; the page to play with may also compile WebAssembly. All texts from workers become text nodes.

mod authenticator;
mod live;
mod model;
mod play;
mod routes;
mod serve;

pub use crate::cluster::net::Bound;
pub use play::{PlayFiles, PlayFilesError};
pub use serve::{AuthMode, serve};
