//! Portals in full: the inner interface of the NIC.
//!
//! The plain messages of the MPI layer use portal 0 and one kind of entry (see [`crate::Interface`]). All other
//! portals have the semantics of Portals 4 (priority and overflow lists, use-once and persistent entries, locally
//! managed offsets, full and counting events), and of Portals 3 where that differed (thresholds, several memory
//! descriptors per match entry, entries that stay when consumed, conditional update). Both live in the same records
//! and the same index.
//!
//! The machine moves no bytes and knows no transport: [`Target::arrive`] says where the bytes go.

use crate::index::Pattern;
use crate::interface::{EntryHandle, List, PortalError, ProcessId, SearchOperation};
use crate::nic::{COUNTERS, Nic, PORTALS, QUEUES};
use crate::record::{ANY, Entry, flag, kind};
use crate::slab::{ListControl, Purpose};
use parnass_base::Window;
use parnass_base::atomics::Ordering;

mod types;

use types::KINDS;
pub use types::*;

// Words of a posted record.
const LOCAL_OFFSET: usize = 0;
const MIN_FREE: usize = 1;
const THRESHOLD: usize = 2;
const MAXIMUM: usize = 3;
/// Counter + 1 in the low half, queue and list in the high one.
const PLACES: usize = 4;
/// Unexpected messages in its memory.
const REFERENCES: usize = 5;
const UNLIMITED: u64 = u64::MAX;

/// The state machine over the memory of one NIC.
#[derive(Debug)]
pub struct Target {
    nic: Nic,
    holder: u32,
}

fn word(entry: &Entry, index: usize) -> u64 {
    entry.data[index].load(Ordering::Relaxed)
}

fn set_word(entry: &Entry, index: usize, value: u64) {
    entry.data[index].store(value, Ordering::Relaxed);
}

fn options(entry: &Entry) -> Options {
    Options(entry.flags.get())
}

fn queue_of(entry: &Entry) -> u32 {
    (word(entry, PLACES) >> 32) as u32 & 0xff
}

fn is_overflow(entry: &Entry) -> bool {
    word(entry, PLACES) >> 63 != 0
}

fn allows(options: Options, get: bool) -> bool {
    options.has(if get { Options::GET } else { Options::PUT })
}

/// First byte and room for an operation at `offset`.
fn room(entry: &Entry, offset: u64) -> (u64, u64) {
    let start = if options(entry).has(Options::MANAGE_LOCAL) { word(entry, LOCAL_OFFSET) } else { offset };
    let start = start.min(entry.length.get());
    (start, entry.length.get() - start)
}

fn accepts(entry: &Entry, portal: u32, get: bool, length: u64, offset: u64) -> bool {
    entry.detail.get() == portal
        && word(entry, THRESHOLD) != 0
        && allows(options(entry), get)
        && (!options(entry).has(Options::NO_TRUNCATE) || length <= room(entry, offset).1)
}

/// The bare facts of an event.
struct Facts {
    kind: TargetEventKind,
    placed: u64,
    start: u64,
}

impl Target {
    /// The machine over `memory`, which is zero or holds the state of an earlier one. `holder` names the caller in
    /// the NIC's lock. What is counted of messages goes to `counters`.
    pub fn new(memory: &Window, counters: &Window, holder: u32) -> Target {
        Target { nic: Nic::new(memory, counters), holder }
    }

    fn locked<T>(&self, work: impl FnOnce(&Nic) -> T) -> T {
        self.nic.lock().acquire(self.holder, 100, |_| true);
        let result = work(&self.nic);
        self.nic.lock().release();
        result
    }

    /// Opens a portal; its own events go to `queue`. With `flow_control` the first drop closes it.
    ///
    /// # Panics
    /// If there is no such portal or queue.
    pub fn open_portal(&self, portal: u32, queue: u32, flow_control: bool) {
        assert!((queue as usize) < QUEUES, "queue {queue}");
        let entry = &self.nic.control.portals[portal as usize];
        self.locked(|_| {
            entry.queue.set(queue);
            entry.state.set(u32::from(flow_control));
        });
    }

