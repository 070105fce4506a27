//! The rules of Portals 4 and Portals 3 that are worth testing.

use parnass_base::{Region, Window};
use parnass_portals::target::*;
use parnass_portals::{List, ProcessId, SearchOperation};

fn memory(length: usize) -> Window {
    Region::private(length).unwrap().window(0, length)
}

/// A target whose bytes go into a vector.
struct Machine {
    target: Target,
    bytes: Vec<u8>,
}

const PORTAL: u32 = 3;

impl Machine {
    fn new() -> Machine {
        Machine { target: Target::new(&memory(64 << 20), &memory(4096), 1), bytes: vec![0; 1000] }
    }

    /// A put of `length` bytes of value `fill`.
    fn put(&mut self, bits: u64, length: u64, fill: u8) -> Verdict {
        self.request(&Request { header_data: u64::from(fill), ..request(bits, length) }, fill)
    }

    fn request(&mut self, request: &Request, fill: u8) -> Verdict {
        let bytes = &mut self.bytes;
        self.target.arrive(request, |placement| {
            let start = placement.address as usize;
            if request.operation == Operation::Put {
                bytes[start..start + placement.length as usize].fill(fill);
            }
            true
        })
    }

    fn events(&self) -> Vec<(TargetEventKind, u64)> {
        std::iter::from_fn(|| self.target.next_event(0)).map(|event| (event.kind, event.user)).collect()
    }
}

fn request(bits: u64, length: u64) -> Request {
    Request {
        operation: Operation::Put,
        portal: PORTAL,
        initiator: ProcessId(4),
        match_bits: bits,
        header_data: 0,
        length,
        offset: 0,
        ack: true,
    }
}

fn entry(user: u64, bits: u64, address: u64, length: u64, options: Options) -> TargetEntry {
    TargetEntry {
        portal: PORTAL,
        list: List::Priority,
        source: None,
        match_bits: bits,
        ignore_bits: 0,
        address,
        length,
        options: options | Options::EVENT_LINK_DISABLE,
        min_free: 0,
        maximum_offset: None,
        threshold: None,
        counter: None,
        queue: 0,
        user,
    }
}

fn overflow(user: u64, address: u64, length: u64) -> TargetEntry {
    let options = Options::PUT | Options::GET | Options::MANAGE_LOCAL;
    TargetEntry { list: List::Overflow, ignore_bits: u64::MAX, ..entry(user, 0, address, length, options) }
}

fn accepted(list: List, length: u64, offset: u64) -> Verdict {
    Verdict::Accepted { list, length, offset, acknowledge: true }
}

use TargetEventKind::*;

#[test]
fn the_first_entry_that_matches_wins_and_use_once_entries_go() {
    let mut machine = Machine::new();
    for user in [1, 2] {
        machine.target.append(&entry(user, 7, user * 100, 50, Options::PUT | Options::USE_ONCE)).unwrap();
    }
    machine.target.append(&TargetEntry { ignore_bits: 0xf, ..entry(3, 0, 300, 50, Options::PUT) }).unwrap();
    assert_eq!(machine.put(7, 10, 1), accepted(List::Priority, 10, 0));
    assert_eq!(machine.put(7, 10, 2), accepted(List::Priority, 10, 0));
    assert_eq!(machine.put(7, 10, 3), accepted(List::Priority, 10, 0));
    assert_eq!(machine.put(7, 10, 4), accepted(List::Priority, 10, 0));
    assert_eq!((machine.bytes[100], machine.bytes[200], machine.bytes[300]), (1, 2, 4));
    let expected = [(Put, 1), (AutoUnlink, 1), (Put, 2), (AutoUnlink, 2), (Put, 3), (Put, 3)];
    assert_eq!(machine.events(), expected);
}

#[test]
fn a_persistent_entry_with_a_local_offset_fills_up_to_min_free() {
    let mut machine = Machine::new();
    let options = Options::PUT | Options::MANAGE_LOCAL;
    machine.target.append(&TargetEntry { min_free: 30, ..entry(1, 7, 0, 100, options) }).unwrap();
    assert_eq!(machine.put(7, 40, 1), accepted(List::Priority, 40, 0));
    assert_eq!(machine.put(7, 30, 2), accepted(List::Priority, 30, 40));
    assert_eq!(machine.events(), [(Put, 1), (Put, 1)]);
    assert_eq!(machine.put(7, 1, 3), accepted(List::Priority, 1, 70));
    assert_eq!(machine.events(), [(Put, 1), (AutoUnlink, 1)]);
    assert_eq!(machine.put(7, 1, 4), Verdict::Dropped);
    assert_eq!(machine.target.dropped(PORTAL), 1);
    assert_eq!((machine.bytes[39], machine.bytes[40], machine.bytes[70], machine.bytes[71]), (1, 2, 3, 0));
}

