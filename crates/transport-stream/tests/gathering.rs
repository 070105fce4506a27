//! Which messages leave at once, and which are gathered.

use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicU32, Ordering};
use parnass_base::socket::Part;
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

/// Calls of the kernel for a row of messages, each so long after the one before.
fn calls(call: Duration, messages: u32, pause: Duration) -> u32 {
    let slow = Slow { call, calls: Arc::default() };
    let streams = Streams::new(Identity::new(&[1; 32], 0, 2, false), slow.clone(), Arc::default());
    streams.establish(1, slow.clone(), None).unwrap();
    for number in 0..messages {
        assert!(streams.post(1, 1, &[number.into()]));
        let began = Instant::now();
        while began.elapsed() < pause {}
    }
    streams.send_gathered();
    slow.calls.load(Ordering::Relaxed)
}

#[test]
fn messages_that_follow_each_other_are_gathered_however_long_a_call_takes() {
    for call in [Duration::ZERO, Duration::from_micros(50)] {
        let calls = calls(call, 300, Duration::ZERO);
        assert!(calls < 100, "{calls} calls of {call:?} for 300 messages");
    }
}

#[test]
fn messages_with_pauses_between_them_leave_at_once() {
    assert_eq!(calls(Duration::from_micros(5), 100, Duration::from_micros(50)), 100);
}
