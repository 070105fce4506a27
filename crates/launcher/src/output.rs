//! The output of ranks: read from a pipe per rank and stream, passed on in whole lines.
//!
//! A line of one rank is never broken by another rank's, unless it is very long or stays unfinished for a
//! while (a prompt, a progress bar). Bytes are never changed; a label is only added before a line where the
//! user asked for it. Where the reader of our output is slow the ranks are no longer read, and wait in turn.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

/// A longer line is passed on in pieces.
const LINE_BYTES_MAXIMUM: usize = 1 << 20;
/// With more than this waiting to be written, ranks are not read.
const WAITING_BYTES_MAXIMUM: usize = 1 << 20;
/// An unfinished line is shown after this time on a terminal, where it may be a prompt, ...
const PROMPT_DELAY: Duration = Duration::from_millis(50);
/// ... and after this time elsewhere, ...
const UNFINISHED_DELAY: Duration = Duration::from_millis(500);
/// ... unless it seems to be the first part of what a program writes in blocks.
const BLOCK_DELAY: Duration = Duration::from_secs(5);
/// C libraries write to a pipe in blocks of this size or a multiple.
const BLOCK_BYTES: usize = 4096;
/// A pipe that polls as writable takes this much without blocking.
const PIPE_ATOMIC_BYTES: usize = 4096;

/// How to write to a descriptor without ever waiting for its reader.
#[derive(Debug)]
enum Manner {
    /// A file: it takes everything at once.
    Whole,
    /// A pipe or terminal that was opened anew for this process alone, without blocking.
    Nonblocking,
    /// A socket: each call says not to wait.
    Socket,
    /// A pipe or terminal of which only the shared description can be had: little at a time, when it polls as
    /// writable.
    Little,
    /// Not at all: it is collected for the guardian above.
    Above,
}

/// One of this process's own outputs, with what waits to be written to it.
#[derive(Debug)]
pub struct Sink {
    /// None of an agent's output.
    file: Option<File>,
    manner: Manner,
    is_terminal: bool,
    label: bool,
    waiting: Vec<u8>,
    /// How much at the front of `waiting` is already written.
    written: usize,
    /// The stream whose last line is unfinished.
    open_line: Option<usize>,
    closed: bool,
    /// For the guardian above: what each rank has written, and how many bytes that is.
    collected: VecDeque<(u32, Vec<u8>)>,
    collected_bytes: usize,
}

