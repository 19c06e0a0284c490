//! Compares the claims of the solvers with exhaustive search and the checkers of certificates.

mod first_and_most_beautiful_are_the_known_ones;
mod programs_answer_like_exhaustive_search;
mod solver_claims_are_verified;

mod the_most_beautiful_are_proved;
mod the_simplex_proves_its_answers;
