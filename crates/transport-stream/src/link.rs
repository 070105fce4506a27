//! The links of a process, and how it sends.

use crate::attendance::STAYED;
use crate::books::Refusals;
use crate::handshake::{Acquainted, Identity};
use crate::incoming::{Incoming, Notes};
use crate::offers::Answer;
use crate::outgoing::Outgoing;
use crate::peer::{Pair, Peer, Peers};
use crate::pipe::{Carrier, Pipe, Sight};
use crate::seal::{Keys, Opener, Sealer};
use crate::wire::{FrameKind, Head, JOB_BYTES};
use parnass_base::UserAddress;
use parnass_base::atomics::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use parnass_base::lane::Message;
use parnass_base::socket::Part;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// A payload up to this long is copied behind its frame: it may meet others on their way.
const GATHERED: usize = 16 << 10;
/// Bytes gathered before they are sent though nobody waits for them: at first, so that the peer soon has something to
/// do, and at most. To send costs as much as to gather 30 small messages: with 512 bytes at first, windows of 64 took a quarter
/// longer, those of both sides at once twice as long.
const BATCH: (usize, usize) = (4 << 10, 64 << 10);
/// Bytes that a link keeps in copy before it says that there is no room.
const ROOM: usize = 1 << 20;
/// A longer payload is sent unasked only where nothing stands before it, so that most of it need not be copied.
const COPIED: usize = 64 << 10;
/// What is sent so long after the last one was handed to the kernel goes at once; sooner, it may meet others. (Not after the last call began: where the
/// call takes longer than this, nothing ever met another.)
const LONE: Duration = Duration::from_micros(2);
/// So many that follow each other sooner go at once all the same, while the keeper does not look after what is gathered: to call it
/// costs as much as to send, and it takes the processor from this thread.
const FEW: u32 = 3;

/// How long the end of a process waits for what it has to say: longer than a connection may take to come up.
const FAREWELL: Duration = Duration::from_secs(30);
/// And then for its peers to know that it is gone.
const PARTING: Duration = Duration::from_secs(5);

/// In what state a link is.
#[derive(Debug)]
pub enum Stage<P> {
    /// Nobody has asked for it.
    Idle,
    /// Asked for; the carrier is at it.
    Wanted,
    /// A connection, and its number among the receiving sides.
    Up(Arc<P>, usize),
    /// One side has said goodbye.
    Over,
    /// The peer is lost.
    Lost,
}

/// What a link sends, and over what.
#[derive(Debug)]
pub struct Out<P> {
    pub stage: Stage<P>,
    pub row: Outgoing,
    /// The longest run of this process's memory that the peer can read; 0: what is lent is sent.
    pub(crate) reads: usize,
    /// Where the connection is encrypted.
    sealer: Option<Sealer>,
    /// The connection took no more, and tells when it does.
    pub(crate) blocked: bool,
    /// Stands in the list of links with something gathered.
    gathered: bool,
    /// When the last call of the kernel for a message on its way at once, or a full batch, was over.
    last: Option<Instant>,
    /// How many were sent since the last lone one, if it is few.
    close: u32,
    /// See [`parnass_transport::Network::more_follows`].
    more_follows: bool,
    /// Bytes that are gathered now.
    batch: usize,
    /// The two ends of the connection, for messages.
    pub way: String,
}

impl<P> Out<P> {
    /// Whether all is sent.
    fn is_sent(&self) -> bool {
        self.row.is_empty() && self.sealer.as_ref().is_none_or(|sealer| sealer.unsent().is_empty())
    }

    /// Whether the next frame meets no others on its way.
    fn is_lone(&mut self) -> bool {
        !std::mem::take(&mut self.more_follows) && self.row.is_empty()
    }

    /// Forgets what is not sent.
    pub(crate) fn clear(&mut self) {
        self.row.clear();
        self.sealer = None;
    }
}

/// The link to one peer.
#[derive(Debug)]
pub struct Link<P> {
    peer: u32,
    pub out: Mutex<Out<P>>,
    /// Payload bytes whose credit is to be given back.
    owed: AtomicU32,
    /// Payload bytes of this process that the peer may hold.
    used: AtomicU64,
}

/// A peer that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub rank: u32,
    /// A sentence for a person: who, where, why, and what to do.
    pub text: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// What the threads of the process and the keeper share.
