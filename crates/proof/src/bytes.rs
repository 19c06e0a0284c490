//! The encoding of numbers as bytes: seven bits per byte, the lowest first (LEB128). Signed numbers
//! are zigzag-encoded, with the sign in the lowest bit.

use super::ProofError;

/// A writer of encoded numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Creates an empty writer.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Writes one byte.
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Writes an unsigned integer.
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// Writes a size or an index.
    pub fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    /// Writes a signed integer.
    pub fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    /// Appends bytes that are already encoded.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Returns the bytes written so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes everything after the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Returns the bytes written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A reader of the output of [`Writer`]. Every error is [`ProofError::Damaged`].
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Creates a reader at the beginning of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Returns an error if no byte is left.
    pub fn byte(&mut self) -> Result<u8, ProofError> {
        let (&byte, rest) = self.0.split_first().ok_or(ProofError::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(byte)
    }

    /// Reads an unsigned integer.
    ///
    /// # Errors
    /// Returns an error if the bytes end too early, or if the number has more than 64 bits.
    pub fn number(&mut self) -> Result<u64, ProofError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProofError::Damaged("a number has more than 64 bits"))
    }

    /// Reads an unsigned integer of at most `largest`.
    ///
    /// # Errors
    /// Returns an error if the bytes end too early, or if the number is larger.
    pub fn size(&mut self, largest: usize) -> Result<usize, ProofError> {
        let size = usize::try_from(self.number()?).ok().filter(|&size| size <= largest);
        size.ok_or(ProofError::Damaged("a number is too large"))
    }

    /// Reads a signed integer.
    ///
    /// # Errors
    /// Returns an error if the bytes end too early, or if the number has more than 64 bits.
    pub fn signed(&mut self) -> Result<i64, ProofError> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    /// Returns an error if fewer bytes are left.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], ProofError> {
        let (bytes, rest) =
            self.0.split_at_checked(length).ok_or(ProofError::Damaged("it ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Returns the bytes that have not been read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// Returns whether all bytes have been read.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_round_trip(
            numbers in proptest::collection::vec((any::<u64>(), any::<i64>(), 0..64u32), 0..20),
        ) {
            let mut writer = Writer::new();
            for &(number, signed, shift) in &numbers {
                writer.number(number >> shift);
                writer.signed(signed >> shift);
            }
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for &(number, signed, shift) in &numbers {
                prop_assert_eq!(reader.number(), Ok(number >> shift));
                prop_assert_eq!(reader.signed(), Ok(signed >> shift));
            }
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            while reader.signed().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while let Ok(size) = reader.size(1000) {
                prop_assert!(size <= 1000);
            }
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Reader::new(&largest).number(), Ok(u64::MAX));
        let mut more = largest;
        more[9] = 0x02;
        assert!(Reader::new(&more).number().is_err());
        assert!(Reader::new(&[0xff; 11]).number().is_err());
        assert!(Reader::new(&[0x80]).number().is_err());
    }
}
