//! The memory of another process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[derive(Debug)]
pub struct Memory(File);

impl Memory {
    pub fn of(process: i32) -> io::Result<Memory> {
        File::open(format!("/proc/{process}/mem")).map(Memory)
    }

    pub fn bytes(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    fn array<const BYTES: usize>(&self, address: u64) -> Option<[u8; BYTES]> {
        let mut bytes = [0; BYTES];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    pub fn word(&self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_ne_bytes)
    }

    pub fn half(&self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_ne_bytes)
    }

    pub fn byte(&self, address: u64) -> Option<u8> {
        self.array(address).map(u8::from_ne_bytes)
    }
}