#[test]
fn too_long_messages_are_truncated_or_go_on_to_the_next_entry() {
    let mut machine = Machine::new();
    machine.target.append(&entry(1, 7, 0, 10, Options::PUT | Options::NO_TRUNCATE)).unwrap();
    machine.target.append(&entry(2, 7, 100, 20, Options::PUT)).unwrap();
    assert_eq!(machine.put(7, 10, 1), accepted(List::Priority, 10, 0));
    assert_eq!(machine.put(7, 30, 2), accepted(List::Priority, 20, 0));
    let remote = Request { offset: 15, ..request(7, 30) };
    assert_eq!(machine.request(&remote, 3), accepted(List::Priority, 5, 15));
    let beyond = Request { offset: 500, ..request(7, 30) };
    assert_eq!(machine.request(&beyond, 3), accepted(List::Priority, 0, 20));
    assert_eq!(machine.events(), [(Put, 1), (Put, 2), (Put, 2), (Put, 2)]);
}

#[test]
fn operations_must_be_enabled() {
    let mut machine = Machine::new();
    machine.target.append(&entry(1, 7, 0, 10, Options::PUT)).unwrap();
    machine.target.append(&entry(2, 7, 0, 10, Options::GET)).unwrap();
    let get = Request { operation: Operation::Get, ..request(7, 4) };
    assert_eq!(machine.request(&get, 0), accepted(List::Priority, 4, 0));
    assert_eq!(machine.put(7, 4, 0), accepted(List::Priority, 4, 0));
    assert_eq!(machine.events(), [(Get, 2), (Put, 1)]);
}

#[test]
fn acknowledgements_need_both_ends() {
    let mut machine = Machine::new();
    machine.target.append(&entry(1, 7, 0, 10, Options::PUT | Options::ACK_DISABLE)).unwrap();
    machine.target.append(&entry(2, 8, 0, 10, Options::PUT)).unwrap();
    let acknowledged = |verdict| matches!(verdict, Verdict::Accepted { acknowledge: true, .. });
    assert!(!acknowledged(machine.put(7, 0, 0)));
    assert!(acknowledged(machine.put(8, 0, 0)), "zero bytes are a valid result");
    assert!(!acknowledged(machine.request(&Request { ack: false, ..request(8, 1) }, 0)));
}

#[test]
fn unexpected_messages_lie_in_overflow_memory_until_an_entry_takes_them() {
    let mut machine = Machine::new();
    let unexpected = TargetEntry { min_free: 50, ..overflow(9, 500, 100) };
    let handle = machine.target.append(&unexpected).unwrap();
    assert_eq!(machine.put(7, 30, 1), accepted(List::Overflow, 30, 0));
    assert_eq!(machine.target.unlink(handle), Err(UnlinkError::InUse));
    assert_eq!(machine.put(8, 30, 2), accepted(List::Overflow, 30, 30));
    assert_eq!(machine.events(), [(Put, 9), (Put, 9), (AutoUnlink, 9)]);
    assert_eq!(machine.put(8, 1, 3), Verdict::Dropped);
    machine.target.append(&entry(1, 8, 0, 50, Options::PUT | Options::USE_ONCE)).unwrap();
    let event = machine.target.next_event(0).unwrap();
    assert_eq!((event.kind, event.user, event.start, event.placed_length), (PutOverflow, 1, 530, 30));
    assert_eq!((event.header_data, event.initiator), (2, ProcessId(4)));
    assert_eq!(machine.bytes[530..560], [2; 30]);
    assert_eq!(machine.events(), [(AutoUnlink, 1)]);
    // A persistent entry takes what is left, and then waits for more.
    machine.target.append(&TargetEntry { ignore_bits: 0xff, ..entry(2, 0, 0, 50, Options::PUT) }).unwrap();
    assert_eq!(machine.events(), [(PutOverflow, 2), (AutoFree, 9)]);
    assert_eq!(machine.put(5, 3, 1), accepted(List::Priority, 3, 0));
    assert_eq!(machine.target.unlink(handle), Err(UnlinkError::Gone));
}

