//! The program as its users run it, its documents, and the layers of its source.

#[path = "../support/mod.rs"]
mod support;

mod answers_on_the_command_line;
mod both_checkers_agree;
mod certificates_are_believed_only_if_they_prove;
mod command_line;
mod documentation_can_be_followed;
mod flags_come_from_files_and_variables;
mod imports_run_downward_only;
mod optimisation_on_the_command_line;
mod records_hold;
mod the_terminal_is_given_back;
mod worker_command_line;
