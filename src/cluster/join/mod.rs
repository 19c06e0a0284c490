//! The page for visitors: whoever opens a link counts units on the GPU of their browser.
//!
//! The page runs the project's own shaders (`shaders/{schedule,expand,search}.wgsl`), unchanged and
//! at WebGPU's default limits. This module is a client of the coordinator, as the dashboard is: it
//! translates what a page sends over HTTP into the calls of workers (`protocol::v1`, service Work),
//! made within the process on behalf of the worker that it has authenticated
//! ([`InProcessWorker`]). So leases, validation, checks, the arbiter, the ledger and the reputation
//! are those of every worker, and so are the coordinator's limits on calls.
//!
//! # Who counts
//! - A **guest** has no credentials. Its network (an IPv4 address, or a /64 of IPv6) is its owner,
//!   under a pseudonym that only this coordinator can compute. `--guests N` admits N guests at a
//!   time, at most four of one network. What guests report is believed only after a check:
//!   [`crate::cluster::campaign`] has the rules.
//! - Whoever has a worker's **token** in the fragment of the link (`#nqt1…`) is a worker of the
//!   token's owner ([`Authority::open_page`]).
//!
//! A page identifies itself by the secret of its session in the header `Authorization`. There are
//! no cookies, so no other page can make a browser use a session. A guest's secret is a message
//! authentication code over its name, its network and the day: nothing is stored, and it survives a
//! restart of the coordinator. A worker's session is in the registry.
//!
//! # The path of a unit
//! | request | content |
//! |---|---|
//! | `GET /`, `/join.js` and its modules, `/shaders/NAME.wgsl` | the page |
//! | `GET /api/campaign` | what is being counted, and how far |
//! | `POST /api/session` | opens a session, with a token or as a guest |
//! | `POST /api/sync` | the leases that the page holds, and whether it wants more; the answer has those that it is to hold |
//! | `POST /api/tables` | the rows of the lease's job, as the shaders read them |
//! | `POST /api/unit` | the batches of a unit of a lease: prefixes and segments |
//! | `POST /api/result` | the counters and slots of the batches; the answer has the verdict |
//! | `POST /api/fail` | the page cannot count a unit |
//! | `POST /api/leave` | the page is closed: its leases end |
//! | `GET /api/benchmark/N` | an empty board for the benchmark |
//!
//! Everything that a page needs of a unit is computed here: its prefixes take 24 bytes each
//! ([`RemoteBatches`]). The alternative, the decomposition compiled to WebAssembly, would send less
//! but needs a second build, and an answer for pages without it; `benches/diary.md` has the
//! figures. The page returns raw counters and slots. Their accounting is checked here, and
//! everything else is checked by the coordinator.
//!
//! # Limits
//! | of | limit |
//! |---|---|
//! | connections | 1,024 from other machines, 16 of one network, and 1,024 of this machine |
//! | sessions opened by a network | 10 at once, then 10 per minute |
//! | guests | N at a time, 4 of one network; N new ones at once, then one every 5 s |
//! | calls of a page | 100 at once, then 20 per second |
//! | units in hand | 2 in a lease of a guest, 8 of a network; 200 leases of a worker |
//! | body of a request | 128 KiB; 1 MiB for results |
//! | time of a request | 10 s |
//! | units prepared at the same time | 1 |
//!
//! Without a page nothing of this runs. The listener requires TLS with the coordinator's
//! certificate, except on loopback, where a reverse proxy with a public certificate may serve it
//! (`--join-url`).
//!
//! [`Authority::open_page`]: crate::cluster::auth::Authority::open_page
//! [`InProcessWorker`]: crate::cluster::auth::InProcessWorker
//! [`RemoteBatches`]: crate::kernel::gpu::RemoteBatches

mod benchmark;
mod campaign;
mod files;
mod guards;
mod limits;
mod messages;
mod pages;
mod public_url;
mod routes;
mod serve;
mod sessions;
mod units;

pub use crate::cluster::net::Bound;
pub use public_url::{PublicUrl, PublicUrlError};
pub use serve::{JoinOptions, serve};
