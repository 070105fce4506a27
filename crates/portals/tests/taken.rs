//! Messages that a search took, received at once or later, among all else that a NIC is asked for: each entry gets its message, whole.

mod support;

use parnass_base::Scratch;
use parnass_portals::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// In one slot of a mailbox, in several, in a run, and in a piece.
const LENGTHS: [usize; 7] = [0, 8, 40, 100, 1_000, 5_000, 20_000];
const ROOM: usize = 20_000;
const IGNORED: [u64; 2] = [0, 3];

#[derive(Clone, Debug)]
enum Step {
    Put { source: u32, bits: u64, length: usize },
    Append { source: u32, bits: u64, ignored: usize },
    Soon { source: u32, bits: u64, ignored: usize },
    Search { take: bool, source: u32, bits: u64, ignored: usize },
    Receive { which: usize },
    // [`Interface::take_short`]; whether it must be what receives the message.
    Short { sure: bool, source: u32, bits: u64, ignored: usize },
    Progress,
}

fn step() -> impl Strategy<Value = Step> {
    let (source, bits, ignored) = (0..2_u32, 0..4_u64, 0..IGNORED.len());
    prop_oneof![
        6 => (source.clone(), bits.clone(), 0..LENGTHS.len())
            .prop_map(|(source, bits, length)| Step::Put { source, bits, length: LENGTHS[length] }),
        2 => (source.clone(), bits.clone(), ignored.clone())
            .prop_map(|(source, bits, ignored)| Step::Append { source, bits, ignored }),
        2 => (source.clone(), bits.clone(), ignored.clone())
            .prop_map(|(source, bits, ignored)| Step::Soon { source, bits, ignored }),
        2 => (source.clone(), bits.clone(), ignored.clone())
            .prop_map(|(source, bits, ignored)| Step::Short { source, bits, ignored, sure: false }),
        4 => (any::<bool>(), source, bits, ignored)
            .prop_map(|(take, source, bits, ignored)| Step::Search { take, source, bits, ignored }),
        3 => any::<usize>().prop_map(|which| Step::Receive { which }),
        1 => Just(Step::Progress),
    ]
}

#[derive(Debug)]
struct Sent {
    number: u64,
    bits: u64,
    length: usize,
}

/// What waits, by source: the messages that nobody has asked for, and the entries that no message has met.
#[derive(Default)]
struct Model {
    messages: [Vec<Sent>; 2],
    entries: [Vec<(u64, u64, u64)>; 2],
    /// The message of each entry, until its event has come.
    due: HashMap<u64, Sent>,
}

fn content(number: u64, length: usize) -> Vec<u8> {
    (0..length).map(|place| (number.wrapping_mul(31) as usize + place * 7) as u8).collect()
}

fn check(memory: &Scratch, event: &Event, sent: &Sent) {
    let mut bytes = vec![0; sent.length];
    memory.address().read(&mut bytes);
    assert_eq!((event.kind, event.header_data, event.match_bits), (EventKind::Put, sent.number, sent.bits));
    assert_eq!((event.requested_length, event.placed_length), (sent.length as u64, sent.length as u64));
    assert!(bytes == content(sent.number, sent.length), "other bytes of message {}", sent.number);
}

