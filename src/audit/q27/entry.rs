//! A unit of the database: a border, and the number of its completions.

use super::border::{Border, Pair};

/// The bytes of an entry in the binary format: two big-endian words of 64 bits.
pub const ENTRY_BYTES: usize = 16;

/// The bits of a count; it is stored with its remainders modulo 13 and 15.
const COUNT_BITS: u32 = 44;

/// A unit as the database states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The pairs of the west, north, east and south sides.
    pub sides: [Pair; 4],
    /// The binary logarithm of the number of images; text does not have it.
    pub symmetry: Option<u8>,
    /// The number of completions; `None` if they were not counted.
    pub count: Option<u64>,
}

/// The error returned for bytes or text that contradict themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The checksum of the border is wrong.
    #[error("the checksum of its queens is wrong")]
    Checksum,
    /// The remainders of the count are wrong.
    #[error(
        "its count of {count} contradicts its remainders: {mod_13} modulo 13, {mod_15} modulo 15"
    )]
    Remainders {
        /// The stored count.
        count: u64,
        /// The stored remainder modulo 13.
        mod_13: u8,
        /// The stored remainder modulo 15.
        mod_15: u8,
    },
    /// Text is not in the format that `q27db print` writes.
    #[error(
        "it is not a line of q27db print: '@ 12: ( 0, 2)( 1, 3)( 4, 6)( 2, 5)', tab, date, tab, '#1', tab, count, or '<todo>'"
    )]
    Text,
    /// The project's own tool has marked the line as inconsistent.
    #[error("q27db print has marked it as invalid or wrapped")]
    Marked,
}

impl Entry {
    /// Reads the binary form. From the highest bit on, the first word has the eight distances (the
    /// first in 4 bits, the others in 5), 2 bits of symmetry, a checksum of 3 bits and 20 bits of
    /// time; the second has 12 bits for the solver, 4 for the count modulo 13, 4 for the count
    /// modulo 15, and 44 for the count. It is 0 if the border was not solved.
    ///
    /// # Errors
    /// The checksum or the remainders are wrong.
    pub fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Result<Self, EntryError> {
        let both = u128::from_be_bytes(bytes);
        let (border, solution) = ((both >> 64) as u64, both as u64);
        if remainder(border >> 20) != 0 {
            return Err(EntryError::Checksum);
        }
        let distance = |place: u32| (border >> 25 >> (35 - 5 * place)) as u8 & 31;
        let sides = [0, 2, 4, 6].map(|place| [distance(place), distance(place + 1)]);
        let symmetry = Some((border >> 23) as u8 & 3);
        let count = solution & ((1 << COUNT_BITS) - 1);
        let [mod_13, mod_15] = [solution >> 48, solution >> COUNT_BITS].map(|bits| bits as u8 & 15);
        if (count % 13, count % 15) != (mod_13.into(), mod_15.into()) {
            return Err(EntryError::Remainders { count, mod_13, mod_15 });
        }
        Ok(Self { sides, symmetry, count: (solution != 0).then_some(count) })
    }

