//! Solutions that users give, typed or in a file: read, and checked by the plain definition.

mod notation;
mod reader;
mod verdict;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

pub(super) use notation::Candidate;
pub(super) use reader::Reader;
pub(super) use verdict::{Report, Verdict};

use super::{Exit, Failure};

/// The words that stand for a solution or name a file, for messages.
const HOW: &str = "write the column in each row, such as 2 4 1 3, or the name of a file";

/// Opens the solutions of a command line: typed, in a file, or on stdin (`-`).
///
/// Words of digits, spaces, commas and hyphens are a solution; so a file that has such a name is
/// written with its folder (`./2413`).
///
/// # Errors
/// There is neither a solution nor a file, or the file cannot be read.
pub(super) fn open(words: &[String]) -> Result<Reader<Box<dyn BufRead>>, Failure> {
    let text = words.join(" ");
    let typed = |text: String| {
        let lines: Box<dyn BufRead> = Box::new(io::Cursor::new(text));
        Reader::new(lines)
    };
    if text == "-" {
        return Ok(Reader::new(Box::new(BufReader::new(io::stdin()))));
    }
    let is_plain = |c: char| c.is_ascii_digit() || c.is_whitespace() || ",-".contains(c);
    if words.len() > 1 || text.chars().all(is_plain) {
        return Ok(typed(text));
    }
    let path = Path::new(&text);
    let cannot_read = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::File, format!("{text} cannot be read: {error}"))
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(cannot_read(&"it is a directory, not a file")),
        Ok(_) => {
            let file = fs::File::open(path).map_err(|error| cannot_read(&error))?;
            Ok(Reader::new(Box::new(BufReader::with_capacity(1 << 16, file))))
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot_read(&error)),
        // A word such as a misspelled name is also a row of digits, but its letters are off the
        // board.
        Err(_)
            if matches!(typed(text.clone()).next_candidate(),
            Ok(Some(found)) if found.off_board().is_none()) =>
        {
            Ok(typed(text))
        }
        Err(_) => Err(Failure::usage(format!("'{text}' is neither a solution nor a file; {HOW}"))),
    }
}

/// Returns what was probably meant by a single number that is no solution, because a piece would be
/// off a board of one or two rows.
pub(super) fn size_hint(words: &[String]) -> Option<String> {
    let [size] = words else { return None };
    let digits: Option<Vec<u32>> = size.chars().map(|digit| digit.to_digit(10)).collect();
    let digits = digits.filter(|digits| (1..=2).contains(&digits.len()) && digits[0] > 0)?;
    let is_off = |digit: &u32| !(1..=digits.len() as u32).contains(digit);
    digits.iter().any(is_off).then(|| {
        format!("'{size}' is no solution but looks like a size; nqueens solve {size} finds a solution for n = {size}")
    })
}

/// Returns the only solution of a command line.
///
/// # Errors
/// It cannot be read, or there is none or more than one; `what` names the command.
pub(super) fn only(words: &[String], what: &str) -> Result<Candidate, Failure> {
    let mut reader = open(words)?;
    let first = reader.next_candidate()?.ok_or_else(no_solution)?;
    match reader.next_candidate()? {
        None => Ok(first),
        Some(second) => Err(Failure::usage(format!(
            "{what} takes one solution, and line {} has a second one",
            second.line
        ))),
    }
}

/// Returns the failure of input without a solution.
pub(super) fn no_solution() -> Failure {
    Failure::usage(format!("there is no solution in the input; {HOW}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_no_solution_is_probably_a_size() {
        let of =
            |words: &[&str]| size_hint(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        for size in ["8", "2", "10", "13", "20", "99"] {
            let hint = of(&[size]).expect(size);
            assert!(hint.contains(&format!("nqueens solve {size} ")), "{hint}");
        }
        for words in
            [&["1"][..], &["12"], &["21"], &["08"], &["0"], &["132"], &["8", "1"], &["-"], &[]]
        {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