#[test]
fn a_search_sees_and_takes_unexpected_messages() {
    let mut machine = Machine::new();
    machine.target.append(&overflow(9, 500, 100)).unwrap();
    for bits in [1, 2, 2] {
        machine.put(bits, 5, bits as u8);
    }
    machine.events();
    let once = entry(1, 2, 0, 0, Options::PUT | Options::USE_ONCE);
    machine.target.search(SearchOperation::Look, &once);
    assert_eq!(machine.events(), [(Search, 1)]);
    machine.target.search(SearchOperation::Look, &entry(1, 2, 0, 0, Options::PUT));
    assert_eq!(machine.events(), [(Search, 1), (Search, 1)]);
    machine.target.search(SearchOperation::Take, &once);
    machine.target.search(SearchOperation::Take, &once);
    machine.target.search(SearchOperation::Take, &once);
    assert_eq!(machine.events(), [(Search, 1), (Search, 1), (SearchFailed, 1)]);
}

#[test]
fn headers_may_be_forgotten_at_once() {
    let mut machine = Machine::new();
    let options = Options::PUT | Options::UNEXPECTED_HEADER_DISABLE;
    let forgetful = TargetEntry { list: List::Overflow, ..entry(9, 7, 0, 10, options) };
    machine.target.append(&forgetful).unwrap();
    machine.put(7, 5, 1);
    machine.target.search(SearchOperation::Look, &entry(1, 7, 0, 0, Options::PUT));
    assert_eq!(machine.events(), [(Put, 9), (SearchFailed, 1)]);
}

#[test]
fn counting_events_count_operations_or_bytes() {
    let mut machine = Machine::new();
    machine.target.append(&overflow(9, 500, 100)).unwrap();
    machine.put(7, 5, 1);
    let counting = Options::PUT | Options::COUNT_COMM | Options::COUNT_OVERFLOW | Options::EVENT_COMM_DISABLE;
    machine.target.append(&TargetEntry { counter: Some(5), ..entry(1, 7, 0, 50, counting) }).unwrap();
    assert_eq!(machine.target.counter(5), (1, 0));
    machine.put(7, 5, 1);
    assert_eq!(machine.target.counter(5), (2, 0));
    let bytes = TargetEntry { counter: Some(6), ..entry(1, 8, 0, 50, counting | Options::COUNT_BYTES) };
    machine.target.append(&bytes).unwrap();
    machine.put(8, 60, 1);
    assert_eq!(machine.target.counter(6), (50, 0));
    let failed = machine.target.arrive(&request(8, 1), |_| false);
    assert!(matches!(failed, Verdict::Accepted { .. }));
    assert_eq!(machine.target.counter(6).1, 1);
    machine.target.set_counter(6, 3, 0);
    assert_eq!(machine.target.counter(6), (3, 0));
    assert_eq!(machine.events(), [(Put, 9), (PutOverflow, 1)], "no event for what is only counted");
}

#[test]
fn flow_control_closes_a_portal_at_the_first_drop() {
    let mut machine = Machine::new();
    machine.target.open_portal(PORTAL, 2, true);
    assert_eq!(machine.put(7, 1, 1), Verdict::Dropped);
    assert!(machine.target.is_closed(PORTAL));
    assert_eq!(machine.target.next_event(2).unwrap().kind, PortalClosed);
    machine.target.append(&entry(1, 7, 0, 10, Options::PUT)).unwrap();
    assert_eq!(machine.put(7, 1, 1), Verdict::Dropped);
    machine.target.open_portal(PORTAL, 2, false);
    assert_eq!(machine.put(7, 1, 1), accepted(List::Priority, 1, 0));
    assert!(machine.target.next_event(2).is_none());
}

#[test]
fn portals_and_sources_are_kept_apart() {
    let mut machine = Machine::new();
    machine.target.append(&TargetEntry { portal: 4, ..entry(1, 7, 0, 10, Options::PUT) }).unwrap();
    let stranger = TargetEntry { source: Some(ProcessId(5)), ..entry(2, 7, 0, 10, Options::PUT) };
    machine.target.append(&stranger).unwrap();
    assert_eq!(machine.put(7, 1, 1), Verdict::Dropped);
    assert_eq!(machine.request(&Request { portal: 4, ..request(7, 1) }, 0), accepted(List::Priority, 1, 0));
    let known = Request { initiator: ProcessId(5), ..request(7, 1) };
    assert_eq!(machine.request(&known, 0), accepted(List::Priority, 1, 0));
    assert_eq!(machine.request(&Request { portal: 99, ..request(7, 1) }, 0), Verdict::Dropped);
    assert_eq!(machine.events(), [(Put, 1), (Put, 2)]);
}

#[test]
fn links_are_told_unless_disabled() {
    let machine = Machine::new();
    let told = TargetEntry { options: Options::PUT, ..entry(1, 7, 0, 10, Options::PUT) };
    let handle = machine.target.append(&told).unwrap();
    assert_eq!(machine.events(), [(Link, 1)]);
    assert_eq!(machine.target.unlink(handle), Ok(()));
    assert_eq!(machine.target.unlink(handle), Err(UnlinkError::Gone));
    assert_eq!(machine.events(), []);
}