    /// Whether a drop has closed a portal.
    pub fn is_closed(&self, portal: u32) -> bool {
        self.nic.control.portals[portal as usize].state.get() == 2
    }

    /// How many operations a portal has dropped.
    pub fn dropped(&self, portal: u32) -> u64 {
        self.nic.control.portals[portal as usize].dropped.get()
    }

    /// Successes and failures of a counting event.
    pub fn counter(&self, counter: u32) -> (u64, u64) {
        let counter = &self.nic.control.counters[counter as usize];
        (counter.success.get(), counter.failure.get())
    }

    /// Sets a counting event.
    pub fn set_counter(&self, counter: u32, success: u64, failure: u64) {
        let counter = &self.nic.control.counters[counter as usize];
        self.locked(|_| {
            counter.success.set(success);
            counter.failure.set(failure);
        });
    }

    /// The next event of a queue.
    pub fn next_event(&self, queue: u32) -> Option<TargetEvent> {
        let list = &self.nic.control.queues[queue as usize];
        self.locked(|nic| {
            let index = list.head.get();
            if index == 0 {
                return None;
            }
            let record = nic.slab.at(index);
            let event = TargetEvent {
                kind: KINDS[record.detail.get() as usize % KINDS.len()],
                user: record.user.get(),
                initiator: ProcessId(record.source.get()),
                portal: record.class.get(),
                match_bits: record.match_bits.get(),
                header_data: record.header_data.get(),
                requested_length: record.requested.get(),
                placed_length: record.length.get(),
                start: record.address.get(),
                local_offset: word(record, LOCAL_OFFSET),
            };
            nic.slab.remove(list, index);
            nic.slab.release(index);
            Some(event)
        })
    }

    /// Appends an entry. Messages that had arrived before and that it matches are its own first.
    ///
    /// # Errors
    /// No memory for one more entry.
    ///
    /// # Panics
    /// If there is no such portal, queue or counter.
    pub fn append(&self, entry: &TargetEntry) -> Result<EntryHandle, PortalError> {
        self.locked(|nic| {
            let index = self.make(nic, entry, kind::POSTED)?;
            let handle = EntryHandle(nic.slab.handle(index));
            if entry.list == List::Priority && self.take_overflow(nic, entry, index) {
                return Ok(handle);
            }
            self.link(nic, index);
            if !entry.options.has(Options::EVENT_LINK_DISABLE) {
                let facts = Facts { kind: TargetEventKind::Link, placed: 0, start: entry.address };
                self.log(nic, nic.slab.at(index), None, &facts);
            }
            Ok(handle)
        })
    }

    /// Gives a match entry one more memory descriptor, which takes over when those before it are consumed
    /// (Portals 3.0). Only the first one of an entry is ever tried.
    ///
    /// # Errors
    /// No memory for it, or the entry is gone (told as [`PortalError::OutOfMemory`] with its reason).
    pub fn append_behind(&self, first: EntryHandle, entry: &TargetEntry) -> Result<EntryHandle, PortalError> {
        self.locked(|nic| {
            let Some(mut last) = nic.slab.resolve(first.0) else {
                return Err(PortalError::OutOfMemory("the entry has been consumed".into()));
            };
            let index = self.make(nic, entry, kind::BEHIND)?;
            while let next @ 1.. = nic.slab.at(last).remote.get() as u32 {
                last = next;
            }
            nic.slab.at(last).remote.set(u64::from(index));
            Ok(EntryHandle(nic.slab.handle(index)))
        })
    }

