//! What is lent is read where it lies: every answer to an offer, what is no answer and no offer, and what must never be read.

use parnass_base::lane::Message;
use parnass_base::socket::Part;
use parnass_base::{Scratch, UserAddress};
use parnass_transport::{BULK_WORD, Bulk, LENGTH_WORD, Network, PROCESS_BITS};
use parnass_transport_stream::handshake::Identity;
use parnass_transport_stream::offers::{LONGEST, MOST};
use parnass_transport_stream::seal::Keys;
use parnass_transport_stream::wire::{FrameKind, Head, OfferWords};
use parnass_transport_stream::{Carrier, Pipe, Region, Remote, Sight, StreamNetwork, Streams, lock};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How reads go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Luck {
    Good,
    /// Every second one fails, after it has begun.
    Fails,
    /// None can begin.
    Refused,
    /// No memory can be opened.
    Closed,
    /// None ends.
    Slow,
}

/// A read that is under way.
#[derive(Clone, Copy, Debug)]
struct Read {
    name: usize,
    from: Remote,
    target: UserAddress,
    length: usize,
}

/// What lies between two processes.
#[derive(Debug)]
struct Between {
    luck: Luck,
    /// Bytes on their way to each side.
    bytes: [VecDeque<u8>; 2],
    /// Memory of each side that is open: address and length; the most at once; the next name.
    open: [BTreeMap<u64, (usize, usize)>; 2],
    most: usize,
    names: u64,
    /// Reads of each side, and how many have begun.
    reads: [Vec<Read>; 2],
    begun: usize,
    lost: Vec<String>,
}

/// One end of it: the pipe, and what carries it.
#[derive(Clone, Debug)]
struct End {
    me: usize,
    between: Arc<Mutex<Between>>,
}

/// Keys begin here, and all memory has this address.
const FIRST_KEY: u64 = 1_000;
const ADDRESS: u64 = 77;

