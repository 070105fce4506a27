//! The two pipes between a guardian and an agent, neither of which is ever waited for.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::frames::{Frame, append, first};

const READ_BYTES: usize = 64 << 10;

/// Frames in both directions.
#[derive(Debug)]
pub struct Channel {
    input: File,
    output: File,
    arrived: Vec<u8>,
    waiting: Vec<u8>,
    written: usize,
    closed: bool,
}

impl Channel {
    /// Reads from `input` and writes to `output`.
    pub fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Channel> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Channel {
            input: input.into(),
            output: output.into(),
            arrived: Vec::new(),
            waiting: Vec::new(),
            written: 0,
            closed: false,
        })
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Whether the other side has gone, or talks nonsense.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether something waits to be written.
    pub fn is_waiting(&self) -> bool {
        self.written < self.waiting.len() && !self.closed
    }

    /// Reads once; tells whether anything came.
    pub fn read(&mut self) -> bool {
        let before = self.arrived.len();
        self.arrived.resize(before + READ_BYTES, 0);
        let count = match self.input.read(&mut self.arrived[before..]) {
            Ok(0) => {
                self.closed = true;
                0
            }
            Ok(count) => count,
            Err(error) => {
                let passing = [io::ErrorKind::WouldBlock, io::ErrorKind::Interrupted];
                self.closed |= !passing.contains(&error.kind());
                0
            }
        };
        self.arrived.truncate(before + count);
        count > 0
    }

    /// The next message of those that have come.
    pub fn next<F: Frame>(&mut self) -> Option<F> {
        match first(&self.arrived) {
            Ok(None) => None,
            Ok(Some((message, length))) => {
                self.arrived.drain(..length);
                Some(message)
            }
            Err(_) => {
                self.closed = true;
                self.arrived.clear();
                None
            }
        }
    }

    /// What has come and is not read yet, for what stands before the first frame.
    pub fn arrived(&mut self) -> &mut Vec<u8> {
        &mut self.arrived
    }

    /// Adds a message to those that wait to be written.
    pub fn queue(&mut self, message: &impl Frame) {
        append(&mut self.waiting, message);
    }

    /// Writes what it can. An error of writing is seen when reading too, after what the other side has said last.
    pub fn flush(&mut self) {
        while self.is_waiting() {
            match self.output.write(&self.waiting[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.written = self.waiting.len();
                    break;
                }
            }
        }
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.waiting.shrink_to(1 << 20);
            self.written = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::{Order, Report};
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    #[test]
    fn messages_larger_than_a_pipe_arrive_in_order() {
        let (down, orders) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let (up, reports) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut above = Channel::new(up, orders).unwrap();
        let mut below = Channel::new(down, reports).unwrap();
        let sent: Vec<Report> = (0..10)
            .map(|rank| Report::Output { rank, stream: 1, bytes: vec![rank as u8; 100_000] })
            .collect();
        sent.iter().for_each(|report| below.queue(report));
        above.queue(&Order::Ping);
        above.flush();
        assert!(below.read());
        assert_eq!(below.next(), Some(Order::Ping));
        let mut got: Vec<Report> = Vec::new();
        while got.len() < sent.len() {
            below.flush();
            above.read();
            while let Some(report) = above.next() {
                got.push(report);
            }
        }
        assert_eq!(got, sent);
        drop(below);
        above.read();
        assert!(above.is_closed());
    }

    #[test]
    fn nonsense_closes_a_channel() {
        let (input, mut far) =
            pipe_with(PipeFlags::CLOEXEC).map(|(near, far)| (near, File::from(far))).unwrap();
        let mut channel = Channel::new(input, File::open("/dev/null").unwrap().into()).unwrap();
        far.write_all(b"Welcome to this machine!\n").unwrap();
        channel.read();
        assert_eq!(channel.next::<Report>(), None);
        assert!(channel.is_closed());
    }
}
