//! The functions of the C interface: the only `unsafe` code of the package.
//!
//! Every function checks its pointers for null, copies what it keeps, and catches panics. What a
//! caller must guarantee beyond that is the same everywhere: a pointer that is not null points to
//! what its type says, a length is that of the array before it, and an object was not freed.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use std::{ptr, slice};

use nqueens::proof::MOST_WORK;
use nqueens_bindings::{self as bindings, Failure, FailureClass, Method, SolveOptions, Squares};

use crate::types::{
    Board, Callback, CountResult, Error, Number, Options, Proof, SolutionCallback, Square, Status,
    columns_of, is_null,
};

/// Runs the body of a function. Returns the status, and the error through `error` if it is not null.
///
/// # Safety
/// `error` is null or may be written.
unsafe fn guard(error: *mut *mut Error, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    let (status, message) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => (Status::Ok, None),
        Ok(Err(failure)) => (failure.class.into(), Some(failure.message)),
        Err(_) => {
            let message = "internal error: a thread panicked; please report this";
            (Status::Internal, Some(message.to_owned()))
        }
    };
    if !error.is_null() {
        let object = message.map(|message| Box::into_raw(Box::new(Error::new(&message))));
        // SAFETY: The caller guarantees that it may be written.
        unsafe { error.write(object.unwrap_or(ptr::null_mut())) };
    }
    status
}

/// Returns the object behind a required pointer.
///
/// # Safety
/// `pointer` is null or points to a `T` that lives long enough.
unsafe fn required<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: The caller guarantees it.
    unsafe { pointer.as_ref() }.ok_or_else(|| is_null(name))
}

/// Returns the place behind a required pointer to a result.
///
/// # Safety
/// `pointer` is null or may be written.
unsafe fn write<T>(pointer: *mut T, value: T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: The caller guarantees that it may be written.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Writes a new object through a required pointer to a pointer.
///
/// # Safety
/// `pointer` is null or may be written.
unsafe fn write_new<T>(pointer: *mut *mut T, object: T, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(is_null(name));
    }
    // SAFETY: The caller guarantees that it may be written.
    unsafe { pointer.write(Box::into_raw(Box::new(object))) };
    Ok(())
}

/// Frees an object that a function of this interface has created; does nothing for null.
///
/// # Safety
/// `object` is null, or was created by [`write_new`] or [`guard`] and not freed.
unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: It was created by `Box::into_raw`, and the caller guarantees the rest.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// Returns the elements of an array, which may be null if it is empty.
///
/// # Safety
/// `pointer` is null or points to `length` elements that live long enough.
unsafe fn array<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T], Failure> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(is_null(name)),
        // SAFETY: The caller guarantees it.
        (false, _) => Ok(unsafe { slice::from_raw_parts(pointer, length) }),
    }
}

/// Returns a text, or `default` for null.
///
/// # Safety
/// `pointer` is null or points to a text that ends with a null byte and lives long enough.
unsafe fn text(pointer: *const c_char, default: &str) -> Result<&str, Failure> {
    if pointer.is_null() {
        return Ok(default);
    }
    // SAFETY: The caller guarantees it.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map_err(|_| Failure::usage("a text is not valid UTF-8"))
}

/// The options of a run, read.
struct RunOptions<'a> {
    device: &'a str,
    threads: Option<std::num::NonZeroUsize>,
    time_limit: Option<Duration>,
    callback: Callback,
}

/// Reads the options; null means the defaults.
///
/// # Safety
/// `options` is null or points to options whose device is null or a text.
unsafe fn options<'a>(options: *const Options) -> Result<RunOptions<'a>, Failure> {
    // SAFETY: The caller guarantees it.
    let Some(options) = (unsafe { options.as_ref() }) else {
        let callback = Callback { progress: None, context: ptr::null_mut() };
        return Ok(RunOptions { device: "auto", threads: None, time_limit: None, callback });
    };
    let Options { threads, device, time_limit_s, progress, context } = *options;
    let threads = (threads > 0).then(|| bindings::threads(&threads.to_string())).transpose()?;
    let time_limit = Duration::try_from_secs_f64(time_limit_s).map_err(|_| {
        Failure::usage(format!(
            "invalid time '{time_limit_s}'; use a number of seconds, at least 0"
        ))
    })?;
    let time_limit = Some(time_limit).filter(|limit| !limit.is_zero());
    // SAFETY: The caller guarantees it.
    let device = unsafe { text(device, "auto") }?;
    Ok(RunOptions { device, threads, time_limit, callback: Callback { progress, context } })
}

/// Returns the version of the library. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn nqueens_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the text of an error, which lives as long as the error; NULL for NULL.
///
/// # Safety
/// `error` is NULL or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_error_message(error: *const Error) -> *const c_char {
    // SAFETY: The caller guarantees it.
    unsafe { error.as_ref() }.map_or(ptr::null(), |error| error.message.as_ptr())
}