    fn make(&self, nic: &Nic, entry: &TargetEntry, kind: u32) -> Result<u32, PortalError> {
        assert!((1..PORTALS as u32).contains(&entry.portal), "portal {}", entry.portal);
        assert!((entry.queue as usize) < QUEUES, "queue {}", entry.queue);
        assert!(entry.counter.is_none_or(|counter| (counter as usize) < COUNTERS), "{:?}", entry.counter);
        let index = nic.slab.allocate(Purpose::Posting);
        if index == 0 {
            return Err(PortalError::OutOfMemory(nic.slab.shortage()));
        }
        let record = nic.slab.at(index);
        record.kind.set(kind);
        record.source.set(entry.source.map_or(ANY, |source| source.0));
        record.flags.set(entry.options.0);
        record.detail.set(entry.portal);
        record.match_bits.set(entry.match_bits);
        record.ignore_bits.set(entry.ignore_bits);
        record.address.set(entry.address);
        record.length.set(entry.length);
        record.user.set(entry.user);
        record.remote.set(0);
        record.order.set(nic.next_order());
        set_word(record, LOCAL_OFFSET, 0);
        set_word(record, MIN_FREE, entry.min_free);
        set_word(record, THRESHOLD, entry.threshold.map_or(UNLIMITED, u64::from));
        set_word(record, MAXIMUM, entry.maximum_offset.unwrap_or(UNLIMITED));
        let overflow = u64::from(entry.list == List::Overflow) << 63;
        let counter = entry.counter.map_or(0, |counter| u64::from(counter) + 1);
        set_word(record, PLACES, overflow | u64::from(entry.queue) << 32 | counter);
        set_word(record, REFERENCES, 0);
        Ok(index)
    }

    fn link(&self, nic: &Nic, index: u32) {
        let side = if is_overflow(nic.slab.at(index)) { &nic.overflow } else { &nic.posted };
        side.add(&nic.slab, &nic.classes, index);
    }

    fn unlink_from_list(&self, nic: &Nic, index: u32) {
        let side = if is_overflow(nic.slab.at(index)) { &nic.overflow } else { &nic.posted };
        side.remove(&nic.slab, &nic.classes, index);
    }

