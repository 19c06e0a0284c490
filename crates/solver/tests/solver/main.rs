//! Compares the claims of the solvers with exhaustive search and the checkers of certificates.

mod first_and_most_beautiful_equal_the_known_values;
mod integer_programs_agree_with_exhaustive_search;
mod most_beautiful_solutions_are_proved;
mod simplex_results_are_proved;
mod solver_claims_are_verified;
mod support;