/// Frees an error.
///
/// # Safety
/// `error` is NULL or an error that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_error_free(error: *mut Error) {
    // SAFETY: The caller guarantees it.
    unsafe { free(error) }
}

/// Creates a board of size `n`, for the piece queen (NULL means that), rook, superqueen or toroidal.
/// A placed square holds a piece, and a blocked one stays empty.
///
/// # Safety
/// Pointers are valid, and arrays have their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_board_new(
    piece: *const c_char,
    n: usize,
    placed: *const Square,
    placed_length: usize,
    blocked: *const Square,
    blocked_length: usize,
    board: *mut *mut Board,
    error: *mut *mut Error,
) -> Status {
    let numbers = |squares: &[Square]| -> Vec<(usize, usize)> {
        squares.iter().map(|square| (square.row as usize, square.col as usize)).collect()
    };
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (piece, placed, blocked) = unsafe {
            (
                text(piece, "queen")?,
                array(placed, placed_length, "placed")?,
                array(blocked, blocked_length, "blocked")?,
            )
        };
        let n = bindings::size(&n.to_string(), bindings::LARGEST_SIZE)?;
        let (placed, blocked) = (numbers(placed), numbers(blocked));
        let (placed, blocked) = (Squares::Numbers(&placed), Squares::Numbers(&blocked));
        let problem = bindings::board(bindings::piece(piece)?, n, &placed, &blocked)?;
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write_new(board, Board { problem }, "board") }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Frees a board.
///
/// # Safety
/// `board` is NULL or a board that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_board_free(board: *mut Board) {
    // SAFETY: The caller guarantees it.
    unsafe { free(board) }
}

/// Counts the solutions of a board up to n = 32, or the completions of its decided squares. The
/// total of an empty board is compared with the published value.
///
/// # Safety
/// Pointers are valid; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_count(
    board: *const Board,
    run: *const Options,
    result: *mut CountResult,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (board, mut run) = unsafe { (required(board, "board")?, options(run)?) };
        let count_options = bindings::count_options(run.device, run.threads)?;
        let outcome = bindings::count(&board.problem, &count_options, &mut run.callback)?;
        let found = CountResult {
            solutions: Number::from(outcome.solutions),
            elapsed_s: outcome.elapsed.as_secs_f64(),
            threads: u32::try_from(outcome.threads).unwrap_or(u32::MAX),
        };
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write(result, found, "result") }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Finds one solution, and writes the column of the piece in each row to `columns`, which has room
/// for n numbers.
///
/// # Safety
/// Pointers are valid; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_solve(
    board: *const Board,
    run: *const Options,
    columns: *mut u32,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (board, mut run) = unsafe { (required(board, "board")?, options(run)?) };
        if columns.is_null() {
            return Err(is_null("columns"));
        }
        let request = SolveOptions { time_limit: run.time_limit, ..SolveOptions::default() };
        let found = bindings::solve(&board.problem, &request, &mut run.callback)?;
        for (row, column) in columns_of(&found).enumerate() {
            // SAFETY: The caller guarantees room for n numbers, and there are n rows.
            unsafe { columns.add(row).write(column) };
        }
        Ok(())
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Passes all solutions to `solution` in lexicographic order, until it returns false. `found`, unless
/// NULL, receives the number of solutions that were passed.
///
/// # Safety
/// Pointers are valid; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_solutions(
    board: *const Board,
    run: *const Options,
    solution: SolutionCallback,
    context: *mut c_void,
    found: *mut u64,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (board, mut run) = unsafe { (required(board, "board")?, options(run)?) };
        let solution = solution.ok_or_else(|| is_null("solution"))?;
        let (mut columns, mut passed) = (Vec::new(), 0);
        let method = Method::for_listing("backtracking")?;
        let listed =
            bindings::list(&board.problem, (method, false), &mut run.callback, &mut |placement| {
                columns.clear();
                columns.extend(columns_of(placement));
                passed += 1;
                if solution(columns.as_ptr(), columns.len(), context) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
        if !found.is_null() {
            // SAFETY: The caller guarantees that it may be written.
            unsafe { found.write(passed) };
        }
        listed.map(drop)
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Finds the lexicographically first solution or completion up to n = 128, and proves it.
///
/// # Safety
/// Pointers are valid; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_first(
    board: *const Board,
    run: *const Options,
    proof: *mut *mut Proof,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (board, mut run) = unsafe { (required(board, "board")?, options(run)?) };
        let (threads, limit) = (run.threads, run.time_limit);
        let found = bindings::first(&board.problem, threads, limit, &mut run.callback)?;
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write_proof(proof, found) }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Finds a most beautiful solution up to n = 250 by the norm euclidean (NULL means that), manhattan
/// or chebyshev, of all solutions or of the doubly symmetric ones, and proves it.
///
/// # Safety
/// Pointers are valid; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_beautiful(
    n: usize,
    norm: *const c_char,
    symmetric: bool,
    run: *const Options,
    proof: *mut *mut Proof,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (norm, mut run) = unsafe { (text(norm, "euclidean")?, options(run)?) };
        let query = (n, bindings::norm(norm)?, symmetric);
        let found = bindings::beautiful(query, run.threads, run.time_limit, &mut run.callback)?;
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write_proof(proof, found) }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// # Safety
/// `proof` is null or may be written.
unsafe fn write_proof(proof: *mut *mut Proof, found: bindings::Proof) -> Result<(), Failure> {
    if proof.is_null() {
        return Err(is_null("proof"));
    }
    // The checker states what is proved. Completions have no certificate.
    let text = match &found.certificate {
        Some(certificate) => {
            bindings::check(certificate, None, &mut bindings::Unobserved)?.to_string()
        }
        None => "proved without a certificate".to_owned(),
    };
    let columns = found.solution.map(|found| found.columns().flatten().collect());
    // SAFETY: The caller guarantees that it may be written.
    unsafe { write_new(proof, Proof::new(columns, found.certificate, &text), "proof") }
}

