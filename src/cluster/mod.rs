//! Counting on many machines: a coordinator leases units to workers over gRPC, validates their
//! results and keeps a ledger.
//!
//! | layer | modules |
//! |---|---|
//! | 0 | `net`: connections of servers: the accept loop, quotas, time limits |
//! | 1 | [`storage`]: maps that are too large for memory, and snapshots |
//! | 3 | [`campaign`]: events, leases, validation, checks, reputation: without clock or network; [`auth`]: certificates, tokens, roles |
//! | 4 | [`ledger`]: the durable record of all events; [`protocol`]: the messages of `proto/` and the channels that carry them |
//! | 5 | [`coordinator`], [`worker`], [`dashboard`], [`join`], [`publish`]: transparency logs of jobs |

pub mod auth;
pub mod campaign;
pub mod coordinator;
pub mod dashboard;
pub mod join;
pub mod ledger;
mod net;
pub mod protocol;
pub mod publish;
pub mod storage;
pub mod worker;