impl Sink {
    /// An output that goes where `descriptor` goes.
    pub fn new(descriptor: BorrowedFd<'_>, label: bool) -> io::Result<Sink> {
        let is_terminal = rustix::termios::isatty(descriptor);
        let kind = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
        let again = || {
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&descriptor));
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            open(path, flags, Mode::empty())
        };
        let (file, manner) = match kind {
            FileType::Fifo => {
                again().map(|file| (Some(file), Manner::Nonblocking)).unwrap_or((None, Manner::Little))
            }
            _ if is_terminal => {
                again().map(|file| (Some(file), Manner::Nonblocking)).unwrap_or((None, Manner::Little))
            }
            FileType::Socket => (None, Manner::Socket),
            _ => (None, Manner::Whole),
        };
        let file = match file {
            Some(file) => file,
            None => descriptor.try_clone_to_owned()?,
        };
        Ok(Sink {
            file: Some(file.into()),
            manner,
            is_terminal,
            label,
            waiting: Vec::new(),
            written: 0,
            open_line: None,
            closed: false,
            collected: VecDeque::new(),
            collected_bytes: 0,
        })
    }

    /// An output of an agent: collected until [`Sink::take`].
    pub fn above(is_terminal: bool) -> Sink {
        Sink {
            file: None,
            manner: Manner::Above,
            is_terminal,
            label: false,
            waiting: Vec::new(),
            written: 0,
            open_line: None,
            closed: false,
            collected: VecDeque::new(),
            collected_bytes: 0,
        }
    }

    /// The oldest of what was collected: a rank, and what it has written.
    pub fn take(&mut self) -> Option<(u32, Vec<u8>)> {
        let (rank, bytes) = self.collected.pop_front()?;
        self.collected_bytes -= bytes.len();
        Some((rank, bytes))
    }

    /// Takes bytes of `stream`, which belongs to `rank`.
    pub fn push(&mut self, stream: usize, rank: u32, bytes: &[u8]) {
        if self.closed || bytes.is_empty() {
            return;
        }
        if matches!(self.manner, Manner::Above) {
            self.collected_bytes += bytes.len();
            match self.collected.back_mut() {
                Some((last, collected)) if *last == rank => collected.extend_from_slice(bytes),
                _ => self.collected.push_back((rank, bytes.to_vec())),
            }
            return;
        }
        if self.open_line.is_some_and(|open| open != stream) && (self.is_terminal || self.label) {
            self.waiting.push(b'\n');
        }
        if self.label {
            let mut begins = self.open_line != Some(stream);
            for line in bytes.split_inclusive(|&byte| byte == b'\n') {
                if begins {
                    let _ = write!(self.waiting, "[{rank}] ");
                }
                self.waiting.extend_from_slice(line);
                begins = true;
            }
        } else {
            self.waiting.extend_from_slice(bytes);
        }
        self.open_line = (bytes.last() != Some(&b'\n')).then_some(stream);
    }

    /// Takes a line of this program itself.
    pub fn say(&mut self, line: &str) {
        if self.open_line.take().is_some() {
            self.waiting.push(b'\n');
        }
        self.waiting.extend_from_slice(line.as_bytes());
        self.waiting.push(b'\n');
    }

    /// Writes what it can.
    ///
    /// # Errors
    /// When the reader has gone (`BrokenPipe`), or the file cannot take more. The sink is then closed.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.written < self.waiting.len() {
            match self.write_once() {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.close();
                    return Err(error);
                }
            }
        }
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.waiting.shrink_to(LINE_BYTES_MAXIMUM);
            self.written = 0;
        } else if self.written > LINE_BYTES_MAXIMUM {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    fn write_once(&mut self) -> io::Result<usize> {
        let bytes = &self.waiting[self.written..];
        let Some(file) = &mut self.file else { return Ok(bytes.len()) };
        match self.manner {
            Manner::Whole | Manner::Nonblocking => file.write(bytes),
            Manner::Socket => {
                let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
                Ok(rustix::net::send(&*file, bytes, flags)?)
            }
            Manner::Little => {
                let mut poll = [rustix::event::PollFd::new(&*file, rustix::event::PollFlags::OUT)];
                match rustix::event::poll(
                    &mut poll,
                    Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }),
                )? {
                    0 => Err(Errno::AGAIN.into()),
                    _ => file.write(&bytes[..bytes.len().min(PIPE_ATOMIC_BYTES)]),
                }
            }
            Manner::Above => Ok(bytes.len()),
        }
    }

    /// Drops what waits; what comes later is dropped too.
    pub fn close(&mut self) {
        self.closed = true;
        self.waiting = Vec::new();
        self.written = 0;
        self.collected = VecDeque::new();
        self.collected_bytes = 0;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether something waits for the reader.
    pub fn is_waiting(&self) -> bool {
        self.written < self.waiting.len() || self.collected_bytes > 0
    }

    /// Whether so much waits that ranks should not be read.
    pub fn is_full(&self) -> bool {
        self.waiting.len() - self.written + self.collected_bytes > WAITING_BYTES_MAXIMUM
    }

    /// What it writes to.
    pub fn file(&self) -> Option<&File> {
        self.file.as_ref()
    }

    fn delay(&self, in_blocks: bool) -> Duration {
        match (self.is_terminal, in_blocks) {
            (true, _) => PROMPT_DELAY,
            (false, false) => UNFINISHED_DELAY,
            (false, true) => BLOCK_DELAY,
        }
    }
}

/// Whether two descriptors are the same file, as after `2>&1`.
pub fn same_file(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// What a read of a stream gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some bytes; there may be more.
    Bytes,
    /// Nothing now.
    Nothing,
    /// Every writer has closed it.
    End,
}

/// The output or error stream of one rank.
#[derive(Debug)]
pub struct Stream {
    pub rank: u32,
    /// Index of the sink that its lines go to.
    pub sink: usize,
    index: usize,
    pipe: File,
    /// The unfinished line, ...
    held: Vec<u8>,
    /// ... since when, and whether the last read was a whole number of blocks.
    held_since: Instant,
    in_blocks: bool,
    /// The line has already been too long to be held; the rest of it is not held either.
    overlong: bool,
}

impl Stream {
    /// A stream read from `pipe`, which must not block.
    pub fn new(index: usize, rank: u32, sink: usize, pipe: OwnedFd) -> Stream {
        let held_since = Instant::now();
        Stream {
            rank,
            sink,
            index,
            pipe: pipe.into(),
            held: Vec::new(),
            held_since,
            in_blocks: false,
            overlong: false,
        }
    }