    /// Writes the binary form of a solved border, with solver 1 and no time. The count is taken
    /// modulo 2⁴⁴.
    pub fn to_bytes(border: &Border, count: u64) -> [u8; ENTRY_BYTES] {
        let distances = border.sides();
        let distances = distances.as_flattened().iter();
        let queens = distances.fold(0, |word: u64, &distance| word << 5 | u64::from(distance));
        let symmetry = u64::from(border.images().ilog2());
        let word = queens << 2 | symmetry;
        let first = (word << 3 | u64::from(remainder(word))) << 20;
        let count = count & ((1 << COUNT_BITS) - 1);
        let second = 1 << 52 | (count % 13) << 48 | (count % 15) << COUNT_BITS | count;
        (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
    }

    /// Reads a line that `q27db print` has written.
    ///
    /// # Errors
    /// It is no such line, or is marked as inconsistent.
    pub fn from_text(line: &str) -> Result<Self, EntryError> {
        let (_, rest) = line.split_once(": ").ok_or(EntryError::Text)?;
        let (queens, rest) = rest.split_once('\t').ok_or(EntryError::Text)?;
        let mut distances = [0; 8];
        let mut words =
            queens.split(['(', ',', ')']).map(str::trim).filter(|word| !word.is_empty());
        for distance in &mut distances {
            *distance = words.next().and_then(|word| word.parse().ok()).ok_or(EntryError::Text)?;
        }
        let mut fields = rest.split('\t');
        let date = fields.next().ok_or(EntryError::Text)?;
        let mut count = None;
        if date != "<todo>" {
            fields.next().filter(|solver| solver.starts_with('#')).ok_or(EntryError::Text)?;
            let field = fields.next().ok_or(EntryError::Text)?;
            count = Some(field.trim().parse().map_err(|_| EntryError::Text)?);
        }
        if words.next().is_some() {
            return Err(EntryError::Text);
        }
        if fields.next().is_some() {
            return Err(EntryError::Marked);
        }
        let [a, b, c, d, e, f, g, h] = distances;
        Ok(Self { sides: [[a, b], [c, d], [e, f], [g, h]], symmetry: None, count })
    }
}

/// Returns the remainder of x³ · `word` modulo x³ + x + 1, as polynomials over GF(2): the checksum
/// of a word, and 0 for a word that ends with its checksum.
fn remainder(word: u64) -> u8 {
    let times_x_cubed = u128::from(word) << 3;
    (0..67).rev().fold(0, |register: u8, bit| {
        let next = register << 1 | (times_x_cubed >> bit) as u8 & 1;
        if next & 0b1000 == 0 { next } else { next ^ 0b1011 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::q27::border::for_each_canonical;
    use hmac_sha256::Hash as Sha256;

    /// Returns the first border of the board of size 8.
    fn border() -> Border {
        let mut first = None;
        for_each_canonical(8, |border| {
            first = Some(border);
            false
        });
        first.expect("there are borders")
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for count in [0, 1, 12_345_678, (1 << 44) - 1] {
            let entry = Entry::from_bytes(Entry::to_bytes(&border(), count)).expect("valid");
            assert_eq!(entry.sides, border().sides());
            assert_eq!(entry.symmetry, Some(3));
            assert_eq!(entry.count, Some(count));
        }
    }

    /// The SHA-256 of the databases that the project's program writes for small boards
    /// (`coronal2 -db:FILE N`, commit c8df61d). Nothing is solved there.
    const DATABASES: [(usize, &str); 4] = [
        (5, "d4df162495b5af62984949542341670944e8d05c9010233f4ae05cd0f5fedc47"),
        (8, "efa42337c1aaefe316da9c4678a2f996d6ecde95e1096067752ab3c3d2fc820c"),
        (11, "ece27d1cfd49e1386e05c3de588de162aaf17b2f9514c13c4f1e687b9bbaa89f"),
        (12, "c4cc22ffb0848f7529f0170d0ade2b388048f90b8e592c5a072f4350e3ded946"),
    ];

    #[test]
    fn all_canonical_borders_in_order_are_the_database_of_the_project() {
        for (n, expected) in DATABASES {
            let mut hash = Sha256::new();
            for_each_canonical(n, |border| {
                hash.update(&Entry::to_bytes(&border, 0)[..8]);
                hash.update([0; 8]);
                true
            });
            let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, expected, "n = {n}");
        }
    }

    #[test]
    fn each_changed_bit_of_queens_symmetry_or_count_is_noticed() {
        let bytes = Entry::to_bytes(&border(), 12_345);
        let (mut by_checksum, mut by_remainders) = (0, 0);
        for bit in 0..128 {
            let changed = (u128::from_be_bytes(bytes) ^ 1 << bit).to_be_bytes();
            match Entry::from_bytes(changed) {
                Err(EntryError::Checksum) => by_checksum += 1,
                Err(EntryError::Remainders { .. }) => by_remainders += 1,
                // Time and solver, or a remainder's bit.
                _ => assert!((52..84).contains(&bit), "bit {bit}"),
            }
        }
        assert_eq!((by_checksum, by_remainders), (44, 52));
    }

    #[test]
    fn lines_of_the_print_command_are_read() {
        let solved =
            "@         3: ( 0, 2)( 1, 3)( 4, 6)( 2, 5)\t2016-01-09 04:08\t#  17\t      12345678";
        let entry = Entry::from_text(solved).expect("a line");
        assert_eq!(entry.sides, [[0, 2], [1, 3], [4, 6], [2, 5]]);
        assert_eq!((entry.symmetry, entry.count), (None, Some(12_345_678)));
        let open = Entry::from_text("@ 3: ( 0, 2)( 1, 3)( 4, 6)( 2, 5)\t<todo>").expect("a line");
        assert_eq!(open.count, None);
        let marked = format!("{solved}\tWRAPPED[%13= 1, %15= 2 -> 5]");
        assert_eq!(Entry::from_text(&marked), Err(EntryError::Marked));
        for line in ["", "@ 3: ( 0, 2)( 1, 3)( 4, 6)\t<todo>", "12 Entries", "@ 3: (0,2)"] {
            assert_eq!(Entry::from_text(line), Err(EntryError::Text), "{line}");
        }
    }
}
