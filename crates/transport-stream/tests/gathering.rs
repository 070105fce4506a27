//! Which messages leave at once, and which are gathered.

use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::socket::Part;
use parnass_base::{Scratch, UserAddress};
use parnass_transport_stream::handshake::Identity;
use parnass_transport_stream::{Carrier, Pipe, Sight, Streams};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection over which every call takes so long, and which counts them.
#[derive(Clone, Debug)]
struct Slow {
    call: Duration,
    calls: Arc<AtomicU32>,
}

impl Pipe for Slow {
    fn send(&self, parts: &[Part<'_>]) -> io::Result<usize> {
        let began = Instant::now();
        while began.elapsed() < self.call {}
        self.calls.fetch_add(1, Ordering::Relaxed);
        let length = |part: &Part<'_>| match *part {
            Part::Bytes(bytes) => bytes.len(),
            Part::User(_, length) => length,
        };
        Ok(parts.iter().map(length).sum())
    }

    fn receive(&self, _: UserAddress, _: usize, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn way(&self) -> &str {
        "a slow one"
    }

    fn finish(&self) {}

    fn cut(&self) {}
}

impl Carrier for Slow {
    type Pipe = Slow;
    const DISARMS: bool = false;

    fn connect(&self, _: u32) {}
    fn lost(&self, _: u32, _: io::Error) {}
    fn watch(&self, _: &Slow, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn block(&self, _: &Slow, _: usize, _: bool) {}
    fn forget(&self, _: &Slow) {}
    fn look(&self, _: &mut dyn FnMut(Sight<Slow>)) {}
    fn arm(&self) {}
    fn ring(&self) {}
    fn ring_after(&self, _: Duration) {}
}

/// Calls of the kernel for a row of messages with a payload of so many bytes, each so long after the one before.
fn calls(call: Duration, messages: u32, payload: usize, pause: Duration) -> u32 {
    let slow = Slow { call, calls: Arc::default() };
    let streams = Streams::new(Identity::new(&[1; 32], 0, 2, false), slow.clone(), Arc::default());
    streams.establish(1, slow.clone(), None).unwrap();
    let source = Scratch::new(payload);
    for number in 0..messages {
        let words = [number.into()];
        let sent = match payload {
            0 => streams.post(1, 1, &words),
            _ => streams.stream(1, 1, &words, source.address(), payload),
        };
        assert!(sent);
        let began = Instant::now();
        while began.elapsed() < pause {}
    }
    streams.send_gathered();
    slow.calls.load(Ordering::Relaxed)
}

#[test]
fn messages_that_follow_each_other_are_gathered_however_long_a_call_takes() {
    for call in [Duration::ZERO, Duration::from_micros(50)] {
        for (payload, most) in [(0, 100), (64, 100), (1024, 100), (4096, 150), (16 << 10, 150)] {
            let messages = if payload > 1024 { 200 } else { 300 };
            let calls = calls(call, messages, payload, Duration::ZERO);
            assert!(calls < most, "{calls} calls of {call:?} for {messages} messages with {payload} bytes");
        }
    }
}

#[test]
fn messages_with_pauses_between_them_leave_at_once() {
    for payload in [0, 64, 4096] {
        assert_eq!(calls(Duration::from_micros(5), 100, payload, Duration::from_micros(50)), 100);
    }
}