    /// Reads once, and gives whole lines to `sink`; at the end, the rest.
    pub fn read(&mut self, buffer: &mut [u8], sink: &mut Sink) -> Progress {
        let count = match self.pipe.read(buffer) {
            Ok(0) => return self.end(sink),
            Ok(count) => count,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => return Progress::Nothing,
                _ => return self.end(sink),
            },
        };
        self.take(&buffer[..count], sink);
        Progress::Bytes
    }

    fn take(&mut self, bytes: &[u8], sink: &mut Sink) {
        let lines = memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1);
        if lines > 0 {
            self.release(sink);
            sink.push(self.index, self.rank, &bytes[..lines]);
            self.overlong = false;
        }
        let rest = &bytes[lines..];
        if self.overlong {
            return sink.push(self.index, self.rank, rest);
        }
        if self.held.is_empty() {
            self.held_since = Instant::now();
        }
        self.held.extend_from_slice(rest);
        self.in_blocks = bytes.len().is_multiple_of(BLOCK_BYTES);
        if self.held.len() > LINE_BYTES_MAXIMUM {
            self.release(sink);
            self.overlong = true;
        }
    }

    fn end(&mut self, sink: &mut Sink) -> Progress {
        self.release(sink);
        Progress::End
    }

    /// Gives the unfinished line away.
    pub fn release(&mut self, sink: &mut Sink) {
        sink.push(self.index, self.rank, &self.held);
        self.held.clear();
        self.held.shrink_to(LINE_BYTES_MAXIMUM);
    }

    /// When the unfinished line is to be released, if there is one.
    pub fn deadline(&self, sink: &Sink) -> Option<Instant> {
        (!self.held.is_empty()).then(|| self.held_since + sink.delay(self.in_blocks))
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn sink(label: bool) -> (Sink, File) {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        (Sink::new(writer.as_fd(), label).unwrap(), reader.into())
    }

    fn stream(index: usize) -> Stream {
        let (reader, _) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
        Stream::new(index, index as u32, 0, reader)
    }

    fn text(sink: &mut Sink, reader: &mut File) -> String {
        sink.flush().unwrap();
        let mut bytes = vec![0; 1 << 16];
        let count = reader.read(&mut bytes).unwrap_or(0);
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }

    #[test]
    fn lines_of_two_ranks_stay_whole() {
        let (mut sink, mut reader) = sink(false);
        let (mut one, mut two) = (stream(1), stream(2));
        one.take(b"first ", &mut sink);
        two.take(b"second line\nthi", &mut sink);
        one.take(b"line\n", &mut sink);
        assert_eq!(text(&mut sink, &mut reader), "second line\nfirst line\n");
        assert!(one.deadline(&sink).is_none() && two.deadline(&sink).is_some());
        two.release(&mut sink);
        assert_eq!(text(&mut sink, &mut reader), "thi");
    }

    #[test]
    fn labels_stand_at_the_beginning_of_lines_only() {
        let (mut sink, mut reader) = sink(true);
        let (mut one, mut two) = (stream(1), stream(2));
        one.take(b"a\nb\nc", &mut sink);
        one.release(&mut sink);
        one.take(b"d\n\n", &mut sink);
        assert_eq!(text(&mut sink, &mut reader), "[1] a\n[1] b\n[1] cd\n[1] \n");
        one.take(b"e", &mut sink);
        one.release(&mut sink);
        two.take(b"f\n", &mut sink);
        sink.say("mpiexec: done");
        assert_eq!(text(&mut sink, &mut reader), "[1] e\n[2] f\nmpiexec: done\n");
    }

    #[test]
    fn a_very_long_line_is_passed_on_in_pieces() {
        let (mut sink, _reader) = sink(false);
        let mut one = stream(1);
        for _ in 0..40 {
            one.take(&[b'x'; 1 << 16], &mut sink);
        }
        assert!(one.held.len() <= LINE_BYTES_MAXIMUM);
        assert!(sink.is_full());
        sink.flush().unwrap();
        assert!(sink.is_waiting());
    }

    #[test]
    fn an_agent_collects_what_its_ranks_write() {
        let mut sink = Sink::above(false);
        let (mut one, mut two) = (stream(1), stream(2));
        one.take(b"a\nb\n", &mut sink);
        one.take(b"c\n", &mut sink);
        two.take(b"d\n", &mut sink);
        assert!(sink.is_waiting() && !sink.is_full());
        assert_eq!(sink.take(), Some((1, b"a\nb\nc\n".to_vec())));
        assert_eq!(sink.take(), Some((2, b"d\n".to_vec())));
        assert!(sink.take().is_none() && !sink.is_waiting());
    }

    #[test]
    fn a_sink_without_a_reader_is_closed() {
        let (mut sink, reader) = sink(false);
        drop(reader);
        sink.push(0, 0, b"lost\n");
        assert_eq!(sink.flush().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        sink.push(0, 0, b"lost too\n");
        assert!(sink.is_closed() && !sink.is_waiting());
    }
}