pub struct Streams<C: Carrier> {
    pub carrier: C,
    pub identity: Identity,
    peers: Peers<C::Pipe>,
    /// How many times this process has said that it is about to be told of processes of other worlds, less how many times it
    /// was: meanwhile strangers wait.
    pub expecting: AtomicU32,
    pub incoming: Mutex<Incoming<C::Pipe>>,
    /// Messages for this process from itself: what was lent is sent, what was to land is there.
    told: Mutex<VecDeque<Message>>,
    told_count: AtomicU32,
    /// Links with something gathered.
    gathered: Mutex<Vec<u32>>,
    gathered_count: AtomicU32,
    /// Whether a thread of the process has sent what was gathered since the keeper last looked.
    pub(crate) sent_itself: AtomicBool,
    /// Whether the keeper looks after what is gathered.
    pub attentive: AtomicBool,
    /// Whether somebody else has armed the carrier since the keeper last looked.
    pub armed: AtomicBool,
    /// Whether the carrier is armed: the keeper will be told of the next arrival.
    pub watched: AtomicBool,
    /// Whether the keeper takes in what has come, and whether somebody has asked meanwhile that it be told of more: see `attendance`.
    pub(crate) tended: AtomicU32,
    /// The [`Prospect`] for which it was armed last, as a number, or 0.
    pub prospect: AtomicU32,
    /// The prospects for which what the keeper was told of last had been taken by others before it, a bit each.
    pub needless: AtomicU32,
    /// How often the process has taken something itself since the carrier was armed: each time the keeper was woken, and found nothing.
    pub(crate) stale: AtomicU32,
    /// Whether the keeper is going to come by the clock, see `attendance`.
    pub(crate) reminded: AtomicBool,
    /// How often it came and the process had not stayed away; few.
    pub(crate) calls: AtomicU32,
    /// When the process left the library, where requests may come, in nanoseconds since `began`; 0: it waits there.
    pub(crate) left: AtomicU64,
    /// When something was begun first, since a thread of the process waited, that the keeper was not asked to watch; 0: nothing.
    pub(crate) unheard: AtomicU64,
    /// When something was begun first, since a thread of the process waited, that the keeper was asked to watch; 0: nothing.
    pub(crate) begun: AtomicU64,
    /// How often the process stayed away for a while when it left, and when it had begun something, see `attendance`.
    pub(crate) away: AtomicU32,
    pub(crate) stayed: AtomicU32,
    pub(crate) began: Instant,
    /// Whether the keeper is to arm the carrier.
    pub wanted: AtomicBool,
    /// Whether a look has sent something that had to wait for room.
    pub moved: AtomicBool,
    pub closing: AtomicBool,
    pub stopping: AtomicBool,
    /// Bytes of payloads that a peer may be made to hold.
    window: u64,
    pub refusals: Arc<Refusals>,
}

impl<C: Carrier> fmt::Debug for Streams<C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "streams of {:?} over {:?}", self.identity, self.carrier)
    }
}

