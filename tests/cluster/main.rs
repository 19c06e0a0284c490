//! Campaigns: simulated, and with real processes, networks and attackers.

#[path = "../simulation/mod.rs"]
mod simulation;
#[path = "../support/mod.rs"]
mod support;

mod campaign_ledger_survives_crashes;
mod campaigns_never_lose_or_double_count;
mod campaigns_survive_everything;
mod clocks_may_be_set_back;
mod coordinators_keep_their_promises;
mod dashboards_let_in_only_whom_they_know;
mod disputed_totals_are_told;
mod everybody_counts;
mod formats_stay_readable;
mod hostile_workers_force_no_total;
mod liars_change_no_total;
mod notifications_are_sent;
mod only_the_coordinator_is_trusted;
mod proofs_are_found_together;
mod strangers_keep_nobody_out;
mod workers_follow_their_leases;
mod workers_keep_their_results;
mod wrong_credentials_get_nothing;