    /// Gives a new entry the messages that had arrived before. `true`: they have consumed it.
    fn take_overflow(&self, nic: &Nic, entry: &TargetEntry, index: u32) -> bool {
        let record = nic.slab.at(index);
        let pattern = pattern_of(entry);
        loop {
            let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |header| {
                let get = header.flags.get() & flag::GET != 0;
                accepts(record, entry.portal, get, header.requested.get(), 0)
            });
            if found == 0 {
                return false;
            }
            let header = nic.slab.at(found);
            let get = header.flags.get() & flag::GET != 0;
            let facts = Facts {
                kind: if get { TargetEventKind::GetOverflow } else { TargetEventKind::PutOverflow },
                placed: header.length.get(),
                start: header.remote.get(),
            };
            if !entry.options.has(Options::EVENT_OVER_DISABLE) {
                self.log(nic, record, Some(header), &facts);
            }
            self.count(nic, record, Options::COUNT_OVERFLOW, facts.placed);
            self.forget(nic, found);
            if self.use_up(nic, index, 0) {
                self.consume(nic, index, false);
                return true;
            }
        }
    }

    /// Removes an unexpected message; its overflow entry may become free.
    fn forget(&self, nic: &Nic, header: u32) {
        let holder = nic.slab.at(header).remote_user.get() as u32;
        nic.unexpected.remove(&nic.slab, &nic.classes, header);
        nic.slab.release(header);
        let entry = nic.slab.at(holder);
        let left = word(entry, REFERENCES) - 1;
        set_word(entry, REFERENCES, left);
        if left == 0 && entry.kind.get() == kind::DRAINING {
            self.free(nic, holder);
        }
    }

    fn free(&self, nic: &Nic, index: u32) {
        let entry = nic.slab.at(index);
        if !options(entry).has(Options::EVENT_UNLINK_DISABLE) {
            let facts = Facts { kind: TargetEventKind::AutoFree, placed: 0, start: entry.address.get() };
            self.log(nic, entry, None, &facts);
        }
        nic.slab.release(index);
    }

    /// Counts one operation of `placed` bytes against an entry. `true`: that consumes it.
    fn use_up(&self, nic: &Nic, index: u32, placed: u64) -> bool {
        let entry = nic.slab.at(index);
        let options = options(entry);
        if options.has(Options::MANAGE_LOCAL) {
            set_word(entry, LOCAL_OFFSET, word(entry, LOCAL_OFFSET) + placed);
        }
        let threshold = word(entry, THRESHOLD);
        if threshold != UNLIMITED {
            set_word(entry, THRESHOLD, threshold - 1);
        }
        let local = word(entry, LOCAL_OFFSET);
        options.has(Options::USE_ONCE)
            || threshold == 1
            || local > word(entry, MAXIMUM)
            || entry.length.get() - local.min(entry.length.get()) < word(entry, MIN_FREE)
    }

    /// An entry is consumed: it leaves its list (if it was `linked`), or stays there inactive.
    fn consume(&self, nic: &Nic, index: u32, linked: bool) {
        let entry = nic.slab.at(index);
        if options(entry).has(Options::KEEP_CONSUMED) {
            set_word(entry, THRESHOLD, 0);
            if !linked {
                self.link(nic, index);
            }
            return;
        }
        if linked {
            self.unlink_from_list(nic, index);
        }
        let next = entry.remote.get() as u32;
        if next != 0 {
            // The next descriptor of the same match entry stands where this one stood.
            let successor = nic.slab.at(next);
            successor.order.set(entry.order.get());
            successor.kind.set(kind::POSTED);
            self.link(nic, next);
        }
        if !options(entry).has(Options::EVENT_UNLINK_DISABLE) {
            let facts = Facts { kind: TargetEventKind::AutoUnlink, placed: 0, start: entry.address.get() };
            self.log(nic, entry, None, &facts);
        }
        if word(entry, REFERENCES) != 0 {
            entry.kind.set(kind::DRAINING);
        } else if is_overflow(entry) {
            self.free(nic, index);
        } else {
            nic.slab.release(index);
        }
    }

    fn count(&self, nic: &Nic, entry: &Entry, what: Options, bytes: u64) {
        let counter = word(entry, PLACES) as u32;
        if counter != 0 && options(entry).has(what) {
            let step = if options(entry).has(Options::COUNT_BYTES) { bytes } else { 1 };
            let counter = &nic.control.counters[counter as usize - 1];
            counter.success.set(counter.success.get() + step);
        }
    }

    /// Records an event of `entry` about the message in `header`, or about the entry itself.
    fn log(&self, nic: &Nic, entry: &Entry, header: Option<&Entry>, facts: &Facts) {
        let about = header.unwrap_or(entry);
        let queue = &nic.control.queues[queue_of(entry) as usize % QUEUES];
        self.log_to(
            nic,
            queue,
            entry.user.get(),
            entry.detail.get(),
            about,
            facts,
            word(entry, LOCAL_OFFSET),
        );
    }

    fn log_to(
        &self,
        nic: &Nic,
        queue: &ListControl,
        user: u64,
        portal: u32,
        about: &Entry,
        facts: &Facts,
        local_offset: u64,
    ) {
        let index = nic.slab.allocate(Purpose::Completion);
        if index == 0 {
            nic.control.dropped.set(nic.control.dropped.get() + 1);
            return;
        }
        let record = nic.slab.at(index);
        record.kind.set(kind::EVENT);
        record.detail.set(KINDS.iter().position(|kind| *kind == facts.kind).unwrap_or(0) as u32);
        record.user.set(user);
        record.source.set(about.source.get());
        record.class.set(portal);
        record.match_bits.set(about.match_bits.get());
        record.header_data.set(about.header_data.get());
        record.requested.set(about.requested.get());
        record.length.set(facts.placed);
        record.address.set(facts.start);
        set_word(record, LOCAL_OFFSET, local_offset);
        nic.slab.push(queue, index);
    }

    /// Takes an entry out of its list.
    ///
    /// # Errors
    /// Messages lie in its memory, or it is gone.
    pub fn unlink(&self, handle: EntryHandle) -> Result<(), UnlinkError> {
        self.locked(|nic| {
            let index = nic.slab.resolve(handle.0).ok_or(UnlinkError::Gone)?;
            let entry = nic.slab.at(index);
            match entry.kind.get() {
                kind::DRAINING => return Err(UnlinkError::InUse),
                kind::POSTED => (),
                _ => return Err(UnlinkError::Gone),
            }
            if word(entry, REFERENCES) != 0 {
                return Err(UnlinkError::InUse);
            }
            self.unlink_from_list(nic, index);
            // Its further descriptors go with it.
            let mut next = index;
            while next != 0 {
                let after = nic.slab.at(next).remote.get() as u32;
                nic.slab.release(next);
                next = after;
            }
            Ok(())
        })
    }

    /// Gives an entry another memory and threshold, if `queue` (where given) is empty; atomic with respect to
    /// arrivals.
    pub fn update(
        &self,
        handle: EntryHandle,
        address: u64,
        length: u64,
        threshold: Option<u32>,
        queue: Option<u32>,
    ) -> Updated {
        self.locked(|nic| {
            let Some(index) = nic.slab.resolve(handle.0) else { return Updated::Gone };
            let entry = nic.slab.at(index);
            if !matches!(entry.kind.get(), kind::POSTED | kind::BEHIND) {
                return Updated::Gone;
            }
            if queue.is_some_and(|queue| nic.control.queues[queue as usize].count.get() != 0) {
                return Updated::NotUpdated;
            }
            entry.address.set(address);
            entry.length.set(length);
            set_word(entry, THRESHOLD, threshold.map_or(UNLIMITED, u64::from));
            set_word(entry, LOCAL_OFFSET, 0);
            Updated::Yes
        })
    }

    /// Looks among the messages that have arrived for those that `entry` matches: the first one if it is to be
    /// used once, else all. Each is told in an event of the entry's queue; one that is taken is forgotten.
    pub fn search(&self, operation: SearchOperation, entry: &TargetEntry) {
        self.locked(|nic| {
            let pattern = pattern_of(entry);
            let queue = &nic.control.queues[entry.queue as usize];
            let mut after = 0;
            let mut any = false;
            loop {
                let found = nic.unexpected.find(&nic.slab, &nic.classes, &pattern, |header| {
                    header.order.get() > after
                        && header.flags.get() & flag::OVERFLOW != 0
                        && allows(entry.options, header.flags.get() & flag::GET != 0)
                });
                if found == 0 {
                    break;
                }
                any = true;
                let header = nic.slab.at(found);
                after = header.order.get();
                let facts = Facts {
                    kind: TargetEventKind::Search,
                    placed: header.length.get(),
                    start: header.remote.get(),
                };
                self.log_to(nic, queue, entry.user, entry.portal, header, &facts, 0);
                if operation == SearchOperation::Take {
                    self.forget(nic, found);
                }
                if entry.options.has(Options::USE_ONCE) {
                    break;
                }
            }
            let index = nic.slab.allocate(Purpose::Completion);
            if !any && index != 0 {
                let record = nic.slab.at(index);
                record.kind.set(kind::EVENT);
                record.source.set(ANY);
                record.match_bits.set(entry.match_bits);
                record.header_data.set(0);
                record.requested.set(0);
                let facts = Facts { kind: TargetEventKind::SearchFailed, placed: 0, start: 0 };
                self.log_to(nic, queue, entry.user, entry.portal, record, &facts, 0);
            }
            if index != 0 {
                nic.slab.at(index).kind.set(kind::EVENT);
                nic.slab.release(index);
            }
        });
    }

    /// An operation arrives. `move_bytes` moves them; what it returns is whether it could.
    pub fn arrive(&self, request: &Request, move_bytes: impl FnOnce(&Placement) -> bool) -> Verdict {
        self.locked(|nic| {
            let Some(portal) = nic.control.portals.get(request.portal as usize) else {
                return Verdict::Dropped;
            };
            let get = request.operation == Operation::Get;
            let accepts = |entry: &Entry| accepts(entry, request.portal, get, request.length, request.offset);
            let (source, bits) = (request.initiator.0, request.match_bits);
            let mut index = 0;
            if portal.state.get() != 2 {
                index = nic.posted.find(&nic.slab, &nic.classes, source, bits, accepts);
                if index == 0 {
                    index = nic.overflow.find(&nic.slab, &nic.classes, source, bits, accepts);
                }
            }
            if index == 0 {
                self.drop_request(nic, request);
                return Verdict::Dropped;
            }
            self.place(nic, index, request, move_bytes)
        })
    }

    fn drop_request(&self, nic: &Nic, request: &Request) {
        let portal = &nic.control.portals[request.portal as usize];
        portal.dropped.set(portal.dropped.get() + 1);
        if portal.state.get() != 1 {
            return;
        }
        portal.state.set(2);
        let index = nic.slab.allocate(Purpose::Completion);
        if index != 0 {
            let record = nic.slab.at(index);
            record.kind.set(kind::EVENT);
            describe(record, request);
            let facts = Facts { kind: TargetEventKind::PortalClosed, placed: 0, start: 0 };
            let queue = &nic.control.queues[portal.queue.get() as usize % QUEUES];
            self.log_to(nic, queue, 0, request.portal, record, &facts, 0);
            nic.slab.release(index);
        }
    }

    fn place(
        &self,
        nic: &Nic,
        index: u32,
        request: &Request,
        move_bytes: impl FnOnce(&Placement) -> bool,
    ) -> Verdict {
        let entry = nic.slab.at(index);
        let entry_options = options(entry);
        let overflow = is_overflow(entry);
        let (offset, room) = room(entry, request.offset);
        let length = request.length.min(room);
        let start = entry.address.get() + offset;
        if !move_bytes(&Placement { address: start, length }) {
            let counter = word(entry, PLACES) as u32;
            if counter != 0 {
                let counter = &nic.control.counters[counter as usize - 1];
                counter.failure.set(counter.failure.get() + 1);
            }
        }
        let consumed = self.use_up(nic, index, length);
        let header = nic.slab.allocate(Purpose::Completion);
        if header != 0 {
            let record = nic.slab.at(header);
            record.kind.set(kind::UNEXPECTED);
            describe(record, request);
            let get = request.operation == Operation::Get;
            let kind = if get { TargetEventKind::Get } else { TargetEventKind::Put };
            if !entry_options.has(Options::EVENT_COMM_DISABLE) {
                self.log(nic, entry, Some(record), &Facts { kind, placed: length, start });
            }
            if overflow && !entry_options.has(Options::UNEXPECTED_HEADER_DISABLE) {
                record.flags.set(flag::OVERFLOW | if get { flag::GET } else { 0 });
                record.detail.set(request.portal);
                record.length.set(length);
                record.remote.set(start);
                record.remote_user.set(u64::from(index));
                record.order.set(nic.next_order());
                if nic.unexpected.add(&nic.slab, &nic.classes, header) {
                    set_word(entry, REFERENCES, word(entry, REFERENCES) + 1);
                } else {
                    nic.slab.release(header);
                }
            } else {
                nic.slab.release(header);
            }
        }
        self.count(nic, entry, Options::COUNT_COMM, length);
        if consumed {
            self.consume(nic, index, true);
        }
        let list = if overflow { List::Overflow } else { List::Priority };
        let acknowledge = request.ack && !entry_options.has(Options::ACK_DISABLE);
        Verdict::Accepted { list, length, offset, acknowledge }
    }
}

fn describe(record: &Entry, request: &Request) {
    record.source.set(request.initiator.0);
    record.match_bits.set(request.match_bits);
    record.header_data.set(request.header_data);
    record.requested.set(request.length);
}

fn pattern_of(entry: &TargetEntry) -> Pattern {
    Pattern {
        source: entry.source.map_or(ANY, |source| source.0),
        match_bits: entry.match_bits,
        ignore_bits: entry.ignore_bits,
        portal: entry.portal,
    }
}
