//! A disk for tests of power losses.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use nqueens::checkpoint::Storage;

/// A disk that loses power after a given number of steps. Any part of what was not synced may be
/// kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct CrashingDisk(pub(crate) Rc<RefCell<Disk>>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) synced: Vec<u8>,
    pub(crate) written: Vec<u8>,
    /// The number of steps until the power loss: each written byte, each sync and each cut of a
    /// torn end.
    pub(crate) left: Option<usize>,
}

impl Disk {
    fn step(&mut self) -> io::Result<()> {
        match &mut self.left {
            Some(0) => return Err(io::Error::other("power loss")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    /// Returns the possible contents after the power loss: the last synced bytes; or those written
    /// since, up to any byte, followed by nothing, zeros, or the old bytes.
    pub(crate) fn survivors(&self) -> Vec<Vec<u8>> {
        let same = self.synced.iter().zip(&self.written).take_while(|(a, b)| a == b).count();
        let mut all = vec![self.synced.clone()];
        for kept in same..=self.written.len() {
            let new = &self.written[..kept];
            all.push(new.to_vec());
            all.push([new, &[0; 7]].concat());
            if kept < self.synced.len() {
                all.push([new, &self.synced[kept..]].concat());
            }
        }
        all
    }
}

impl CrashingDisk {
    pub(crate) fn holding(bytes: &[u8]) -> Self {
        Self(Rc::new(RefCell::new(Disk {
            synced: bytes.to_vec(),
            written: bytes.to_vec(),
            left: None,
        })))
    }
}

impl Storage for CrashingDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.borrow().written.clone())
    }

    fn write_at_end(&mut self, len: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.written.len() as u64 > len {
            disk.step()?;
            disk.written.truncate(len as usize);
        }
        for &byte in bytes {
            disk.step()?;
            disk.written.push(byte);
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        disk.step()?;
        disk.synced = disk.written.clone();
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let mut disk = self.0.borrow_mut();
        disk.step()?;
        (disk.synced, disk.written) = (bytes.to_vec(), bytes.to_vec());
        // Power may also be lost after the replacement.
        disk.step()?;
        Ok(true)
    }
}
