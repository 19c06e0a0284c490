/* Counts a board, lists solutions, and proves the first one. Its exit code is that of the first
 * error. docs/c.md says how to compile it. */
#include "nqueens.h"

#include <stdio.h>

static bool show(const uint32_t *columns, size_t n, void *context) {
    int *left = context;
    for (size_t row = 0; row < n; row++) {
        printf("%s%u", row == 0 ? "solution " : " ", columns[row]);
    }
    printf("\n");
    return --*left > 0;
}

static int failed(nqueens_status status, nqueens_error *error) {
    fprintf(stderr, "queens: %s\n", nqueens_error_message(error));
    nqueens_error_free(error);
    return status;
}

int main(void) {
    nqueens_options options = {.threads = 2, .device = "cpu"};
    nqueens_square placed = {1, 1};
    nqueens_error *error = NULL;
    nqueens_board *board = NULL;
    nqueens_count_result result;
    nqueens_proof *proof = NULL;
    int left = 2;

    nqueens_status status = nqueens_board_new("queen", 8, &placed, 1, NULL, 0, &board, &error);
    if (status == NQUEENS_STATUS_OK) status = nqueens_count(board, &options, &result, &error);
    if (status != NQUEENS_STATUS_OK) return failed(status, error);
    printf("count %s = %llu\n", result.solutions.decimal, (unsigned long long)result.solutions.low);

    status = nqueens_solutions(board, &options, show, &left, NULL, &error);
    if (status == NQUEENS_STATUS_OK) status = nqueens_first(board, &options, &proof, &error);
    if (status != NQUEENS_STATUS_OK) return failed(status, error);
    printf("first in row 8: %u\n", nqueens_proof_columns(proof, NULL)[7]);

    nqueens_proof_free(proof);
    nqueens_board_free(board);
    return 0;
}
