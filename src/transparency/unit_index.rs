//! The index of a log: for each unit the entry of its result, in pages of 256 units. It is not
//! signed, because an entry states its unit: a wrong index leads to an entry of another unit.

use super::tile::numbered;

/// The number of units in a page.
pub const UNITS: u64 = 256;
/// The size of a page, in bytes.
pub const PAGE_BYTES: usize = 8 * UNITS as usize;

/// A page: for each unit the number of the entry plus 1 as 8 bytes, big-endian, or 0 if it has no
/// result. The last page has zeros after the last unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page(Vec<u8>);

impl Page {
    /// Returns the path of the page with this unit.
    pub fn path(unit: u64) -> String {
        format!("unit/{}", numbered(unit / UNITS))
    }

    /// Creates the page with these entries, counted from 0.
    pub fn new(entries: impl Iterator<Item = Option<u64>>) -> Self {
        let mut bytes: Vec<u8> = entries
            .take(UNITS as usize)
            .flat_map(|entry| entry.map_or(0, |entry| entry + 1).to_be_bytes())
            .collect();
        bytes.resize(PAGE_BYTES, 0);
        Self(bytes)
    }

    /// Returns the page with these bytes, or `None` if there are not as many as a page has.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == PAGE_BYTES).then_some(Self(bytes))
    }

    /// Returns the bytes of the page.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the entry with the result of a unit of this page, counted from 0.
    pub fn entry(&self, unit: u64) -> Option<u64> {
        let (numbers, _) = self.0.as_chunks::<8>();
        u64::from_be_bytes(*numbers.get((unit % UNITS) as usize)?).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_entries_of_its_units() {
        let page = Page::new([Some(0), None, Some(70_000)].into_iter());
        assert_eq!(page.as_bytes().len(), PAGE_BYTES);
        let read = Page::from_bytes(page.as_bytes().to_vec()).expect("a page");
        let entries: Vec<_> = (0..4).map(|unit| read.entry(512 + unit)).collect();
        assert_eq!(entries, [Some(0), None, Some(70_000), None]);
        assert_eq!(Page::path(70_000), "unit/273");
        assert_eq!(Page::from_bytes(vec![0; 3]), None);
    }
}
