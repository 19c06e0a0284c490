//! A pass over the database: everything is checked but the counts, and a sample is drawn.

use std::io::{self, BufRead};
use std::ops::Range;

use super::border::{Border, for_each_canonical};
use super::entry::{ENTRY_BYTES, Entry, EntryError};
use crate::audit::confidence::{Sample, SampleSize, is_one_of};

/// The form of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Entries of 16 bytes.
    Binary,
    /// The lines of `q27db print`.
    Text,
}

impl Form {
    /// Returns the form of a database that begins with these bytes.
    pub fn of(beginning: &[u8]) -> Self {
        // "@         0: ( 0, 2)", or before it "10000 Entries".
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let is_printed =
            beginning.starts_with(b"@") || beginning.first().is_some_and(u8::is_ascii_digit);
        if is_printed && beginning.iter().take(ENTRY_BYTES).all(is_text) {
            Self::Text
        } else {
            Self::Binary
        }
    }
}

/// A unit that is wrong, whatever the others say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongUnit {
    /// Its number in the database, from 0.
    pub unit: u64,
    /// The reason.
    pub reason: WrongReason,
}

/// The reason why a unit is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongReason {
    /// The entry contradicts itself.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The queens are no border.
    #[error("its queens attack each other or are off the board of size {0}")]
    Queens(usize),
    /// The border is not the one that stands for its orbit.
    #[error("another border stands for its images")]
    NotCanonical,
    /// The symmetry is not that of the border.
    #[error("it states {stated} images of its border, which has {actual}")]
    Symmetry {
        /// The stated number of images.
        stated: u8,
        /// The number of images of the border.
        actual: u8,
    },
    /// The unit does not come after the one before it, so one of them may be there twice.
    #[error("its border does not come after that of the unit before it")]
    Order,
    /// The number of completions is another one.
    #[error("it states {stated} completions of its border, which has {actual}")]
    Count {
        /// The stated number.
        stated: u64,
        /// The number that was counted.
        actual: u128,
    },
}

/// The error returned when a database cannot be read, or has a wrong unit.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It ends in the middle of an entry.
    #[error("it ends after {0} bytes of a unit, which has 16")]
    Cut(usize),
    /// It has no unit.
    #[error("it has no units")]
    Empty,
    /// A unit is wrong.
    #[error("unit {} is wrong: {}", .0.unit, .0.reason)]
    Wrong(WrongUnit),
}

/// The result of a pass over a database.
#[derive(Clone, Debug)]
pub struct Database {
    /// The size of the board.
    pub n: usize,
    /// The number of units in the database.
    pub units: u64,
    /// The number of units with a count, among those that were asked for.
    pub counted: u64,
    /// The sum of their counts, each times the images of its border.
    pub solutions: u128,
    /// The largest contribution of a unit to that sum.
    pub largest: u128,
    /// Random units among them, with their borders and counts, in ascending order.
    pub sample: Vec<(u64, (Border, u64))>,
}

impl Database {
    /// Reads a database for the board of size `n`, and draws a sample of the counted ones among
    /// `units`, all of them if that is `None`.
    ///
    /// # Errors
    /// The database cannot be read, or a unit is wrong, whatever its count: the first such unit.
    pub fn read(
        mut source: impl BufRead,
        n: usize,
        units: Option<&Range<u64>>,
        (size, seed): (SampleSize, u64),
    ) -> Result<Self, DatabaseError> {
        let form = Form::of(source.fill_buf()?);
        let mut sample = Sample::new(size, seed);
        let (mut number, mut solutions, mut largest) = (0, 0_u128, 0);
        let mut last = None;
        while let Some(entry) = next(&mut source, form)? {
            let wrong = |reason| DatabaseError::Wrong(WrongUnit { unit: number, reason });
            let entry = entry.map_err(|error| wrong(error.into()))?;
            let border = check(n, &entry).map_err(wrong)?;
            let numbers = Some(border.numbers());
            if last >= numbers {
                return Err(wrong(WrongReason::Order));
            }
            last = numbers;
            if let Some(count) = entry.count
                && is_one_of(number, units)
            {
                let contribution = u128::from(count) * u128::from(border.images());
                // 2^64 units of 2^47 at most.
                solutions += contribution;
                largest = largest.max(contribution);
                sample.offer(number, (border, count));
            }
            number += 1;
        }
        if number == 0 {
            return Err(DatabaseError::Empty);
        }
        let counted = sample.offered();
        Ok(Self { n, units: number, counted, solutions, largest, sample: sample.into_chosen() })
    }

    /// Returns whether the database has every border, each with a count: then `solutions` is the
    /// number of all solutions. The borders are enumerated for this, at some ten million a second.
    pub fn is_complete(&self) -> bool {
        // They ascend and are canonical, so that their number decides.
        let mut borders = 0;
        for_each_canonical(self.n, |_| {
            borders += 1;
            borders <= self.units
        });
        borders == self.units && self.counted == self.units
    }
}

/// Returns the border of an entry, after checking all but its count.
fn check(n: usize, entry: &Entry) -> Result<Border, WrongReason> {
    let border = Border::new(n, entry.sides).ok_or(WrongReason::Queens(n))?;
    if !border.is_canonical() {
        return Err(WrongReason::NotCanonical);
    }
    let actual = border.images();
    match entry.symmetry.map(|symmetry| 1 << symmetry) {
        Some(stated) if stated != actual => Err(WrongReason::Symmetry { stated, actual }),
        _ => Ok(border),
    }
}

/// Reads the next entry; `None` at the end.
fn next(
    source: &mut impl BufRead,
    form: Form,
) -> Result<Option<Result<Entry, EntryError>>, DatabaseError> {
    match form {
        Form::Binary => {
            let mut bytes = [0; ENTRY_BYTES];
            let mut read = 0;
            while read < ENTRY_BYTES {
                match source.read(&mut bytes[read..]) {
                    Ok(0) if read == 0 => return Ok(None),
                    Ok(0) => return Err(DatabaseError::Cut(read)),
                    Ok(more) => read += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(Some(Entry::from_bytes(bytes)))
        }
        Form::Text => loop {
            /// Longer than any line of `q27db print`.
            const LONGEST_LINE: u64 = 1000;
            let mut line = String::new();
            if io::Read::take(&mut *source, LONGEST_LINE).read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() || line.ends_with(" Entries") || line.ends_with(" Entry") {
                continue;
            }
            return Ok(Some(Entry::from_text(line)));
        },
    }
}
