//! Tests of the program as its users run it, of its documentation, and of the layers of its source.

#[path = "../support/mod.rs"]
mod support;

mod another_checker_agrees;
mod answers_explain_themselves_on_a_terminal;
mod audit_command_line;
mod bench_command_line;
mod boards_are_read_from_files;
mod both_checkers_agree;
mod command_line;
mod documentation_is_consistent;
mod documented_outputs_are_current;
mod estimate_command_line;
mod fingerprint_command_line;
mod flags_are_read_from_files_and_variables;
mod interrupted_counts_keep_their_units;
mod modules_import_only_from_lower_layers;
mod only_valid_certificates_are_accepted;
mod optimisation_command_line;
#[cfg(feature = "object-store")]
mod parts_are_kept_in_object_storage;
mod records_are_correct;
mod reproduce_command_line;
mod show_command_line;
mod signed_parts_can_be_published;
mod solution_command_line;
mod terminal;
mod top_restores_the_terminal;
mod trace_command_line;
mod typed_commands;
mod verify_command_line;
mod veripb_checks_translated_certificates;
mod worker_command_line;