fn run(steps: &[Step]) {
    let nics = support::interfaces(3);
    let target = &nics[2];
    let mut model = Model::default();
    let mut memories: HashMap<u64, Scratch> = HashMap::new();
    let mut taken: Vec<(u64, Sent)> = Vec::new();
    let progress = |model: &mut Model, memories: &mut HashMap<u64, Scratch>| {
        target.progress(&mut |event: Event| {
            let sent = model.due.remove(&event.user).expect("an event of an entry that has met its message");
            check(&memories.remove(&event.user).unwrap(), &event, &sent);
        });
    };
    let receive = |(handle, sent): (u64, Sent), number: u64| {
        let memory = Scratch::new(ROOM);
        match target.receive_taken(handle, memory.address().into(), ROOM, number) {
            Appended::Complete(event) => check(&memory, &event, &sent),
            Appended::Posted(_) => panic!("all of message {} is there", sent.number),
        }
    };
    for (number, step) in (0u64..).zip(steps) {
        let memory = Scratch::new(ROOM);
        let entry = |source: u32, bits, ignored: usize| MatchEntry {
            source: Some(ProcessId(source)),
            match_bits: bits,
            ignore_bits: IGNORED[ignored],
            memory: memory.address().into(),
            length: ROOM,
            user: number,
        };
        let first = |model: &Model, source: u32, bits: u64, ignored: usize| {
            let messages = &model.messages[source as usize];
            messages.iter().position(|sent| (sent.bits ^ bits) & !IGNORED[ignored] == 0)
        };
        match *step {
            Step::Put { source, bits, length } => {
                let data = Scratch::new(length);
                data.address().write(&content(number, length));
                let put = Put {
                    target: ProcessId(2),
                    match_bits: bits,
                    header_data: number,
                    source: data.address().into(),
                    length,
                    protocol: Protocol::Buffered,
                    blocking: false,
                    ack: Ack::None,
                    user: number,
                };
                let sent = Sent { number, bits, length };
                let entries = &mut model.entries[source as usize];
                match entries.iter().position(|(_, wanted, ignored)| (wanted ^ bits) & !ignored == 0) {
                    Some(hit) => {
                        model.due.insert(entries.remove(hit).0, sent);
                    }
                    None => model.messages[source as usize].push(sent),
                }
                let mut gone = nics[source as usize].put(&put) == Ok(PutOutcome::Done);
                while !gone {
                    progress(&mut model, &mut memories);
                    nics[source as usize].progress(&mut |event: Event| gone |= event.user == number);
                }
            }
            Step::Append { source, bits, ignored } => {
                let hit = first(&model, source, bits, ignored);
                let sent = hit.map(|hit| model.messages[source as usize].remove(hit));
                match (target.append(List::Priority, &entry(source, bits, ignored)).unwrap(), sent) {
                    (Appended::Complete(event), Some(sent)) => check(&memory, &event, &sent),
                    (Appended::Complete(event), None) => panic!("{event:?} of nothing"),
                    (Appended::Posted(_), sent) => {
                        memories.insert(number, memory);
                        match sent {
                            Some(sent) => drop(model.due.insert(number, sent)),
                            None => model.entries[source as usize].push((number, bits, IGNORED[ignored])),
                        }
                    }
                }
            }
            Step::Soon { source, bits, ignored } => {
                let Some(hit) = first(&model, source, bits, ignored) else { continue };
                let wanted = entry(source, bits, ignored);
                if let Some(received) = target.receive_soon(&wanted, |received| Some(*received), || None) {
                    let event = Event {
                        kind: EventKind::Put,
                        user: number,
                        initiator: received.initiator,
                        match_bits: received.match_bits,
                        header_data: received.header_data,
                        requested_length: received.requested_length,
                        placed_length: received.placed_length,
                        taken: 0,
                    };
                    check(&memory, &event, &model.messages[source as usize].remove(hit));
                }
            }
            Step::Search { take, source, bits, ignored } => {
                let hit = first(&model, source, bits, ignored);
                let operation = if take { SearchOperation::Take } else { SearchOperation::Look };
                let found = target.search(operation, &entry(source, bits, ignored));
                let expected = hit.map(|hit| &model.messages[source as usize][hit]);
                assert_eq!(
                    found.map(|event| (event.header_data, event.match_bits, event.requested_length)),
                    expected.map(|sent| (sent.number, sent.bits, sent.length as u64))
                );
                if let (true, Some(event), Some(hit)) = (take, found, hit) {
                    taken.push((event.taken, model.messages[source as usize].remove(hit)));
                }
            }
            Step::Short { source, bits, ignored, sure } => {
                let mut wanted = entry(source, bits, ignored);
                (wanted.memory, wanted.length) = (Memory::NONE, 0);
                let hit = first(&model, source, bits, ignored);
                match target.take_short(&wanted) {
                    Some((received, words)) => {
                        let sent = hit.map(|hit| model.messages[source as usize].remove(hit)).unwrap();
                        let found = (received.header_data, received.match_bits, received.requested_length);
                        assert_eq!(found, (sent.number, sent.bits, sent.length as u64));
                        let mut bytes = vec![0; sent.length];
                        write_words(&words, memory.address(), sent.length);
                        memory.address().read(&mut bytes);
                        assert!(bytes == content(sent.number, sent.length), "other bytes of {}", sent.number);
                    }
                    None => assert!(!sure, "{hit:?} was not taken"),
                }
            }
            Step::Receive { which } => {
                if !taken.is_empty() {
                    receive(taken.remove(which % taken.len()), number);
                }
            }
            Step::Progress => progress(&mut model, &mut memories),
        }
    }
    progress(&mut model, &mut memories);
    assert!(model.due.is_empty(), "entries that have not got their messages");
    taken.into_iter().for_each(|message| receive(message, u64::MAX));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_message_is_received_whole(steps in proptest::collection::vec(step(), 0..60)) {
        run(&steps);
    }
}