/// Takes the lock; that another thread has panicked with it changes nothing.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the lock unless somebody has it.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl<C: Carrier> Streams<C> {
    /// Of the rank that `identity` says, over `carrier`.
    pub fn new(identity: Identity, carrier: C, refusals: Arc<Refusals>) -> Streams<C> {
        let size = u64::from(identity.size);
        Streams {
            peers: Peers::new(identity),
            expecting: AtomicU32::new(0),
            window: ((256 << 20) / size).clamp(256 << 10, 4 << 20),
            carrier,
            identity,
            incoming: Mutex::default(),
            told: Mutex::default(),
            told_count: AtomicU32::new(0),
            gathered: Mutex::default(),
            gathered_count: AtomicU32::new(0),
            sent_itself: AtomicBool::new(false),
            attentive: AtomicBool::new(false),
            armed: AtomicBool::new(true),
            watched: AtomicBool::new(true),
            tended: AtomicU32::new(0),
            prospect: AtomicU32::new(0),
            needless: AtomicU32::new(0),
            stale: AtomicU32::new(0),
            reminded: AtomicBool::new(false),
            calls: AtomicU32::new(0),
            unheard: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            stayed: AtomicU32::new(STAYED),
            left: AtomicU64::new(0),
            away: AtomicU32::new(0),
            began: Instant::now(),
            wanted: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            refusals,
        }
    }

    /// What is known of a peer.
    pub fn peer(&self, peer: u32) -> &Peer<C::Pipe> {
        self.peers.get(peer)
    }

    /// See [`crate::StreamNetwork::admit`].
    pub fn admit(&self, pairs: &[Pair], before: impl FnOnce(u32)) -> io::Result<u32> {
        let first = self.peers.admit(pairs, before)?;
        self.carrier.acquainted();
        Ok(first)
    }

    /// The process of another world whose hellos to this one have this name.
    pub fn acquainted(&self, name: &[u8; JOB_BYTES]) -> Option<Acquainted> {
        self.peers.find(name)
    }

    /// See [`crate::StreamNetwork::let_go`].
    pub fn let_go(&self, number: u32) {
        self.peers.forget(number);
        let Some(link) = self.peer(number).link.get() else { return };
        let mut out = lock(&link.out);
        let out = &mut *out;
        match &out.stage {
            Stage::Up(pipe, _) => {
                let pipe = pipe.clone();
                out.row.frame(&Self::goodbye_head(), &[]);
                self.write(link, out);
                if out.is_sent() {
                    pipe.finish();
                    out.stage = Stage::Over;
                }
            }
            Stage::Idle | Stage::Wanted => out.stage = Stage::Over,
            Stage::Over | Stage::Lost => (),
        }
    }

    fn goodbye_head() -> Head {
        Head { kind: FrameKind::Goodbye, words: 0, counted: false, tag: 0, returned: 0, payload: 0 }
    }

    /// The link to a peer.
    pub fn link(&self, peer: u32) -> &Link<C::Pipe> {
        self.peer(peer).link.get_or_init(|| {
            assert!(peer != self.identity.me, "a link of a process to itself");
            let out = Out {
                stage: Stage::Idle,
                row: Outgoing::default(),
                reads: 0,
                sealer: None,
                blocked: false,
                gathered: false,
                last: None,
                close: 0,
                more_follows: false,
                batch: BATCH.0,
                way: "not connected yet".to_owned(),
            };
            Box::new(Link { peer, out: Mutex::new(out), owed: AtomicU32::new(0), used: AtomicU64::new(0) })
        })
    }

    /// The links that there are.
    pub fn links(&self) -> impl Iterator<Item = &Link<C::Pipe>> {
        self.peers.all().filter_map(|peer| peer.link.get().map(Box::as_ref))
    }

    pub fn tell(&self, message: Message) {
        let mut told = lock(&self.told);
        told.push_back(message);
        self.told_count.store(told.len() as u32, Ordering::Release);
    }

    pub fn has_told(&self) -> bool {
        self.told_count.load(Ordering::Acquire) != 0
    }

    pub fn next_told(&self) -> Option<Message> {
        let mut told = lock(&self.told);
        let message = told.pop_front();
        self.told_count.store(told.len() as u32, Ordering::Release);
        message
    }

    pub fn untell(&self, message: Message) {
        let mut told = lock(&self.told);
        told.push_front(message);
        self.told_count.store(told.len() as u32, Ordering::Release);
    }

    // ---- sending

    pub(crate) fn head(link: &Link<C::Pipe>, tag: u32, words: usize, payload: usize, counted: bool) -> Head {
        let returned = link.owed.swap(0, Ordering::Relaxed);
        let kind = FrameKind::Message;
        Head { kind, words: words as u8, counted, tag, returned, payload: payload as u32 }
    }

    /// Makes sure that there is a connection, or will be. Whether anything may be added to the row.
    pub(crate) fn ready<'a>(
        &self,
        link: &Link<C::Pipe>,
        out: &'a mut Out<C::Pipe>,
    ) -> Option<&'a mut Out<C::Pipe>> {
        match out.stage {
            Stage::Idle => {
                out.stage = Stage::Wanted;
                self.carrier.connect(link.peer);
            }
            Stage::Wanted | Stage::Up(..) => (),
            Stage::Over | Stage::Lost => return None,
        }
        Some(out)
    }

    /// See [`parnass_transport::Network::post`].
    pub fn post(&self, target: u32, tag: u32, words: &[u64]) -> bool {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        if guard.row.copied() > ROOM {
            return false;
        }
        // Who has said goodbye awaits nothing, and to a lost peer nothing goes.
        let Some(out) = self.ready(link, &mut guard) else { return true };
        let lone = out.is_lone();
        out.row.frame(&Self::head(link, tag, words.len(), 0, false), words);
        self.go(link, out, lone);
        true
    }

    /// See [`parnass_transport::Network::stream`].
    pub fn stream(&self, target: u32, tag: u32, words: &[u64], source: UserAddress, length: usize) -> bool {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        let used = link.used.load(Ordering::Relaxed);
        if guard.row.copied() > ROOM || used + length as u64 > self.window {
            return false;
        }
        if length > COPIED && (guard.blocked || !guard.row.is_empty()) {
            return false;
        }
        let Some(out) = self.ready(link, &mut guard) else { return true };
        link.used.fetch_add(length as u64, Ordering::Relaxed);
        let lone = out.is_lone();
        out.row.frame(&Self::head(link, tag, words.len(), length, true), words);
        let up = matches!(out.stage, Stage::Up(..));
        if length <= GATHERED || !up {
            out.row.copy_payload(source, length);
            self.go(link, out, lone);
        } else {
            out.row.place_payload(source, length);
            if !out.blocked {
                self.write_now(link, out);
            }
            out.row.keep();
        }
        true
    }

    /// See [`parnass_transport::Network::more_follows`].
    pub fn more_follows(&self, target: u32) {
        lock(&self.link(target).out).more_follows = true;
    }

    /// See [`parnass_transport::Network::lend`].
    pub fn lend(&self, target: u32, tag: u32, word: u64, source: UserAddress, length: usize, then: Message) {
        let link = self.link(target);
        let mut guard = lock(&link.out);
        let Some(out) = self.ready(link, &mut guard) else {
            self.tell(then);
            return;
        };
        out.row.lend(tag, word, source, length, then);
        if matches!(out.stage, Stage::Up(..)) && !out.blocked {
            self.write_now(link, out);
        }
    }

    /// Sends what is in the row now, or leaves it for a little while, to be sent with what follows.
    fn go(&self, link: &Link<C::Pipe>, out: &mut Out<C::Pipe>, lone: bool) {
        if out.blocked || !matches!(out.stage, Stage::Up(..)) {
            return;
        }
        if lone && self.goes_at_once(out) {
            out.last = Some(self.write_now(link, out));
        } else if out.row.copied() >= out.batch {
            out.batch = (out.batch * 2).min(BATCH.1);
            out.last = Some(self.write_now(link, out));
        } else if !out.gathered {
            out.gathered = true;
            let mut gathered = lock(&self.gathered);
            gathered.push(link.peer);
            self.gathered_count.store(gathered.len() as u32, Ordering::Relaxed);
            drop(gathered);
            if !self.attentive.swap(true, Ordering::SeqCst) {
                self.carrier.ring();
            }
        }
    }

    /// As [`Streams::write`], for a thread that has something new to send. Tells when it was over.
    fn write_now(&self, link: &Link<C::Pipe>, out: &mut Out<C::Pipe>) -> Instant {
        let start = self.has_begun().then(Instant::now);
        self.write(link, out);
        let end = Instant::now();
        if let Some(start) = start {
            self.has_written(end - start);
        }
        end
    }

    /// Whether what has nothing before it in the row is sent now.
    fn goes_at_once(&self, out: &mut Out<C::Pipe>) -> bool {
        if out.last.is_none_or(|last| last.elapsed() > LONE) {
            out.batch = BATCH.0;
            out.close = 0;
        } else if out.close < FEW && !self.attentive.load(Ordering::Relaxed) {
            out.close += 1;
        } else {
            return false;
        }
        true
    }

    /// Sends what was gathered, for a thread of the process. Whether there was anything.
    pub fn send_own_gathered(&self) -> bool {
        let sent = self.send_gathered();
        if sent {
            self.sent_itself.store(true, Ordering::Relaxed);
        }
        sent
    }

    /// Sends what was gathered. Whether there was anything.
    pub fn send_gathered(&self) -> bool {
        if self.gathered_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let peers = {
            // The count belongs to the list: set without the lock, it could hide what another thread has just added.
            let mut gathered = lock(&self.gathered);
            self.gathered_count.store(0, Ordering::Relaxed);
            std::mem::take(&mut *gathered)
        };
        for peer in peers {
            let link = self.link(peer);
            let mut out = lock(&link.out);
            out.gathered = false;
            if !out.blocked {
                self.write(link, &mut out);
            }
        }
        true
    }

    /// Hands the row to the connection as far as it takes it.
    pub fn write(&self, link: &Link<C::Pipe>, out: &mut Out<C::Pipe>) {
        let Stage::Up(pipe, number) = &out.stage else { return };
        let (pipe, number) = (pipe.clone(), *number);
        let mut full = false;
        let wrote = |count: &usize| {
            if let Some(books) = self.refusals.books() {
                books.wrote(*count);
            }
        };
        loop {
            self.offer(link, out);
            if out.is_sent() {
                break;
            }
            let sent = match (&mut out.sealer, out.row.one_run()) {
                (Some(sealer), _) => {
                    if sealer.unsent().is_empty() {
                        let count = sealer.seal(&out.row.parts());
                        out.row.sent(count, &mut |then| self.tell(then));
                    }
                    let sent = pipe.send(&[Part::Bytes(sealer.unsent())]);
                    sent.inspect(wrote).map(|count| sealer.sent(count))
                }
                (None, Some(run)) => pipe
                    .send(&[Part::Bytes(run)])
                    .inspect(wrote)
                    .map(|count| out.row.sent(count, &mut |then| self.tell(then))),
                (None, None) => {
                    let sent = pipe.send(&out.row.parts()).inspect(wrote);
                    sent.map(|count| out.row.sent(count, &mut |then| self.tell(then)))
                }
            };
            match sent {
                Ok(()) => (),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    full = true;
                    break;
                }
                Err(error) => {
                    // The end of the stream says more, if there is one: the receiving side reports it.
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        self.lose(link, out, error);
                    } else {
                        // Answers to what is offered may have come before that end.
                        out.clear();
                    }
                    return;
                }
            }
        }
        if full != out.blocked {
            out.blocked = full;
            self.carrier.block(&pipe, number, full);
        }
    }

    fn lose(&self, link: &Link<C::Pipe>, out: &mut Out<C::Pipe>, error: io::Error) {
        if matches!(out.stage, Stage::Up(..) | Stage::Wanted) {
            out.stage = Stage::Lost;
            self.clear(out);
            let let_go = self.peer(link.peer).let_go.load(Ordering::Relaxed);
            if !self.closing.load(Ordering::Relaxed) && !let_go {
                self.carrier.lost(link.peer, error);
            }
        }
    }

    /// See [`parnass_transport::Network::give_up`].
    pub fn give_up(&self, peer: u32) {
        {
            let mut incoming = lock(&self.incoming);
            // Meanwhile nobody hears of them, nor begins new ones.
            self.carrier.end_reads(peer);
            incoming.give_up(peer);
        }
        let mut out = lock(&self.link(peer).out);
        if !matches!(out.stage, Stage::Over | Stage::Lost) {
            self.forget(&out);
            out.stage = Stage::Lost;
        }
        self.clear(&mut out);
    }

    /// Makes `pipe` the connection to `peer`.
    ///
    /// # Errors
    /// What [`Carrier::watch`] says.
    pub fn establish(&self, peer: u32, pipe: C::Pipe, keys: Option<Keys>) -> io::Result<()> {
        self.establish_in(&mut lock(&self.incoming), peer, pipe, keys)
    }

    fn establish_in(
        &self,
        incoming: &mut Incoming<C::Pipe>,
        peer: u32,
        pipe: C::Pipe,
        keys: Option<Keys>,
    ) -> io::Result<()> {
        let pipe = Arc::new(pipe);
        // What is read would travel in clear.
        let reads = if keys.is_none() { pipe.reads() } else { 0 };
        let opener = keys.as_ref().map(|keys| Opener::new(&keys.receiving));
        let counted = Some(self.refusals.clone());
        let number = incoming.add(peer, self.peer(peer).tag, pipe.clone(), opener, counted);
        let link = self.link(peer);
        let mut out = lock(&link.out);
        out.sealer = keys.as_ref().map(|keys| Sealer::new(&keys.sending));
        out.way = pipe.way().to_owned();
        out.reads = reads;
        out.stage = Stage::Up(pipe.clone(), number);
        self.carrier.watch(&pipe, number)?;
        if let Some(books) = self.refusals.books() {
            books.connected(peer);
        }
        self.write(link, &mut out);
        drop(out);
        if self.closing.load(Ordering::Relaxed) {
            // What takes no more now is seen to by who closes, who waits for it.
            self.part(link, &mut false);
        }
        Ok(())
    }

    /// Asks the carrier which connections have something, and lets those write that may again.
    pub fn look(&self, incoming: &mut Incoming<C::Pipe>) {
        if let Some(apart) = self.carrier.apart() {
            incoming.mark_payload(apart);
            if incoming.links() == 1 {
                return;
            }
        }
        self.carrier.look(&mut |sight| match sight {
            Sight::Readable(number) => incoming.mark(number),
            Sight::Writable(number) => {
                let link = self.link(incoming.peer(number));
                let mut out = lock(&link.out);
                self.write(link, &mut out);
                self.moved.store(true, Ordering::Relaxed);
            }
            Sight::Read(name, result) => incoming.read(name, &result, self),
            Sight::Up(peer, pipe, keys) => {
                if let Err(error) = self.establish_in(incoming, peer, pipe, keys) {
                    self.carrier.lost(peer, error);
                }
            }
        });
    }

    fn forget(&self, out: &Out<C::Pipe>) {
        if let Stage::Up(pipe, _) = &out.stage {
            self.carrier.forget(pipe);
        }
    }

    /// Says goodbye to everybody, and waits until that is on its way.
    pub fn close(&self) {
        if self.closing.swap(true, Ordering::Relaxed) {
            return;
        }
        let deadline = Instant::now() + FAREWELL;
        // Whoever establishes has this lock: the link is among those below, or the goodbye is said there.
        drop(lock(&self.incoming));
        self.carrier.rejoin();
        let mut left: Vec<(&Link<C::Pipe>, bool)> = self.links().map(|link| (link, false)).collect();
        loop {
            left.retain_mut(|(link, said)| !self.part(link, said));
            if left.is_empty() || Instant::now() >= deadline {
                break;
            }
            // What is not connected yet comes up, and what takes no more may take more.
            self.look(&mut lock(&self.incoming));
            if left.iter().any(|(link, _)| !lock(&link.out).row.is_settled()) {
                // What is offered is out when the answers have come, and nobody takes what comes before them.
                Incoming::take(|| lock(&self.incoming), usize::MAX, self, &mut |_| true);
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        self.links().for_each(|link| self.withdraw(&mut lock(&link.out)));
        self.carrier.part(Instant::now() + PARTING);
    }

    /// Says goodbye on one link, once; whether there is nothing more to be done for it.
    fn part(&self, link: &Link<C::Pipe>, said: &mut bool) -> bool {
        let mut out = lock(&link.out);
        let out = &mut *out;
        let pipe = match &out.stage {
            Stage::Up(pipe, _) => pipe.clone(),
            Stage::Wanted => return out.row.is_empty(),
            _ => return true,
        };
        self.write(link, out);
        if !*said && out.is_sent() && out.row.is_settled() {
            *said = true;
            out.row.frame(&Self::goodbye_head(), &[]);
            self.write(link, out);
        }
        if !*said || !out.is_sent() {
            return false;
        }
        pipe.finish();
        self.forget(out);
        out.stage = Stage::Over;
        true
    }
}

impl<C: Carrier> Notes for Streams<C> {
    fn credit(&self, peer: u32, count: usize, given: bool) {
        let link = self.link(peer);
        if given {
            let _ = link.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                Some(used.saturating_sub(count as u64))
            });
            return;
        }
        let owed = link.owed.fetch_add(count as u32, Ordering::Relaxed) + count as u32;
        if u64::from(owed) < self.window / 4 {
            return;
        }
        let mut out = lock(&link.out);
        if let Some(out) = self.ready(link, &mut out) {
            let head = Head { kind: FrameKind::Credit, ..Self::head(link, 0, 0, 0, false) };
            out.row.frame(&head, &[]);
            if !out.blocked {
                self.write(link, out);
            }
        }
    }

    fn answer(&self, peer: u32, number: u64, answer: Answer, count: usize) {
        self.tell_answer(self.link(peer), number, answer, count);
    }

    fn answered(&self, peer: u32, number: u64, answer: Answer) -> bool {
        self.take_answer(self.link(peer), number, answer)
    }

    fn landed(&self, then: Message) {
        self.tell(then);
    }

    fn goodbye(&self, peer: u32) {
        let mut out = lock(&self.link(peer).out);
        self.forget(&out);
        self.withdraw(&mut out);
        out.stage = Stage::Over;
    }

    fn lost(&self, peer: u32, error: io::Error) {
        let link = self.link(peer);
        let mut out = lock(&link.out);
        self.forget(&out);
        self.lose(link, &mut out, error);
    }
}
