/*
 * The C interface to nqueens: counts, solutions and proofs of n non-attacking queens.
 * docs/c.md describes it. cbindgen writes this file; do not edit it.
 *
 * - Rows and columns are counted from 1, as on the command line.
 * - Nothing is global. All functions may be called from several threads; one object must not be used
 *   by two threads at a time, except for boards, which never change.
 * - Whoever creates an object frees it with the function of the same prefix. NULL may be freed.
 * - A function that can fail returns NQUEENS_STATUS_OK (0) or the class of its error. If `error` is
 *   not NULL, the text is then in *error, and the caller frees it.
 */

#ifndef NQUEENS_EXACT_H
#define NQUEENS_EXACT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The result of a call: OK, or the class of its error, which is the exit code of the program.
typedef enum nqueens_status {
  // Success.
  NQUEENS_STATUS_OK = 0,
  // The request is wrong.
  NQUEENS_STATUS_USAGE = 2,
  // It is proved that no solution exists.
  NQUEENS_STATUS_NO_SOLUTION = 3,
  // Not proven: a limit ended the search, or it gave up.
  NQUEENS_STATUS_UNPROVEN = 4,
  // A device or a feature is not available.
  NQUEENS_STATUS_NOT_AVAILABLE = 5,
  // A check failed: do not use the result.
  NQUEENS_STATUS_CHECK_FAILED = 6,
  // The bytes cannot be read as a certificate.
  NQUEENS_STATUS_FILE = 7,
  // A callback ended the run.
  NQUEENS_STATUS_INTERRUPTED = 130,
  // An error in this library; please report it.
  NQUEENS_STATUS_INTERNAL = 255,
} nqueens_status;

// A board: a piece, a size and decided squares. It never changes.
typedef struct nqueens_board nqueens_board;

// An error: one line that says what is wrong and what would be right.
typedef struct nqueens_error nqueens_error;

// A proved statement about a first or a most beautiful solution.
typedef struct nqueens_proof nqueens_proof;

// A square. Row 1 is at the top.
typedef struct nqueens_square {
  // The row, from 1.
  uint32_t row;
  // The column, from 1.
  uint32_t col;
} nqueens_square;

// The progress of a run.
typedef struct nqueens_progress {
  // The fraction of the work that is done, from 0 to 1; -1 if it is unknown.
  double fraction;
  // The finished units of a count; the rows or cost levels that a proof has decided.
  uint64_t done;
  // The number of units of a count; 0 if it is unknown.
  uint64_t all;
  // The nodes tried so far; 0 for a count.
  uint64_t nodes;
  // The time since the start in seconds.
  double elapsed_s;
  // The time left in seconds; -1 if it is unknown.
  double left_s;
} nqueens_progress;

// The options of a run. All zero (`nqueens_options options = {0};`) are the defaults.
typedef struct nqueens_options {
  // The number of threads, from 1 to 1024; 0 for one a core.
  uint32_t threads;
  // The devices of a count: auto, cpu, gpu, or ids; NULL for auto.
  const char *device;
  // The time limit of `nqueens_solve`, `nqueens_first` and `nqueens_beautiful` in seconds; 0 for
  // none.
  double time_limit_s;
  // Called about every 20 ms on the calling thread, unless NULL. Returning false ends the run with
  // NQUEENS_STATUS_INTERRUPTED. It must return, without an exception or longjmp.
  bool (*progress)(const struct nqueens_progress *progress, void *context);
  // Passed to `progress`.
  void *context;
} nqueens_options;

// A count: at most 39 decimal digits, and the same number in two halves.
typedef struct nqueens_number {
  // The decimal digits, and a null byte.
  char decimal[40];
  // The lower 64 bits.
  uint64_t low;
  // The upper 64 bits.
  uint64_t high;
} nqueens_number;

// The result of a count.
typedef struct nqueens_count_result {
  // The solutions, or the completions of the decided squares.
  struct nqueens_number solutions;
  // The wall-clock time in seconds.
  double elapsed_s;
  // The threads that counted.
  uint32_t threads;
} nqueens_count_result;

// A callback for solutions: the column in each of n rows, valid until it returns. Returning false
// ends the list. It must return, without an exception or longjmp.
typedef bool (*nqueens_solution_callback)(const uint32_t *columns, size_t n, void *context);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library. The text is static.
const char *nqueens_version(void);

// Returns the text of an error, which lives as long as the error; NULL for NULL.
//
// # Safety
// `error` is NULL or an error that was not freed.
const char *nqueens_error_message(const struct nqueens_error *error);

// Frees an error.
//
// # Safety
// `error` is NULL or an error that was not freed.
void nqueens_error_free(struct nqueens_error *error);

