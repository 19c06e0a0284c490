//! Tests of campaigns: simulated, and with real processes, networks and attackers.

#[path = "../faults/mod.rs"]
mod faults;
#[path = "../support/page.rs"]
mod page;
#[path = "../simulation/mod.rs"]
mod simulation;
#[path = "../support/mod.rs"]
mod support;

mod anonymous_connections_block_no_one;
mod campaign_ledger_survives_crashes;
mod campaigns_count_column_sets;
mod campaigns_never_lose_or_double_count;
mod campaigns_survive_process_and_network_faults;
mod certificates_survive_clock_changes;
mod coordinators_are_reliable;
mod dashboards_require_a_session;
mod disputed_totals_are_reported;
mod fake_coordinator;
mod faults_never_change_a_total;
mod formats_stay_readable;
mod hostile_pages_cannot_force_a_total;
mod hostile_workers_cannot_block_a_job;
mod hostile_workers_cannot_force_a_total;
mod invalid_credentials_are_refused;
mod liars_cannot_change_a_total;
mod notifications_are_sent;
mod pages_are_workers;
mod proofs_are_distributed;
mod published_logs_can_be_audited;
mod results_are_signed;
mod tls_authenticates_both_ends;
mod work_is_shared_efficiently;
mod workers_follow_their_leases;
mod workers_keep_their_results;