impl Pipe for End {
    fn send(&self, parts: &[Part<'_>]) -> io::Result<usize> {
        let queue = &mut lock(&self.between).bytes[1 - self.me];
        // Cut anywhere.
        let room = 70_001usize.saturating_sub(queue.len());
        let mut count = 0;
        for part in parts {
            let mut bytes = match *part {
                Part::Bytes(bytes) => bytes.to_vec(),
                Part::User(address, length) => {
                    let mut bytes = vec![0; length.min(room)];
                    address.read(&mut bytes);
                    bytes
                }
            };
            bytes.truncate(room - count);
            count += bytes.len();
            queue.extend(bytes);
        }
        if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
    }

    fn receive(&self, address: UserAddress, length: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let queue = &mut lock(&self.between).bytes[self.me];
        if queue.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = queue.len().min(length + buffer.len());
        let bytes: Vec<u8> = queue.drain(..count).collect();
        let (first, rest) = bytes.split_at(count.min(length));
        if !first.is_empty() {
            address.write(first);
        }
        buffer[..rest.len()].copy_from_slice(rest);
        Ok(count)
    }

    fn way(&self) -> &str {
        "memory"
    }

    fn reads(&self) -> usize {
        usize::MAX
    }

    fn read(&self, name: usize, from: Remote, target: UserAddress, length: usize) -> io::Result<()> {
        let mut between = lock(&self.between);
        if between.luck == Luck::Refused {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        between.begun += 1;
        between.reads[self.me].push(Read { name, from, target, length });
        Ok(())
    }

    fn finish(&self) {}

    fn cut(&self) {}
}

impl Carrier for End {
    type Pipe = End;

    fn connect(&self, _: u32) {}

    fn lost(&self, _: u32, error: io::Error) {
        lock(&self.between).lost.push(error.to_string());
    }

    fn watch(&self, _: &End, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn block(&self, _: &End, _: usize, _: bool) {}

    fn forget(&self, _: &End) {}

    fn open_region(&self, address: UserAddress, length: usize) -> io::Result<Region> {
        let mut between = lock(&self.between);
        if between.luck == Luck::Closed {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let name = between.names;
        between.names += 1;
        between.open[self.me].insert(name, (address.value(), length));
        between.most = between.most.max(between.open[self.me].len());
        Ok(Region { name, remote: Remote { key: FIRST_KEY + name, address: ADDRESS } })
    }

    fn close_region(&self, name: u64) {
        assert!(lock(&self.between).open[self.me].remove(&name).is_some(), "region {name} is closed twice");
    }

    fn end_reads(&self, _: u32) {
        lock(&self.between).reads[self.me].clear();
    }

    fn look(&self, tell: &mut dyn FnMut(Sight<End>)) {
        let mut over = Vec::new();
        {
            let mut between = lock(&self.between);
            let reads = match between.luck {
                Luck::Slow => Vec::new(),
                _ => std::mem::take(&mut between.reads[self.me]),
            };
            for read in reads {
                let (address, length) = between.open[1 - self.me][&(read.from.key - FIRST_KEY)];
                assert!(read.length <= length && read.from.address == ADDRESS, "{read:?} of {length} bytes");
                let fails = between.luck == Luck::Fails && read.from.key.is_multiple_of(2);
                let count = if fails { read.length / 2 } else { read.length };
                read.target.copy_apart(UserAddress::restore(address), count);
                over.push((read.name, if fails { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }));
            }
        }
        over.into_iter().for_each(|(name, result)| tell(Sight::Read(name, result)));
        tell(Sight::Readable(0));
        tell(Sight::Writable(0));
    }

    fn arm(&self) {}

    fn ring(&self) {}

    fn ring_after(&self, _: Duration) {}
}

type Side = StreamNetwork<End>;

fn between(luck: Luck) -> Arc<Mutex<Between>> {
    let (bytes, open, reads) = Default::default();
    let (most, names, begun, lost) = (0, 0, 0, Vec::new());
    Arc::new(Mutex::new(Between { luck, bytes, open, most, names, reads, begun, lost }))
}

fn side(me: u32, between: &Arc<Mutex<Between>>, keys: Option<Keys>) -> Side {
    let end = End { me: me as usize, between: between.clone() };
    let identity = Identity::new(&[1; 32], me, 2, false);
    let streams = Arc::new(Streams::new(identity, end.clone(), Arc::default()));
    streams.establish(1 - me, end, keys).unwrap();
    StreamNetwork::start(streams, "nobody", || ()).unwrap()
}

fn pair(luck: Luck) -> (Arc<Mutex<Between>>, Side, Side) {
    let between = between(luck);
    let (first, second) = (side(0, &between, None), side(1, &between, None));
    (between, first, second)
}

fn message(sender: u32, number: u32, word: u64) -> Message {
    Message { tag: number << PROCESS_BITS | sender, words: [word, 0, 0, 0, 0, 0, 0] }
}

const LENT: u32 = 2;
const LANDED: u32 = 7;
const SENT: u32 = 8;

fn number(message: &Message) -> u32 {
    message.tag >> PROCESS_BITS
}

fn filled(length: usize, seed: usize) -> Scratch {
    let scratch = Scratch::new(length);
    scratch.address().write(&(0..length).map(|index| (index / 3 + seed) as u8).collect::<Vec<_>>());
    scratch
}

fn content(scratch: &Scratch) -> Vec<u8> {
    let mut bytes = vec![0; scratch.len()];
    scratch.address().read(&mut bytes);
    bytes
}

/// `side` lends memory to the other one.
fn lend(side: &Side, word: u64, source: &Scratch) {
    let me = side.me();
    let then = message(me, SENT, word);
    side.lend(1 - me, message(me, LENT, 0).tag, word, source.address(), source.len(), then);
}

/// Takes all that has come; the messages.
fn taken(side: &Side) -> Vec<Message> {
    let mut taken = Vec::new();
    for _ in 0..20 {
        side.look();
        side.take(10, &mut |message| {
            taken.push(*message);
            true
        });
    }
    taken
}

/// What the target does with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Land,
    LandLater,
    Shorten,
    Discard,
}

/// Lends a few payloads, and puts them where `wishes` say; everything is told once, and nothing is left. How many reads there were.
fn lend_all(luck: Luck, lengths: &[usize], wishes: &[Wish]) -> usize {
    let (between, first, second) = pair(luck);
    let sources: Vec<Scratch> =
        lengths.iter().enumerate().map(|(seed, length)| filled(*length, seed)).collect();
    let targets: Vec<Scratch> = lengths.iter().map(|length| filled(*length, 99)).collect();
    let mut expected: Vec<Vec<u8>> = targets.iter().map(content).collect();
    (0..).zip(&sources).for_each(|(word, source)| lend(&first, word, source));
    let (mut settled, mut sent) = (0, vec![0; lengths.len()]);
    let (mut parts, mut later) = (0, Vec::new());
    let total: usize = lengths.iter().sum();
    let mut tries = 0;
    while settled != total || sent.contains(&0) {
        tries += 1;
        assert!(tries < 100_000, "{settled} of {total} bytes, and {sent:?}");
        first.look();
        first.take(10, &mut |message| {
            assert_eq!(number(message), SENT);
            sent[message.words[0] as usize] += 1;
            true
        });
        second.look();
        let mut land = |message: &Message, wish: Wish| {
            let [word, offset, part] = [0, 1, LENGTH_WORD].map(|at| message.words[at] as usize);
            let room = if wish == Wish::Shorten { part / 2 } else { part };
            let mut bytes = vec![0; room];
            sources[word].address().offset(offset as i64).read(&mut bytes);
            expected[word][offset..offset + room].copy_from_slice(&bytes);
            let then = self::message(1, LANDED, part as u64);
            let target = targets[word].address().offset(offset as i64);
            if second.land(Bulk(message.words[BULK_WORD]), target, room, then) { part } else { 0 }
        };
        for message in std::mem::take(&mut later) {
            settled += land(&message, Wish::Land);
        }
        second.take(10, &mut |message| {
            if number(message) == LANDED {
                settled += message.words[0] as usize;
                return true;
            }
            assert_eq!(number(message), LENT);
            let wish = wishes[parts % wishes.len()];
            parts += 1;
            match wish {
                Wish::LandLater => later.push(*message),
                Wish::Discard => {
                    second.discard(Bulk(message.words[BULK_WORD]));
                    settled += message.words[LENGTH_WORD] as usize;
                }
                _ => settled += land(message, wish),
            }
            true
        });
    }
    assert!(sent.iter().all(|count| *count == 1), "{sent:?}");
    for (target, expected) in targets.iter().zip(&expected) {
        assert!(content(target) == *expected, "other bytes than were lent");
    }
    let between = lock(&between);
    assert!(between.open[0].is_empty(), "regions stay open");
    assert!(between.most <= MOST && between.lost.is_empty(), "{:?}", between.lost);
    between.begun
}

#[test]
fn offers_are_settled_in_every_way() {
    for luck in [Luck::Good, Luck::Fails, Luck::Refused, Luck::Closed] {
        let reads = if matches!(luck, Luck::Good | Luck::Fails) { 6 } else { 0 };
        for wish in [Wish::Land, Wish::LandLater, Wish::Shorten, Wish::Discard] {
            let expected = match wish {
                Wish::Discard => 0,
                // Of the last byte nothing is left.
                Wish::Shorten => reads.min(5),
                _ => reads,
            };
            assert_eq!(lend_all(luck, &[5 * LONGEST + 1], &[wish]), expected, "{luck:?} {wish:?}");
        }
        // The first two are short.
        let lengths = [1, (64 << 10) - 1, 64 << 10, 100_000, LONGEST, LONGEST + 1];
        assert_eq!(lend_all(luck, &lengths, &[Wish::Land]), reads.min(5), "{luck:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn however_it_goes_all_is_told_once(
        luck in prop_oneof![Just(Luck::Good), Just(Luck::Fails), Just(Luck::Refused), Just(Luck::Closed)],
        lengths in proptest::collection::vec(1usize..9_000_000, 1..4),
        wishes in proptest::collection::vec(
            prop_oneof![Just(Wish::Land), Just(Wish::LandLater), Just(Wish::Shorten), Just(Wish::Discard)],
            1..6,
        ),
    ) {
        lend_all(luck, &lengths, &wishes);
    }
}

#[test]
fn the_owner_is_told_when_all_is_settled_and_not_before() {
    let (between, first, second) = pair(Luck::Good);
    let source = filled(2 * LONGEST, 1);
    lend(&first, 0, &source);
    let parts = taken(&second);
    assert_eq!(parts.len(), 2);
    second.discard(Bulk(parts[1].words[BULK_WORD]));
    assert_eq!(taken(&first), []);
    assert_eq!(lock(&between).open[0].len(), 1, "what has no answer stays open, and nothing else");
    let target = Scratch::new(LONGEST);
    lock(&between).luck = Luck::Slow;
    let then = message(1, LANDED, 0);
    assert!(!second.land(Bulk(parts[0].words[BULK_WORD]), target.address(), LONGEST, then));
    assert_eq!((taken(&second), taken(&first)), (vec![], vec![]), "it is still being read");
    assert_eq!(lock(&between).open[0].len(), 1);
    lock(&between).luck = Luck::Good;
    assert_eq!(taken(&second), [then]);
    assert_eq!(taken(&first), [message(0, SENT, 0)]);
    assert!(lock(&between).open[0].is_empty());
}

#[test]
fn nothing_is_read_for_a_peer_that_is_given_up() {
    let (between, first, second) = pair(Luck::Slow);
    let source = filled(6 * LONGEST, 1);
    lend(&first, 0, &source);
    let parts = taken(&second);
    assert_eq!(parts.len(), MOST, "as many are on offer as may be");
    let target = filled(LONGEST, 9);
    let then = message(1, LANDED, 0);
    assert!(!second.land(Bulk(parts[0].words[BULK_WORD]), target.address(), LONGEST, then));
    assert_eq!(lock(&between).reads[1].len(), 1);
    second.give_up(0);
    assert!(lock(&between).reads[1].is_empty(), "it may still write");
    lock(&between).luck = Luck::Good;
    assert!(!second.land(Bulk(parts[1].words[BULK_WORD]), target.address(), LONGEST, then));
    second.discard(Bulk(parts[2].words[BULK_WORD]));
    assert_eq!(taken(&second), []);
    assert!(
        content(&target) == content(&filled(LONGEST, 9)),
        "memory was written to that is the user's again"
    );
    assert_eq!(lock(&between).open[0].len(), MOST);
    first.give_up(1);
    assert!(lock(&between).open[0].is_empty(), "a peer that is dead may read");
}

#[test]
fn who_leaves_gives_back_what_was_offered() {
    let (between, first, second) = pair(Luck::Good);
    let source = filled(LONGEST, 1);
    lend(&first, 0, &source);
    assert_eq!(taken(&second).len(), 1);
    second.close();
    assert_eq!(taken(&first), []);
    assert!(lock(&between).open[0].is_empty(), "who has said goodbye reads nothing");
}

#[test]
fn who_offers_leaves_when_that_is_settled() {
    let (between, first, second) = pair(Luck::Good);
    let source = filled(6 * LONGEST, 1);
    lend(&first, 0, &source);
    let target = filled(source.len(), 9);
    let mut landed = 0;
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| first.close());
        while landed != 6 {
            second.look();
            second.take(10, &mut |message| {
                if number(message) == LANDED {
                    landed += 1;
                    return true;
                }
                let place = target.address().offset(message.words[1] as i64);
                let bulk = Bulk(message.words[BULK_WORD]);
                landed += usize::from(second.land(bulk, place, LONGEST, self::message(1, LANDED, 0)));
                true
            });
        }
        closing.join().unwrap();
    });
    assert!(content(&target) == content(&source), "other bytes than were lent");
    assert!(lock(&between).open[0].is_empty());
}

#[test]
fn what_is_encrypted_is_never_read() {
    let between = between(Luck::Good);
    let keys = |sending, receiving| Some(Keys { sending: [sending; 32], receiving: [receiving; 32] });
    let (first, second) = (side(0, &between, keys(1, 2)), side(1, &between, keys(2, 1)));
    let source = filled(LONGEST, 1);
    let target = Scratch::new(LONGEST);
    lend(&first, 0, &source);
    let mut landed = 0;
    while landed != LONGEST {
        first.look();
        first.take(10, &mut |_| true);
        second.look();
        second.take(10, &mut |message| {
            if number(message) == LANDED {
                landed += message.words[0] as usize;
                return true;
            }
            let [offset, part] = [1, LENGTH_WORD].map(|at| message.words[at]);
            let place = target.address().offset(offset as i64);
            let then = self::message(1, LANDED, part);
            if second.land(Bulk(message.words[BULK_WORD]), place, part as usize, then) {
                landed += part as usize;
            }
            true
        });
    }
    assert!(content(&target) == content(&source));
    let between = lock(&between);
    assert_eq!((between.most, between.begun), (0, 0));
}

/// A frame as bytes.
fn frame(kind: FrameKind, tag: u32, words: &[u64], payload: u32) -> Vec<u8> {
    let head = Head { kind, words: words.len() as u8, counted: false, tag, returned: 0, payload };
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    head.encode().into_iter().chain(words).collect()
}

fn offer(length: u64, number: u64) -> Vec<u8> {
    let words = OfferWords { word: 1, offset: 0, length, key: FIRST_KEY, address: ADDRESS, number };
    frame(FrameKind::Offer, 0, &words.encode(), 0)
}

/// What rank 1 says of rank 0, that has sent these bytes; with `lends` it has itself lent something.
fn complaint(bytes: &[u8], lends: bool) -> String {
    let between = between(Luck::Slow);
    let second = side(1, &between, None);
    let source = filled(LONGEST, 1);
    if lends {
        lend(&second, 0, &source);
    }
    lock(&between).bytes[1].extend(bytes);
    taken(&second);
    // Nobody would hear the goodbye.
    second.give_up(0);
    let between = lock(&between);
    assert!(between.open[1].is_empty(), "a peer that is lost may read");
    between.lost.join("; ")
}

#[test]
fn what_is_no_offer_and_no_answer_ends_the_stream() {
    let more = "offers more than it may";
    let unknown = "answers an offer that was not made";
    let part = "a part of what nobody has asked for";
    let all = |count: u64| (0..count).flat_map(|number| offer(1, number)).collect::<Vec<u8>>();
    let answer = |kind, number| frame(kind, 0, &[number], 0);
    let longest = LONGEST as u64;
    for (bytes, lends, expected) in [
        (offer(longest, 0), false, ""),
        (all(MOST as u64), false, ""),
        (all(MOST as u64 + 1), false, more),
        (offer(0, 0), false, more),
        (offer(longest + 1, 0), false, more),
        (offer(u64::MAX, 0), false, more),
        (offer(1, 1), false, more),
        ([offer(1, 0), offer(1, 0)].concat(), false, more),
        (frame(FrameKind::Offer, 7, &[0, 0, 1, 0, 0, 0], 0), false, "in the name of another rank"),
        (frame(FrameKind::Offer, 5 << 28, &[0, 0, 1, 0, 0, 0], 0), false, "never travels"),
        (answer(FrameKind::Taken, 0), false, unknown),
        (answer(FrameKind::Taken, 0), true, ""),
        (answer(FrameKind::Declined, 1), true, unknown),
        (answer(FrameKind::Instead, u64::MAX), true, unknown),
        ([answer(FrameKind::Taken, 0), answer(FrameKind::Taken, 0)].concat(), true, unknown),
        ([answer(FrameKind::Instead, 0), answer(FrameKind::Taken, 0)].concat(), true, unknown),
        ([answer(FrameKind::Instead, 0), answer(FrameKind::Instead, 0)].concat(), true, unknown),
        (frame(FrameKind::Part, 0, &[0], 1), false, part),
        // On offer, but nobody has asked for its bytes.
        ([offer(9, 0), frame(FrameKind::Part, 0, &[0], 9)].concat(), false, part),
        (frame(FrameKind::Taken, 0, &[], 0), false, "no frame"),
        (frame(FrameKind::Taken, 0, &[0, 0], 0), false, "no frame"),
        (frame(FrameKind::Part, 0, &[0], 0), false, "no frame"),
        (frame(FrameKind::Offer, 0, &[0; 5], 0), false, "no frame"),
    ] {
        let said = complaint(&bytes, lends);
        assert_eq!(said.is_empty(), expected.is_empty(), "{bytes:?}: {said}");
        assert!(said.contains(expected), "{bytes:?}: {said}");
    }
}

#[test]
fn parts_bring_what_was_asked_for_and_no_more() {
    let part = |number, bytes: &[u8]| {
        [&frame(FrameKind::Part, 0, &[number], bytes.len() as u32)[..], bytes].concat()
    };
    for (bytes, expected) in [
        ([part(0, b"read"), part(0, b" instead")].concat(), ""),
        ([part(0, b"read instead"), part(0, b"!")].concat(), "nobody has asked for"),
        ([part(0, b"read"), part(0, b" instead!")].concat(), "nobody has asked for"),
        (part(1, b"read"), "nobody has asked for"),
    ] {
        let between = between(Luck::Refused);
        let second = side(1, &between, None);
        lock(&between).bytes[1].extend(offer(12, 0));
        let parts = taken(&second);
        let target = filled(12, 9);
        let then = message(1, LANDED, 0);
        assert!(!second.land(Bulk(parts[0].words[BULK_WORD]), target.address(), 12, then));
        lock(&between).bytes[1].extend(bytes);
        let told = taken(&second);
        let said = lock(&between).lost.join("; ");
        assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
        assert!(said.contains(expected), "{said}");
        if expected.is_empty() {
            assert_eq!((told, content(&target)), (vec![then], b"read instead".to_vec()));
        }
        second.give_up(0);
    }
}

proptest! {
    #[test]
    fn whatever_comes_over_a_stream_with_reads(
        frames in proptest::collection::vec((0u8..10, 0u64..6, 0u64..20, any::<u8>()), 0..12),
        change in any::<Option<(usize, u8)>>(),
        wishes in any::<u8>(),
    ) {
        let between = between(if wishes & 1 == 0 { Luck::Refused } else { Luck::Slow });
        let second = side(1, &between, None);
        let source = filled(100_000, 1);
        lend(&second, 0, &source);
        let mut bytes = Vec::new();
        for (kind, number, length, byte) in frames {
            bytes.extend(match kind {
                0..=3 => offer(length + 1, number),
                4 => frame(FrameKind::Taken, 0, &[number], 0),
                5 => frame(FrameKind::Declined, 0, &[number], 0),
                6 => frame(FrameKind::Instead, 0, &[number], 0),
                7 => frame(FrameKind::Credit, 0, &[], 0),
                _ => {
                    let payload = vec![byte; length as usize + 1];
                    [frame(FrameKind::Part, 0, &[number], payload.len() as u32), payload].concat()
                }
            });
        }
        if let Some((at, byte)) = change
            && !bytes.is_empty()
        {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        lock(&between).bytes[1].extend(bytes);
        let target = Scratch::new(20);
        for turn in 0..10 {
            second.look();
            second.take(3, &mut |message| {
                let bulk = Bulk(message.words[BULK_WORD]);
                match (wishes >> (turn % 8)) & 3 {
                    0 => second.discard(bulk),
                    1 => return false,
                    _ => drop(second.land(bulk, target.address(), 10, self::message(1, LANDED, 0))),
                }
                true
            });
        }
        second.give_up(0);
        prop_assert!(lock(&between).open[1].is_empty());
    }
}

#[test]
fn what_more_follows_waits_for_it() {
    let (between, first, second) = pair(Luck::Good);
    let under_way = || lock(&between).bytes[1].len();
    let post = |word| assert!(first.post(1, message(0, 1, 0).tag, &[word]));
    post(1);
    let one = under_way();
    assert_ne!(one, 0, "a lone message leaves at once");
    // Long enough after it that the next is a lone one too.
    std::thread::sleep(Duration::from_millis(1));
    first.more_follows(1);
    post(2);
    assert_eq!(under_way(), one);
    post(3);
    first.poll();
    assert_eq!(under_way(), 3 * one, "who waits sends what was gathered");
    let words: Vec<u64> = taken(&second).iter().map(|message| message.words[0]).collect();
    assert_eq!(words, [1, 2, 3]);
    std::thread::sleep(Duration::from_millis(1));
    post(4);
    assert_eq!(under_way(), one, "what was said was of one message");
}

#[test]
fn a_few_that_follow_each_other_leave_at_once() {
    let (between, first, _second) = pair(Luck::Good);
    let mut under_way = 0;
    for word in 0..4 {
        assert!(first.post(1, message(0, 1, 0).tag, &[word]));
        let now = lock(&between).bytes[1].len();
        assert!(now > under_way, "message {word} waits");
        under_way = now;
    }
}