/// Checks a certificate of `nqueens first` or `nqueens beautiful`, and returns what it proves. Its
/// maximum number of steps, each at most a microsecond, is `steps`; 0 means 500 000 000.
///
/// # Safety
/// Pointers are valid, and the certificate has its length; `run` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_check(
    certificate: *const u8,
    length: usize,
    steps: u64,
    run: *const Options,
    proof: *mut *mut Proof,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let (bytes, mut run) =
            unsafe { (array(certificate, length, "certificate")?, options(run)?) };
        let steps = if steps == 0 { MOST_WORK } else { steps };
        let statement = bindings::check(bytes, Some(steps), &mut run.callback)?;
        let text = statement.to_string();
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write_new(proof, Proof::new(statement.solution, None, &text), "proof") }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}

/// Returns the column in each row of the proved solution; NULL if it is proved that there is none. It
/// lives as long as the proof. `n`, unless NULL, receives the number of rows.
///
/// # Safety
/// `proof` was not freed; `n` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_proof_columns(proof: *const Proof, n: *mut usize) -> *const u32 {
    // SAFETY: The caller guarantees it.
    let columns = unsafe { proof.as_ref() }.and_then(|proof| proof.columns.as_deref());
    if !n.is_null() {
        // SAFETY: The caller guarantees it.
        unsafe { n.write(columns.map_or(0, <[u32]>::len)) };
    }
    columns.map_or(ptr::null(), <[u32]>::as_ptr)
}

/// Returns the certificate; NULL if there is none. It lives as long as the proof. `length`, unless
/// NULL, receives its number of bytes.
///
/// # Safety
/// `proof` was not freed; `length` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_proof_certificate(
    proof: *const Proof,
    length: *mut usize,
) -> *const u8 {
    // SAFETY: The caller guarantees it.
    let bytes = unsafe { proof.as_ref() }.and_then(|proof| proof.certificate.as_deref());
    if !length.is_null() {
        // SAFETY: The caller guarantees it.
        unsafe { length.write(bytes.map_or(0, <[u8]>::len)) };
    }
    bytes.map_or(ptr::null(), <[u8]>::as_ptr)
}

/// Returns the proved statement as a sentence, which lives as long as the proof; NULL for NULL.
///
/// # Safety
/// `proof` is NULL or was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_proof_text(proof: *const Proof) -> *const c_char {
    // SAFETY: The caller guarantees it.
    unsafe { proof.as_ref() }.map_or(ptr::null(), |proof| proof.text.as_ptr())
}

/// Frees a proof.
///
/// # Safety
/// `proof` is NULL or a proof that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_proof_free(proof: *mut Proof) {
    // SAFETY: The caller guarantees it.
    unsafe { free(proof) }
}

/// Returns the published value of a sequence at n: an OEIS number, for example A000170, or a piece.
/// The status is NQUEENS_STATUS_NOT_AVAILABLE if no value is known here.
///
/// # Safety
/// Pointers are valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nqueens_known(
    sequence: *const c_char,
    n: usize,
    value: *mut Number,
    error: *mut *mut Error,
) -> Status {
    let body = || {
        // SAFETY: The caller guarantees that the pointers are valid.
        let sequence = bindings::sequence(unsafe { text(sequence, "A000170") }?)?;
        let known = bindings::published(sequence, n).ok_or_else(|| {
            let message = format!("no value of {} is known here for n = {n}", sequence.oeis());
            Failure::new(FailureClass::NotAvailable, message)
        })?;
        // SAFETY: The caller guarantees that it may be written.
        unsafe { write(value, Number::from(known), "value") }
    };
    // SAFETY: The caller guarantees that the error may be written.
    unsafe { guard(error, body) }
}
