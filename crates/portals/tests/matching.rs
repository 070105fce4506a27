//! The index against a linear list: any sequence of puts, receives, searches and withdrawals gives the same events.

mod support;

use parnass_base::Scratch;
use parnass_portals::*;
use proptest::prelude::*;

/// Ignore bits in use: more patterns than the index has tables for.
const IGNORED: [u64; 6] = [0, 0xff, u64::MAX, 0x1, 0x2, 0x6];

#[derive(Clone, Debug)]
enum Step {
    Put {
        source: u32,
        bits: u64,
    },
    Append {
        source: Option<u32>,
        bits: u64,
        ignored: usize,
    },
    Search {
        take: bool,
        source: Option<u32>,
        bits: u64,
        ignored: usize,
    },
    Unlink {
        which: usize,
    },
    /// Takes every unexpected message.
    Drain,
    /// A message that nobody has taken in when a receive comes that need not be posted.
    Soon {
        from: u32,
        sent: u64,
        source: Option<u32>,
        bits: u64,
        ignored: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let source = || prop_oneof![3 => (0..3u32).prop_map(Some), 1 => Just(None)];
    let bits = || prop_oneof![4 => 0..6u64, 1 => 0..2000u64];
    let ignored = || prop_oneof![4 => Just(0), 2 => 0..IGNORED.len()];
    prop_oneof![
        4 => (0..3u32, bits()).prop_map(|(source, bits)| Step::Put { source, bits }),
        3 => (source(), bits(), ignored())
            .prop_map(|(source, bits, ignored)| Step::Append { source, bits, ignored }),
        1 => (any::<bool>(), source(), bits(), ignored())
            .prop_map(|(take, source, bits, ignored)| Step::Search { take, source, bits, ignored }),
        1 => any::<usize>().prop_map(|which| Step::Unlink { which }),
        1 => (0..3u32, bits(), source(), bits(), ignored())
            .prop_map(|(from, sent, source, bits, ignored)| Step::Soon { from, sent, source, bits, ignored }),
        1 => Just(Step::Drain),
    ]
}

/// Posted: number, source, bits, ignored bits, handle. Unexpected: number, source, bits.
#[derive(Default)]
struct Linear {
    posted: Vec<(u64, Option<u32>, u64, u64, EntryHandle)>,
    unexpected: Vec<(u64, u32, u64)>,
}

fn fits(asked: Option<u32>, asked_bits: u64, ignored: u64, source: u32, bits: u64) -> bool {
    asked.is_none_or(|asked| asked == source) && (asked_bits ^ bits) & !ignored == 0
}

fn run(steps: &[Step]) {
    let nics = support::interfaces(3);
    let target = &nics[2];
    let memory = Scratch::new(8);
    let mut linear = Linear::default();
    let put = |match_bits, header_data| Put {
        target: ProcessId(2),
        match_bits,
        header_data,
        source: memory.address().into(),
        length: 8,
        protocol: Protocol::Buffered,
        blocking: false,
        ack: Ack::None,
        user: 0,
    };
    for (number, step) in (0u64..).zip(steps) {
        let entry = |source: Option<u32>, bits, ignored: usize| MatchEntry {
            source: source.map(ProcessId),
            match_bits: bits,
            ignore_bits: IGNORED[ignored],
            memory: memory.address().into(),
            length: 8,
            user: number,
        };
        let mut events = Vec::new();
        match *step {
            Step::Put { source, bits } => {
                assert_eq!(nics[source as usize].put(&put(bits, number)), Ok(PutOutcome::Done));
                target.progress(&mut |event: Event| events.push((event.user, event.header_data)));
                let hit = linear.posted.iter().position(|p| fits(p.1, p.2, p.3, source, bits));
                match hit {
                    Some(hit) => assert_eq!(events, [(linear.posted.remove(hit).0, number)]),
                    None => {
                        assert_eq!(events, []);
                        linear.unexpected.push((number, source, bits));
                    }
                }
            }
            Step::Append { source, bits, ignored } => {
                let hit =
                    linear.unexpected.iter().position(|u| fits(source, bits, IGNORED[ignored], u.1, u.2));
                match (target.append(List::Priority, &entry(source, bits, ignored)).unwrap(), hit) {
                    (Appended::Complete(event), Some(hit)) => {
                        let (sent, initiator, match_bits) = linear.unexpected.remove(hit);
                        assert_eq!((event.user, event.header_data), (number, sent));
                        assert_eq!((event.initiator.0, event.match_bits), (initiator, match_bits));
                    }
                    (Appended::Posted(handle), None) => {
                        linear.posted.push((number, source, bits, IGNORED[ignored], handle));
                    }
                    (got, expected) => panic!("{got:?}, expected {expected:?}"),
                }
            }
            Step::Search { take, source, bits, ignored } => {
                let hit =
                    linear.unexpected.iter().position(|u| fits(source, bits, IGNORED[ignored], u.1, u.2));
                let operation = if take { SearchOperation::Take } else { SearchOperation::Look };
                let found = target.search(operation, &entry(source, bits, ignored));
                assert_eq!(found.map(|event| event.header_data), hit.map(|hit| linear.unexpected[hit].0));
                if let (true, Some(event), Some(hit)) = (take, found, hit) {
                    linear.unexpected.remove(hit);
                    let received = target.receive_taken(event.taken, memory.address().into(), 8, number);
                    assert!(matches!(received, Appended::Complete(event) if event.user == number));
                }
            }
            Step::Drain => {
                for (sent, ..) in linear.unexpected.drain(..) {
                    let got = target.append(List::Priority, &entry(None, 0, 2)).unwrap();
                    assert!(matches!(got, Appended::Complete(event) if event.header_data == sent));
                }
            }
            Step::Soon { from, sent, source, bits, ignored } => {
                assert_eq!(nics[from as usize].put(&put(sent, number)), Ok(PutOutcome::Done));
                let result = target.receive_soon(
                    &entry(source, bits, ignored),
                    |told| Some(told.header_data),
                    || None,
                );
                target.progress(&mut |event: Event| events.push((event.user, event.header_data)));
                let posted = linear.posted.iter().position(|p| fits(p.1, p.2, p.3, from, sent));
                let wanted = fits(source, bits, IGNORED[ignored], from, sent);
                let older =
                    linear.unexpected.iter().position(|u| fits(source, bits, IGNORED[ignored], u.1, u.2));
                // Who is among the unexpected comes first, and the new message is taken in afterwards.
                let mut received = older.map(|hit| linear.unexpected.remove(hit).0);
                match posted {
                    Some(hit) => assert_eq!(events, [(linear.posted.remove(hit).0, number)]),
                    None if wanted && received.is_none() => received = Some(number),
                    None => linear.unexpected.push((number, from, sent)),
                }
                assert_eq!(result, received);
            }
            Step::Unlink { which } => {
                if !linear.posted.is_empty() {
                    let entry = linear.posted.remove(which % linear.posted.len());
                    assert!(target.unlink(entry.4, entry.0));
                    assert!(!target.unlink(entry.4, entry.0));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_agrees_with_a_linear_list(steps in proptest::collection::vec(step(), 0..600)) {
        run(&steps);
    }
}

/// The tables grow several times under posted and unexpected entries, and every one is found.
#[test]
fn growing_tables_keep_their_order() {
    let mut steps = Vec::new();
    for bits in 0..3_000 {
        steps.push(Step::Put { source: (bits % 2) as u32, bits: bits % 700 });
        if bits == 1_500 {
            steps.push(Step::Search { take: false, source: None, bits: 5, ignored: 1 });
        }
    }
    for bits in 0..3_500 {
        let source = (bits % 3 != 0).then_some((bits % 2) as u32);
        steps.push(Step::Append { source, bits: bits % 900, ignored: usize::from(bits % 50 == 0) });
    }
    for bits in 0..2_000 {
        steps.push(Step::Put { source: 1, bits: bits % 1_000 });
    }
    run(&steps);
}
