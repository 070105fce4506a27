//! Segments: further parts of the job's memory file, made at need, each mapped by those who use it.
//!
//! Every rank makes its own, one behind the other in a part of the file that no other rank uses, so that nobody has to be asked.
//! The file is sparse: what has been used once is given back to the kernel and never used again.

use crate::layout;
use parnass_base::{PAGE, Region, Window};
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a rank has made.
#[derive(Debug)]
pub struct Segments {
    made: Mutex<Made>,
}

#[derive(Debug)]
struct Made {
    next: u64,
    end: u64,
    /// By name, where the job's memory is no file but memory of this process alone.
    private: HashMap<u64, Arc<Region>>,
}

fn whole_pages(length: usize) -> io::Result<usize> {
    length.max(1).checked_next_multiple_of(PAGE).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

impl Segments {
    /// None yet, for a rank of a job of `size` ranks.
    pub fn new(rank: u32, size: u32) -> Segments {
        let (start, length) = layout::segments_of(rank, size);
        Segments { made: Mutex::new(Made { next: start, end: start + length, private: HashMap::new() }) }
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See `Transport::make_segment`; `job` is the memory of the job.
    pub fn make(&self, job: &Region, length: usize) -> io::Result<u64> {
        let length = whole_pages(length)?;
        let mut made = self.made();
        let name = made.next;
        let end = name.checked_add(length as u64).filter(|end| *end <= made.end);
        let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        match job.file() {
            Some(file) => Region::lengthen(file, end)?,
            None => drop(made.private.insert(name, Region::private(length)?)),
        }
        made.next = end;
        Ok(name)
    }

    /// See `Transport::open_segment`.
    pub fn open(&self, job: &Region, name: u64, length: usize) -> io::Result<Window> {
        let region = match job.file() {
            Some(_) => job.map_part(name, whole_pages(length)?)?,
            None => self.made().private.get(&name).cloned().ok_or(io::ErrorKind::NotFound)?,
        };
        Ok(region.window(0, length))
    }

    /// See `Transport::end_segment`.
    pub fn end(&self, job: &Region, name: u64, length: usize) {
        match job.file() {
            // If the kernel refuses, the memory is given back with the job's.
            Some(file) => {
                drop(whole_pages(length).and_then(|length| Region::punch(file.as_fd(), name, length as u64)))
            }
            None => drop(self.made().private.remove(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobMemory;
    use parnass_base::Word64;

    #[test]
    fn what_one_rank_makes_another_opens() {
        let file = JobMemory::create(2).unwrap();
        let first = JobMemory::open(file.try_clone().unwrap()).unwrap();
        let segments = Segments::new(0, 2);
        let (one, two) =
            (segments.make(&first.region, 5000).unwrap(), segments.make(&first.region, 100).unwrap());
        assert!(two >= one + 5000);
        // A rank that comes later still finds the job's memory.
        let second = JobMemory::open(file).unwrap();
        let others = Segments::new(1, 2);
        let mine = segments.open(&first.region, one, 5000).unwrap();
        let theirs = others.open(&second.region, one, 5000).unwrap();
        mine.reserve(0, 5000).unwrap();
        mine.record::<Word64>(4992).set(7);
        assert_eq!(theirs.record::<Word64>(4992).get(), 7);
        others.end(&second.region, one, 5000);
        assert_eq!(mine.record::<Word64>(4992).get(), 0);
        assert_ne!(others.make(&second.region, 100).unwrap(), two);
    }

    #[test]
    fn memory_of_a_lone_process_has_segments_too() {
        let memory = JobMemory::private().unwrap();
        let segments = Segments::new(0, 1);
        let name = segments.make(&memory.region, 100).unwrap();
        segments.open(&memory.region, name, 100).unwrap().record::<Word64>(0).set(3);
        assert_eq!(segments.open(&memory.region, name, 100).unwrap().record::<Word64>(0).get(), 3);
        segments.end(&memory.region, name, 100);
        assert!(segments.open(&memory.region, name, 100).is_err());
    }
}