// Creates a board of size `n`, for the piece queen (NULL means that), rook, superqueen or toroidal.
// A placed square holds a piece, and a blocked one stays empty.
//
// # Safety
// Pointers are valid, and arrays have their lengths.
enum nqueens_status nqueens_board_new(const char *piece,
                                      size_t n,
                                      const struct nqueens_square *placed,
                                      size_t placed_length,
                                      const struct nqueens_square *blocked,
                                      size_t blocked_length,
                                      struct nqueens_board **board,
                                      struct nqueens_error **error);

// Frees a board.
//
// # Safety
// `board` is NULL or a board that was not freed.
void nqueens_board_free(struct nqueens_board *board);

// Counts the solutions of a board up to n = 32, or the completions of its decided squares. The
// total of an empty board is compared with the published value.
//
// # Safety
// Pointers are valid; `run` may be NULL.
enum nqueens_status nqueens_count(const struct nqueens_board *board,
                                  const struct nqueens_options *run,
                                  struct nqueens_count_result *result,
                                  struct nqueens_error **error);

// Finds one solution, and writes the column of the piece in each row to `columns`, which has room
// for n numbers.
//
// # Safety
// Pointers are valid; `run` may be NULL.
enum nqueens_status nqueens_solve(const struct nqueens_board *board,
                                  const struct nqueens_options *run,
                                  uint32_t *columns,
                                  struct nqueens_error **error);

// Passes all solutions to `solution` in lexicographic order, until it returns false. `found`, unless
// NULL, receives the number of solutions that were passed.
//
// # Safety
// Pointers are valid; `run` may be NULL.
enum nqueens_status nqueens_solutions(const struct nqueens_board *board,
                                      const struct nqueens_options *run,
                                      nqueens_solution_callback solution,
                                      void *context,
                                      uint64_t *found,
                                      struct nqueens_error **error);

// Finds the lexicographically first solution or completion up to n = 128, and proves it.
//
// # Safety
// Pointers are valid; `run` may be NULL.
enum nqueens_status nqueens_first(const struct nqueens_board *board,
                                  const struct nqueens_options *run,
                                  struct nqueens_proof **proof,
                                  struct nqueens_error **error);

// Finds a most beautiful solution up to n = 250 by the norm euclidean (NULL means that), manhattan
// or chebyshev, of all solutions or of the doubly symmetric ones, and proves it.
//
// # Safety
// Pointers are valid; `run` may be NULL.
enum nqueens_status nqueens_beautiful(size_t n,
                                      const char *norm,
                                      bool symmetric,
                                      const struct nqueens_options *run,
                                      struct nqueens_proof **proof,
                                      struct nqueens_error **error);

// Checks a certificate of `nqueens first` or `nqueens beautiful`, and returns what it proves. Its
// maximum number of steps, each at most a microsecond, is `steps`; 0 means 500 000 000.
//
// # Safety
// Pointers are valid, and the certificate has its length; `run` may be NULL.
enum nqueens_status nqueens_check(const uint8_t *certificate,
                                  size_t length,
                                  uint64_t steps,
                                  const struct nqueens_options *run,
                                  struct nqueens_proof **proof,
                                  struct nqueens_error **error);

// Returns the column in each row of the proved solution; NULL if it is proved that there is none. It
// lives as long as the proof. `n`, unless NULL, receives the number of rows.
//
// # Safety
// `proof` was not freed; `n` is NULL or may be written.
const uint32_t *nqueens_proof_columns(const struct nqueens_proof *proof,
                                      size_t *n);

// Returns the certificate; NULL if there is none. It lives as long as the proof. `length`, unless
// NULL, receives its number of bytes.
//
// # Safety
// `proof` was not freed; `length` is NULL or may be written.
const uint8_t *nqueens_proof_certificate(const struct nqueens_proof *proof, size_t *length);

// Returns the proved statement as a sentence, which lives as long as the proof; NULL for NULL.
//
// # Safety
// `proof` is NULL or was not freed.
const char *nqueens_proof_text(const struct nqueens_proof *proof);

// Frees a proof.
//
// # Safety
// `proof` is NULL or a proof that was not freed.
void nqueens_proof_free(struct nqueens_proof *proof);

// Returns the published value of a sequence at n: an OEIS number, for example A000170, or a piece.
// The status is NQUEENS_STATUS_NOT_AVAILABLE if no value is known here.
//
// # Safety
// Pointers are valid.
enum nqueens_status nqueens_known(const char *sequence,
                                  size_t n,
                                  struct nqueens_number *value,
                                  struct nqueens_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NQUEENS_EXACT_H */
