//! Tests of the checkers through their public interface, and of the program `nqueens-check`.

mod changed_certificates_prove_nothing_false;
mod mutations;
mod nqueens_check_accepts_what_the_library_accepts;
