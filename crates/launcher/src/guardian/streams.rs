//! The output of the ranks on its way to ours.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::epoll;

use super::{Guardian, Source};
use crate::agent::frames::{Order, Report};
use crate::output::{Progress, Stream};

impl Guardian {
    pub(super) fn add_stream(&mut self, rank: usize, sink: usize, pipe: OwnedFd) {
        let index = self.streams.len();
        let stream = Stream::new(index, rank as u32, sink, pipe);
        if !self.paused[sink] {
            let _ = epoll::add(&self.epoll, &stream, Source::Stream(index).encode(), epoll::EventFlags::IN);
        }
        self.streams.push(Some(stream));
    }

    /// Reads a stream once; tells whether there may be more.
    pub(super) fn read_stream(&mut self, index: usize) -> bool {
        let Some(stream) = self.streams.get_mut(index).and_then(Option::as_mut) else { return false };
        let sink = &mut self.sinks[stream.sink];
        match stream.read(&mut self.buffer, sink) {
            Progress::Bytes => !sink.is_full(),
            Progress::Nothing => false,
            Progress::End => {
                self.streams[index] = None; // Closing it takes it from the poll set.
                false
            }
        }
    }

    /// Takes what a rank has written before its end is told.
    pub(super) fn drain(&mut self, rank: usize) {
        for index in 0..self.streams.len() {
            if self.streams[index].as_ref().is_some_and(|stream| stream.rank as usize == rank) {
                while self.read_stream(index) {}
                if let Some(stream) = &mut self.streams[index] {
                    stream.release(&mut self.sinks[stream.sink]);
                }
            }
        }
    }

    pub(super) fn flush(&mut self) {
        self.pass_output();
        for sink in 0..self.sinks.len() {
            if let Err(error) = self.sinks[sink].flush() {
                self.lose_sink(sink, &error);
            }
            let waiting = self.sinks[sink].is_waiting();
            if let Some(file) = self.sinks[sink].file()
                && waiting != self.polled[sink]
            {
                let _ = if waiting {
                    epoll::add(&self.epoll, file, Source::Sink(sink).encode(), epoll::EventFlags::OUT)
                } else {
                    epoll::delete(&self.epoll, file)
                };
                self.polled[sink] = waiting;
            }
            self.pause(sink, self.sinks[sink].is_full());
        }
        self.flush_channels();
    }

    /// Stops reading the streams of a sink, or goes on.
    pub(super) fn pause(&mut self, sink: usize, full: bool) {
        if self.paused[sink] == full {
            return;
        }
        self.paused[sink] = full;
        for (index, stream) in self.streams.iter().enumerate() {
            if let Some(stream) = stream.as_ref().filter(|stream| stream.sink == sink) {
                let _ = if full {
                    epoll::delete(&self.epoll, stream)
                } else {
                    let data = Source::Stream(index).encode();
                    epoll::add(&self.epoll, stream, data, epoll::EventFlags::IN)
                };
            }
        }
    }

    /// Our own output has failed. Ranks then see what they would see without us: a closed pipe.
    pub(super) fn lose_sink(&mut self, sink: usize, error: &io::Error) {
        self.close_output(sink);
        if error.kind() != io::ErrorKind::BrokenPipe {
            let name = ["standard output", "standard error"][sink];
            self.fail(1, &format!("{name} cannot be written: {error}"));
        }
    }

    /// Nobody takes the output of `sink` any more: ranks see a closed pipe.
    pub(super) fn close_output(&mut self, sink: usize) {
        for stream in &mut self.streams {
            stream.take_if(|stream| stream.sink == sink);
        }
        for stream in 0..2 {
            if stream as usize % self.sinks.len() == sink {
                self.order_all(&Order::CloseOutput(stream));
            }
        }
    }

    pub(super) fn say(&mut self, message: &str) {
        if self.above.is_some() {
            return self.report(Report::Say(message.to_owned()));
        }
        self.sinks.last_mut().expect("there is one at least").say(&format!("mpiexec: {message}"));
    }
}