/// The next message of a source is received with the search for it, if it takes one slot and nothing was asked for or kept before.
#[test]
fn a_short_message_is_received_with_its_search() {
    let short = |sure| Step::Short { source: 0, bits: 0, ignored: 0, sure };
    for length in [0, 8, 40] {
        run(&[Step::Put { source: 0, bits: 0, length }, short(true), short(false), Step::Progress]);
    }
    let put = |bits, length| Step::Put { source: 0, bits, length };
    let look = Step::Search { take: false, source: 0, bits: 1, ignored: 0 };
    // It may be kept by now, for another entry, longer than a slot, or not of this source.
    for before in [
        vec![put(0, 8), Step::Progress],
        vec![put(1, 8)],
        vec![put(0, 41)],
        vec![Step::Append { source: 0, bits: 0, ignored: 0 }, put(0, 8)],
        vec![put(0, 8), look, put(0, 8)],
        vec![Step::Put { source: 1, bits: 0, length: 8 }],
        vec![],
    ] {
        let mut steps = before.clone();
        steps.extend([
            short(false),
            Step::Search { take: true, source: 0, bits: 0, ignored: 0 },
            short(false),
        ]);
        steps.extend([Step::Receive { which: 0 }, put(0, 40), Step::Progress]);
        run(&steps);
    }
}

/// The usual case, and what comes between, each with every length.
#[test]
fn whatever_comes_between_a_search_and_its_receive() {
    let between = [
        vec![],
        vec![Step::Progress],
        vec![Step::Put { source: 0, bits: 1, length: 8 }, Step::Append { source: 0, bits: 1, ignored: 0 }],
        vec![Step::Put { source: 0, bits: 1, length: 8 }, Step::Soon { source: 0, bits: 1, ignored: 0 }],
        vec![Step::Put { source: 1, bits: 1, length: 8 }, Step::Soon { source: 1, bits: 1, ignored: 0 }],
        vec![
            Step::Put { source: 0, bits: 0, length: 5_000 },
            Step::Search { take: true, source: 0, bits: 0, ignored: 0 },
            Step::Receive { which: 1 },
        ],
        vec![Step::Append { source: 0, bits: 0, ignored: 0 }, Step::Put { source: 0, bits: 0, length: 40 }],
        vec![Step::Search { take: false, source: 0, bits: 0, ignored: 0 }],
    ];
    for (length, between) in
        LENGTHS.iter().flat_map(|length| between.iter().map(move |steps| (*length, steps)))
    {
        let mut steps = vec![
            Step::Put { source: 0, bits: 0, length },
            Step::Search { take: true, source: 0, bits: 0, ignored: 0 },
        ];
        steps.extend(between.iter().cloned());
        steps.push(Step::Receive { which: 0 });
        run(&steps);
    }
}