// ---- Portals 3

#[test]
fn a_threshold_counts_down_and_an_inactive_entry_lets_the_search_go_on() {
    let mut machine = Machine::new();
    let keep = Options::PUT | Options::KEEP_CONSUMED;
    machine.target.append(&TargetEntry { threshold: Some(2), ..entry(1, 7, 0, 10, keep) }).unwrap();
    machine.target.append(&TargetEntry { threshold: Some(1), ..entry(2, 7, 0, 10, Options::PUT) }).unwrap();
    machine.target.append(&TargetEntry { threshold: Some(0), ..entry(3, 7, 0, 10, Options::PUT) }).unwrap();
    for _ in 0..3 {
        assert!(matches!(machine.put(7, 1, 1), Verdict::Accepted { .. }));
    }
    assert_eq!(machine.put(7, 1, 1), Verdict::Dropped);
    assert_eq!(machine.events(), [(Put, 1), (Put, 1), (Put, 2), (AutoUnlink, 2)]);
}

#[test]
fn passing_the_high_water_mark_consumes() {
    let mut machine = Machine::new();
    let options = Options::PUT | Options::MANAGE_LOCAL;
    machine.target.append(&TargetEntry { maximum_offset: Some(50), ..entry(1, 7, 0, 100, options) }).unwrap();
    assert_eq!(machine.put(7, 50, 1), accepted(List::Priority, 50, 0));
    assert_eq!(machine.put(7, 40, 2), accepted(List::Priority, 40, 50), "it is still stored");
    assert_eq!(machine.put(7, 1, 3), Verdict::Dropped);
}

#[test]
fn an_update_waits_for_an_empty_queue() {
    let mut machine = Machine::new();
    let inactive = TargetEntry { threshold: Some(0), ..entry(1, 7, 0, 0, Options::PUT) };
    let handle = machine.target.append(&inactive).unwrap();
    machine.target.append(&overflow(9, 500, 100)).unwrap();
    assert_eq!(machine.put(7, 1, 1), accepted(List::Overflow, 1, 0));
    assert_eq!(machine.target.update(handle, 0, 10, Some(1), Some(0)), Updated::NotUpdated);
    assert_eq!(machine.put(7, 1, 1), accepted(List::Overflow, 1, 1));
    assert_eq!(machine.events().len(), 2);
    assert_eq!(machine.target.update(handle, 0, 10, Some(1), Some(0)), Updated::Yes);
    assert_eq!(machine.put(7, 9, 1), accepted(List::Priority, 9, 0));
    assert_eq!(machine.target.update(handle, 0, 10, Some(1), None), Updated::Gone);
}

#[test]
fn only_the_first_descriptor_of_an_entry_is_tried() {
    let mut machine = Machine::new();
    let one = |user, length| TargetEntry {
        threshold: Some(1),
        ..entry(user, 7, user * 100, length, Options::PUT | Options::NO_TRUNCATE)
    };
    let first = machine.target.append(&one(1, 10)).unwrap();
    machine.target.append_behind(first, &one(2, 50)).unwrap();
    machine.target.append_behind(first, &one(3, 50)).unwrap();
    machine.target.append(&entry(4, 7, 400, 50, Options::PUT)).unwrap();
    // The second descriptor would fit, but the search goes on to the next entry.
    machine.put(7, 20, 1);
    machine.put(7, 10, 2);
    machine.put(7, 20, 3);
    machine.put(7, 20, 4);
    machine.put(7, 20, 5);
    let puts: Vec<u64> =
        machine.events().into_iter().filter(|event| event.0 == Put).map(|event| event.1).collect();
    assert_eq!(puts, [4, 1, 2, 3, 4], "each descriptor keeps the place of its entry");
}

#[test]
fn unlinking_an_entry_takes_its_further_descriptors_along() {
    let mut machine = Machine::new();
    let first = machine.target.append(&entry(1, 7, 0, 10, Options::PUT)).unwrap();
    let second = machine.target.append_behind(first, &entry(2, 7, 0, 10, Options::PUT)).unwrap();
    assert_eq!(machine.target.unlink(second), Err(UnlinkError::Gone), "it is in no list of its own");
    assert_eq!(machine.target.unlink(first), Ok(()));
    assert_eq!(machine.put(7, 1, 1), Verdict::Dropped);
    assert_eq!(machine.target.update(second, 0, 0, None, None), Updated::Gone);
}
